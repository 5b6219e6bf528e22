/** Runs verbs of the library in a child process, which a failpoint may kill, make fail, or let run into another one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Workspace } from './workspace.ts'

const script = fileURLToPath(new URL('./engine-child.ts', import.meta.url))
const node = [process.execPath, '--disable-warning=ExperimentalWarning', script]
/** Starting takes a quarter of the time when the sources are compiled already. A process that is killed saves nothing. */
export const compiled = { NODE_COMPILE_CACHE: fileURLToPath(new URL('../../build/compile-cache', import.meta.url)) }
spawnSync(node[0]!, node.slice(1), { env: compiled })

export type Verb = [name: string, ...args: unknown[]]

export interface ProcessOptions {
  /** name[#hits][@ERRNO], as in src/store/failpoint.ts. */
  failpoint?: string
  cwd?: string
  nowMs?: number
  env?: NodeJS.ProcessEnv
  umask?: number
}

export interface ProcessResult {
  signal: NodeJS.Signals | null
  error: { code: string; message: string; hint?: string; isOurs: boolean } | undefined
  // biome-ignore lint/suspicious/noExplicitAny: what the verbs answered, as JSON
  results: any[]
  notices: string[]
  peakBytes: number
}

export function startVerbs(workspace: Workspace, verbs: Verb[], options: ProcessOptions = {}): ChildProcess {
  const task = JSON.stringify({ options: { create: true }, nowMs: options.nowMs, verbs })
  const failpoint = options.failpoint === undefined ? {} : { SAVEPOINT_FAILPOINT: options.failpoint }
  const umask = options.umask === undefined ? '' : `umask ${options.umask.toString(8)}; `
  return spawn('sh', ['-c', `${umask}exec "$@"`, 'sh', ...node, task], {
    cwd: options.cwd ?? workspace.dir,
    env: { ...workspace.env, ...compiled, ...options.env, ...failpoint },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

export async function finishVerbs(child: ChildProcess): Promise<ProcessResult> {
  let output = ''
  child.stdout!.setEncoding('utf8').on('data', text => {
    output += text
  })
  const [, signal] = await once(child, 'close')
  const lines = output
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
  return {
    signal,
    error: lines.find(line => line.error)?.error,
    results: lines.filter(line => line.verb).map(line => line.result),
    notices: lines.filter(line => line.notice).map(line => line.notice),
    peakBytes: lines.find(line => line.peakBytes)?.peakBytes ?? 0,
  }
}

export const runVerbs = (workspace: Workspace, verbs: Verb[], options: ProcessOptions = {}): Promise<ProcessResult> =>
  finishVerbs(startVerbs(workspace, verbs, options))
