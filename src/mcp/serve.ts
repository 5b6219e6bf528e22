/** `savepoint mcp`: serves one client over a pair of streams until it has gone. */
import type { Readable, Writable } from 'node:stream'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { AnsweringTransport } from './answering-transport.ts'
import { McpFace, type ServerOptions } from './server.ts'

export interface ServeOptions extends ServerOptions {
  input: Readable
  output: Writable
  /** What the protocol cannot tell the client: lines that are no messages, and the like. */
  onError(error: Error): void
}

/** Returns when the client has closed its end and everything that it asked for is answered, or when `signal` says so. */
export async function serveMcp(options: ServeOptions): Promise<void> {
  const face = new McpFace(options)
  const transport = new AnsweringTransport(options.input, options.output)
  const handle = serveStdio(() => face.connect(), { transport, onerror: options.onError })
  options.signal?.addEventListener('abort', () => transport.finish(), { once: true })
  await transport.closed
  await face.idle()
  await handle.close()
}
