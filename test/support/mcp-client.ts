/** `savepoint mcp` as built, driven by the official client of the protocol over its standard streams. */
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { builtCommand } from './built-cli.ts'
import type { Workspace } from './workspace.ts'

export interface McpAnswer {
  text: string
  isError: boolean
  // biome-ignore lint/suspicious/noExplicitAny: whatever the tool answers; the tests say what they expect
  data: any
  meta: Record<string, unknown>
}

export interface McpClient {
  client: Client
  pid: number
  stderr(): string
  call(name: string, input?: Record<string, unknown>): Promise<McpAnswer>
  /** Calls until there is no next page; the elements of all of them. */
  pages(name: string, key: string, input: Record<string, unknown>): Promise<{ items: unknown[]; lengths: number[] }>
  close(): Promise<void>
}

const open = new Set<McpClient>()

export interface McpOptions {
  args?: string[]
  cwd?: string
  env?: NodeJS.ProcessEnv
  /** Words before the program, such as `savepoint run --`. */
  before?: string[]
  protocol?: 'legacy' | 'auto'
}

export async function connectMcp(space: Workspace, options: McpOptions = {}): Promise<McpClient> {
  const [command, ...args] = [...(options.before ?? []), ...builtCommand, 'mcp', ...(options.args ?? [])]
  const transport = new StdioClientTransport({
    command: command!,
    args,
    cwd: options.cwd ?? space.dir,
    env: { ...space.env, ...options.env } as Record<string, string>,
    stderr: 'pipe',
  })
  let stderr = ''
  transport.stderr!.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: options.protocol ?? 'legacy' } },
  )
  await client.connect(transport)
  // So that answers are held against the schemas of the tools.
  await client.listTools()
  const mcp: McpClient = {
    client,
    pid: transport.pid!,
    stderr: () => stderr,
    async call(name, input = {}) {
      const result = await client.callTool({ name, arguments: input })
      const [content] = result.content as { type: string; text: string }[]
      return {
        text: content!.text,
        isError: result.isError === true,
        data: result.structuredContent,
        meta: (result._meta ?? {}) as Record<string, unknown>,
      }
    },
    async pages(name, key, input) {
      const items: unknown[] = []
      const lengths: number[] = []
      for (let start: number | null = 0; start !== null; ) {
        const answer = await mcp.call(name, { ...input, start_index: start })
        if (answer.isError) throw new Error(answer.text)
        items.push(...answer.data[key])
        lengths.push(answer.text.length, JSON.stringify(answer.data).length)
        start = answer.data.next_start_index
      }
      return { items, lengths }
    },
    async close() {
      open.delete(mcp)
      await client.close()
    },
  }
  open.add(mcp)
  return mcp
}

/** What a failed test has left. */
export async function closeMcpClients(): Promise<void> {
  for (const mcp of open) await mcp.close()
}
