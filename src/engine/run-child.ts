/** The command of a run: started with the terminal handed through untouched, and waited for. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import { hasStrayBytes, rawFromText, rawToBytes } from '../model/raw-path.ts'
import { quoteWord, spellCommand } from '../model/shell-quote.ts'
import { isStopped, type TracedEnd } from '../tracers/command-process.ts'
import { EsloggerCommand } from '../tracers/eslogger-command.ts'
import { type Traced, TracedCommand } from '../tracers/helper.ts'
import { type Inherited, inheritedStdio, isInputClosed } from '../tracers/inherited.ts'
import type { TracedOptions } from '../tracers/traced-options.ts'
import { currentDirectory } from './choose-target.ts'
import { followStops } from './follow-stops.ts'
import { homeOf } from './home.ts'
import type { RunResult } from './results.ts'
import type { RunSession } from './run-session.ts'
import type { OpenOptions, RunOptions } from './savepoint.ts'
import { type Started, withTree } from './started-command.ts'
import { areKeysOurs } from './terminal-keys.ts'
import { Wakers } from './wakers.ts'

export type ChildEnd = TracedEnd

/** As a shell counts: a death by signal is 128 and its number. */
export const exitCodeOf = ({ code, signal }: ChildEnd): number =>
  signal ? 128 + (constants.signals[signal as NodeJS.Signals] ?? 0) : (code ?? 1)

/** `run --unprotected` where nothing can be stored, because of `cause`: the command is what was asked for. */
export async function runUnrecorded(
  command: string[],
  cause: Error,
  options: OpenOptions & Pick<RunOptions, 'inherited'> = {},
): Promise<RunResult> {
  options.onNotice?.(`NOTHING is recorded of this run, and it cannot be undone: ${cause.message}`)
  const end = await supervise(command, {
    cwd: currentDirectory(homeOf(options, options.env ?? process.env), options.cwd),
    env: options.env ?? process.env,
    inherited: options.inherited,
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
    unprotected: { count: 0, paths: [] },
    hidden: { count: 0, paths: [] },
    uncaptured: [],
    kept: { files: 0, snapshots: [] },
    trace: undefined,
  }
}

export interface SuperviseOptions {
  cwd: Buffer
  env: NodeJS.ProcessEnv
  /** Of the run whose mark its processes carry. */
  session?: Pick<RunSession, 'run' | 'wakers'>
  onStarted?(command: Started): void
  /** Before anything else is done. */
  onEnded?(end: ChildEnd): void
  inherited: Inherited | undefined
  /** Who is told what the command does; undefined: it runs unseen. */
  trace?: Omit<TracedOptions, 'command' | 'cwd' | 'env' | 'inherited' | 'onStop'> & { onStart(command: Traced): void }
}

const ofKeys: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT'])
/** Node itself would open a port for a debugger at SIGUSR1, and die of SIGUSR2. */
const passedOn: NodeJS.Signals[] = [...ofKeys, 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']

/** The terminal is the command's: keys that interrupt go to it, and we outlive them to take the last snapshot. */
export async function supervise(command: string[], options: SuperviseOptions): Promise<ChildEnd> {
  const { cwd, env, trace, inherited = nothing } = options
  const started = command.some(hasStrayBytes) ? throughShell(command, cwd, env) : command
  let child: Started | undefined
  const forward = (signal: NodeJS.Signals) => {
    // Of keys it has them itself, once it is there.
    if (!ofKeys.has(signal) || !areKeysOurs() || child?.pid === undefined) child?.kill(signal)
  }
  for (const signal of passedOn) process.on(signal, forward)
  const stops = followStops(() => child, options.session?.wakers ?? new Wakers())
  try {
    const start = { command: started, cwd: textOf(cwd), env, inherited }
    const failed = (error: NodeJS.ErrnoException): never => {
      throw cannotStart(command[0]!, cwd, env, error)
    }
    const traced = trace && attempt(() => startTraced({ ...start, ...trace, onStop: stops.look }), failed)
    if (traced) trace.onStart(traced)
    child =
      traced instanceof TracedCommand
        ? traced
        : withTree(traced ?? attempt(() => startUntraced(start), failed), options.session?.run.id)
    options.onStarted?.(child)
    const end = await child.ended.catch(failed)
    options.onEnded?.(end)
    return end
  } finally {
    stops.close()
    for (const signal of passedOn) process.off(signal, forward)
  }
}

/** Of some reasons (arguments that are too long, a null byte in them) spawn does not tell later: it throws. */
function attempt<T>(start: () => T, failed: (error: NodeJS.ErrnoException) => never): T {
  try {
    return start()
  } catch (error) {
    return failed(error as NodeJS.ErrnoException)
  }
}

const startTraced = (options: TracedOptions): Traced =>
  options.driver === 'eslogger'
    ? new EsloggerCommand({ ...options, start: () => spawnCommand(options) })
    : new TracedCommand(options)

const nothing: Inherited = { descriptors: [], ignoredSignals: [] }

type StartOptions = Pick<TracedOptions, 'command' | 'cwd' | 'env' | 'inherited'>

function spawnCommand({ command, cwd, env, inherited }: StartOptions): ChildProcess {
  const [program, ...args] = isNowhere(command[0]!, env) ? command : asInherited(inherited, command)
  return spawn(program!, args, { stdio: inheritedStdio(inherited), cwd, env })
}

function startUntraced(options: StartOptions) {
  const child = spawnCommand(options)
  const ended = new Promise<ChildEnd>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) =>
      resolve({ code: code ?? undefined, signal: signal ?? undefined, survivors: false, left: [] }),
    )
  })
  return {
    ended,
    pid: child.pid,
    get isStopped() {
      return isStopped(child.pid)
    },
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
  }
}

/** spawn sets all signals back, and Node a limit: a shell, which becomes the command, has them as they were. */
function asInherited({ ignoredSignals, fileLimit }: Inherited, command: string[]): string[] {
  const ignore = ignoredSignals.length === 0 ? [] : [`trap '' ${ignoredSignals.join(' ')}`]
  const closed = isInputClosed() ? ['exec <&-'] : []
  const set = [...ignore, ...(fileLimit === undefined ? [] : [`ulimit -Sn ${fileLimit}`]), ...closed]
  return set.length === 0 ? command : ['/bin/sh', '-c', [...set, 'exec "$@"'].join('; '), 'sh', ...command]
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
    return new SavepointError('command.not-found', `Cannot run ${program}: command not found`, {
      hint: 'Look at how it is written, and at PATH. Words of a shell (cd, |, &&) need one: sh -c "…"',
      cause: error,
    })
  }
  if (error.code === 'EACCES') {
    const isDirectory = statSync(rawToBytes(rawFromText(program)), { throwIfNoEntry: false })?.isDirectory()
    const why = isDirectory ? 'a directory' : 'not executable'
    return new SavepointError('command.not-executable', `Cannot run ${program}: it is ${why}`, {
      hint: isDirectory ? 'Name a program in it' : `chmod +x ${quoteWord(program)}`,
      cause: error,
    })
  }
  const [why, hint] = otherReasons[error.code ?? ''] ?? [error.message]
  return new SavepointError('command.failed-to-start', `Cannot run ${program}: ${why}`, { hint, cause: error })
}

const otherReasons: Record<string, [why: string, hint: string]> = {
  E2BIG: ['its arguments are too long for this system', 'Write them into a file, and name that'],
  ERR_INVALID_ARG_VALUE: ['a null byte is in its arguments', 'No program can be given one'],
}

const isNowhere = (program: string, env: NodeJS.ProcessEnv): boolean =>
  !program.includes('/') &&
  !(env.PATH ?? '').split(':').some(directory => existsSync(rawToBytes(rawFromText(join(directory || '.', program)))))
