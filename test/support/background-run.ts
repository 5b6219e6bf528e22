/** `savepoint run` of a shell script, going on while the test does something else. The script prints READY when it is. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach } from 'vitest'
import { builtCommand, savepointJson } from './built-cli.ts'
import { Workspace } from './workspace.ts'

export interface BackgroundRun {
  child: ChildProcess
  /** Of the run. */
  id: string
  /** Types a line for the script's `read`. */
  say(line: string): void
  ended: Promise<{ status: number | null; signal: string | null; stdout: string; stderr: string }>
}

const started: ChildProcess[] = []

/** How long after a call a change is certainly not its effect; it is time itself that is waited for. */
const LATER_MS = 1200
const LOOK_MS = 50

/** Until what is changed next cannot be taken for what the run has done; that may have waited for the snapshot before the run. */
export async function untilLater(space: Workspace, run: string): Promise<void> {
  const isCaptured = ({ id, before }: { id: string; before: string | null }) => id === run && before !== null
  while (!savepointJson(space, ['runs']).some(isCaptured)) await pause(LOOK_MS)
  await pause(LATER_MS)
}

export async function startRun(
  space: Workspace,
  script: string,
  options: { args?: string[]; spawn?: SpawnOptions; before?: string[] } = {},
): Promise<BackgroundRun> {
  const line = `echo READY $SAVEPOINT_RUN`
  const text = script.includes('READY') ? script.replace('READY', line) : `${line}\n${script}`
  const command = [...(options.before ?? []), ...builtCommand, 'run', ...(options.args ?? []), '--', 'sh', '-c', text]
  const child = spawn(command[0]!, command.slice(1), {
    cwd: space.dir,
    env: space.env,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...options.spawn,
  })
  started.push(child)
  let [stdout, stderr] = ['', '']
  const ready = new Promise<string>(resolve => {
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk
      const [, id] = /READY (run_\w+)\n/.exec(stdout) ?? []
      if (id) resolve(id)
    })
  })
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  child.stdin!.on('error', () => {})
  const ended = once(child, 'close').then(([status, signal]) => ({ status, signal, stdout, stderr }))
  const id = await Promise.race([
    ready,
    ended.then(() => {
      throw new Error(`the run ended before it was ready: ${stderr}`)
    }),
  ])
  return { child, id, say: words => void child.stdin!.write(`${words}\n`), ended }
}

/**
 * Somebody edits `sub/two` and adds `sub/new` in what is the target between the two parts of what the run does. Answers what the run says
 * at its end.
 */
export async function editedBetween(space: Workspace, first: string, second: string): Promise<string> {
  const run = await startRun(space, `cd /; W='${space.dir}'; ${first}; echo READY; read go; ${second}`)
  await untilLater(space, run.id)
  space.write('sub/two', 'edited by hand')
  space.write('sub/new', 'made by hand')
  run.say('go')
  return (await run.ended).stderr
}

/** For the tests of a file: each has a workspace with the file `a`, and leaves no run behind. */
export function useRuns(take: (space: Workspace) => void): void {
  let space: Workspace
  beforeEach(() => {
    space = new Workspace()
    space.write('a', 'a1')
    take(space)
  })
  afterEach(async () => {
    await endRuns()
    space.remove()
  })
}

/** What a failed test has left; the helper lets the command go when its reader dies, so that it is ended by SIGTERM. */
export async function endRuns(): Promise<void> {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    child.stdin?.end()
    await once(child, 'close')
  }
}

/** Whether a process exists and is no zombie. */
export async function isRunning(pid: number): Promise<boolean> {
  const { readFile } = await import('node:fs/promises')
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  return stat !== '' && !/\) [ZX] [^)]*$/.test(stat)
}
