/** The command of a run: started with the terminal handed through untouched, and waited for. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import { currentDirectory } from './choose-target.ts'
import { followStops } from './follow-stops.ts'
import { homeOf } from './home.ts'
import type { RunResult } from './results.ts'
import type { OpenOptions } from './savepoint.ts'

export interface ChildEnd {
  code: number | undefined
  signal: string | undefined
}

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
    gone: { count: 0, paths: [] },
  }
}

/** The terminal is the command's: keys that interrupt go to it, and we outlive them to take the last snapshot. */
export async function supervise(
  command: string[],
  { cwd, env }: { cwd: Buffer; env: NodeJS.ProcessEnv },
): Promise<ChildEnd> {
  const [program, ...args] = command
  const ignore = () => {}
  const ignored: NodeJS.Signals[] = ['SIGINT', 'SIGQUIT']
  const forwarded: NodeJS.Signals[] = ['SIGTERM', 'SIGHUP']
  let child: ChildProcess | undefined
  const forward = (signal: NodeJS.Signals) => child?.kill(signal)
  for (const signal of ignored) process.on(signal, ignore)
  for (const signal of forwarded) process.on(signal, forward)
  const unfollow = followStops(() => child)
  try {
    return await new Promise((resolve, reject) => {
      child = spawn(program!, args, { stdio: 'inherit', cwd: textOf(cwd), env })
      child.on('error', error => reject(cannotStart(program!, cwd, env, error)))
      child.on('exit', (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }))
    })
  } finally {
    unfollow()
    for (const signal of ignored) process.off(signal, ignore)
    for (const signal of forwarded) process.off(signal, forward)
  }
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
  !program.includes('/') && !(env.PATH ?? '').split(':').some(directory => existsSync(join(directory || '.', program)))
