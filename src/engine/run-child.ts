/** The command of a run: started with the terminal handed through untouched, and waited for. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import { hasStrayBytes, rawFromText, rawToBytes } from '../model/raw-path.ts'
import { spellCommand } from '../model/shell-quote.ts'
import { TracedCommand, type TracedEnd, type TracedOptions } from '../tracers/helper.ts'
import { currentDirectory } from './choose-target.ts'
import { followStops, type StartedCommand } from './follow-stops.ts'
import { homeOf } from './home.ts'
import { UnwatchedTree } from './process-tree.ts'
import type { RunResult } from './results.ts'
import type { OpenOptions } from './savepoint.ts'

export type ChildEnd = TracedEnd

/** As a shell counts: a death by signal is 128 and its number. */
export const exitCodeOf = ({ code, signal }: ChildEnd): number =>
  signal ? 128 + (constants.signals[signal as NodeJS.Signals] ?? 0) : (code ?? 1)

/** `run --unprotected` where nothing can be stored, because of `cause`: the command is what was asked for. */
export async function runUnrecorded(command: string[], cause: Error, options: OpenOptions = {}): Promise<RunResult> {
  options.onNotice?.(`NOTHING is recorded of this run, and it cannot be undone: ${cause.message}`)
  const end = await supervise(command, {
    cwd: currentDirectory(homeOf(options, options.env ?? process.env), options.cwd),
    env: options.env ?? process.env,
  })
  return {
    run: undefined,
    exitCode: exitCodeOf(end),
    signal: end.signal,
    before: undefined,
    after: undefined,
    changes: [],
    counts: { added: 0, modified: 0, deleted: 0 },
    movedTo: undefined,
    gone: { count: 0, paths: [] },
    trace: undefined,
  }
}

export interface SuperviseOptions {
  cwd: Buffer
  env: NodeJS.ProcessEnv
  /** The run whose mark its processes carry. */
  run?: string
  onStarted?(command: Started): void
  /** Who is told what the command does; undefined: it runs unseen. */
  trace?: Omit<TracedOptions, 'command' | 'cwd' | 'env'> & { onStart(command: TracedCommand): void }
}

/** The terminal is the command's: keys that interrupt go to it, and we outlive them to take the last snapshot. */
export async function supervise(command: string[], options: SuperviseOptions): Promise<ChildEnd> {
  const { cwd, env, trace } = options
  const started = command.some(hasStrayBytes) ? throughShell(command, cwd, env) : command
  const ignore = () => {}
  const ignored: NodeJS.Signals[] = ['SIGINT', 'SIGQUIT']
  const forwarded: NodeJS.Signals[] = ['SIGTERM', 'SIGHUP']
  let child: Started | undefined
  const forward = (signal: NodeJS.Signals) => child?.kill(signal)
  for (const signal of ignored) process.on(signal, ignore)
  for (const signal of forwarded) process.on(signal, forward)
  const unfollow = followStops(() => child)
  try {
    const launch = { command: started, cwd: textOf(cwd), env }
    const traced = trace && new TracedCommand({ ...launch, ...trace })
    if (traced) trace.onStart(traced)
    child = traced ?? startUntraced(launch, options.run)
    options.onStarted?.(child)
    return await child.ended.catch(error => {
      throw cannotStart(command[0]!, cwd, env, error)
    })
  } finally {
    unfollow()
    for (const signal of ignored) process.off(signal, ignore)
    for (const signal of forwarded) process.off(signal, forward)
  }
}

/** A command that was started, and all processes that come of it. */
export interface Started extends StartedCommand {
  readonly ended: Promise<ChildEnd>
  /** The process that all others descend from. */
  readonly root: number | undefined
  freeze(): Promise<void>
  /** Returns when they go on. */
  thaw(): Promise<void>
  /** Returns when none of them is left. */
  stop(graceMs: number): Promise<void>
}

function startUntraced(
  { command, cwd, env }: Pick<TracedOptions, 'command' | 'cwd' | 'env'>,
  run: string | undefined,
): Started {
  const child = spawn(command[0]!, command.slice(1), { stdio: 'inherit', cwd, env })
  let stopping: Promise<void> | undefined
  const ended = new Promise<ChildEnd>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', async (code, signal) => {
      // While it is stopped as a whole, its end is the end of all.
      await stopping
      resolve({ code: code ?? undefined, signal: signal ?? undefined, survivors: false })
    })
  })
  const tree = child.pid === undefined || run === undefined ? undefined : new UnwatchedTree(child.pid, run)
  const started = {
    ended,
    pid: child.pid,
    root: child.pid,
    isFrozen: false,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    async freeze() {
      started.isFrozen = true
      await tree?.freeze()
    },
    async thaw() {
      tree?.thaw()
      started.isFrozen = false
    },
    async stop(graceMs: number) {
      started.isFrozen = true
      stopping ??= tree?.stop(graceMs)
      await ended.catch(() => {})
    },
  }
  return started
}

/**
 * spawn takes text only, and would change every byte that is not UTF-8: such a command is spelled in octal for a shell,
 * which becomes it. Variables whose names a shell does not know (`a.b`) would be lost there: `env` sets them again.
 */
function throughShell(command: string[], cwd: Buffer, env: NodeJS.ProcessEnv): string[] {
  const program = command[0]!
  if (isNowhere(program, env)) throw cannotStart(program, cwd, env, Object.assign(new Error(), { code: 'ENOENT' }))
  const odd = Object.entries(env).filter(([name]) => !/^[A-Za-z_]\w*$/.test(name))
  const words = odd.length === 0 ? command : ['env', ...odd.map(([name, value]) => `${name}=${value}`), ...command]
  return ['/bin/sh', '-c', 'eval "exec $(printf %b "$1")"', 'sh', spellCommand(words)]
}

/** spawn takes text only. A directory that is not UTF-8 can be our own, which the child inherits. */
export function textOf(directory: Buffer): string | undefined {
  const text = directory.toString()
  return Buffer.from(text).equals(directory) ? text : undefined
}

function cannotStart(
  program: string,
  cwd: Buffer,
  env: NodeJS.ProcessEnv,
  error: NodeJS.ErrnoException,
): SavepointError {
  // spawn says the same for a program and for a directory that does not exist.
  if (error.code === 'ENOENT' && !existsSync(cwd)) {
    return new SavepointError(
      'command.failed-to-start',
      `Cannot run ${program}: the current directory does not exist any more`,
      { cause: error },
    )
  }
  // A directory of PATH that may not be entered gives EACCES for a program that is nowhere.
  if (error.code === 'ENOENT' || (error.code === 'EACCES' && isNowhere(program, env))) {
    return new SavepointError('command.not-found', `Cannot run ${program}: command not found`, { cause: error })
  }
  if (error.code === 'EACCES') {
    return new SavepointError('command.not-executable', `Cannot run ${program}: it is not executable`, {
      hint: `chmod +x ${program}`,
      cause: error,
    })
  }
  return new SavepointError('command.failed-to-start', `Cannot run ${program}: ${error.message}`, { cause: error })
}

const isNowhere = (program: string, env: NodeJS.ProcessEnv): boolean =>
  !program.includes('/') &&
  !(env.PATH ?? '').split(':').some(directory => existsSync(rawToBytes(rawFromText(join(directory || '.', program)))))
