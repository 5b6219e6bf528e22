/** Runs the programs by which a filesystem is told what to do. They answer at once, so we wait. */
import { type SpawnSyncOptionsWithBufferEncoding, spawnSync } from 'node:child_process'
import { mkdirSync, rmdirSync } from 'node:fs'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { addon } from '../native/addon.ts'

/** A list of differences that is longer is not worth reading: looking at everything costs no more. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
/** A filesystem that is busy with deleting may take its time; one that hangs must not hang us for ever. */
const LIMIT_MS = 120_000
/** Where distributions put them, whatever the user's PATH says. */
const SYSTEM_PATH = '/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin'

export interface Finished {
  works: boolean
  stdout: Buffer
  /** What it said when it failed, in one line. */
  why: string
  /** It was ended from outside, or took too long: what it was told may be done nevertheless. */
  isCut: boolean
}

let mayStopAll = false

/** Ctrl-C ends whatever `work` starts: for what is done again later, however far it got. */
export function stoppably<T>(work: () => T): T {
  mayStopAll = true
  try {
    return work()
  } finally {
    mayStopAll = false
  }
}

let handedDown: number | undefined

/** Whatever `work` starts has this descriptor open until it ends, also when we are killed. */
export function handingDown<T>(fd: number, work: () => T): T {
  handedDown = fd
  try {
    return work()
  } finally {
    handedDown = undefined
  }
}

const lendingWord = '/proc/self/savepoint-lends-its-rights'

/** What `work` starts is let through to our home, as we are, by the tracer of a run that we are part of (native/helper/protect.h). */
export function lendingRights<T>(work: () => T): T {
  sayIt(mkdirSync)
  try {
    return work()
  } finally {
    sayIt(rmdirSync)
  }
}

/** Fails always. */
function sayIt(say: (path: string) => void): void {
  try {
    say(lendingWord)
  } catch {
    // No tracer needs to hear it where there is no /proc.
  }
}

/** What is said to who sends us a signal meanwhile, which is answered only afterwards; '' is nothing. */
export type SignalNote = (what: string, limitMs: number) => string

let signalNote: SignalNote = () => ''

/** For all programs from now on. */
export function answerSignals(note: SignalNote): void {
  signalNote = note
}

/** `isStoppable`: Ctrl-C ends it, because it may take long, and what it leaves is known to be none. */
export function runProgram(
  program: string,
  args: readonly string[],
  isStoppable = false,
  limitMs = LIMIT_MS,
): Finished {
  const env = { LC_ALL: 'C', PATH: `${process.env.PATH ?? ''}:${SYSTEM_PATH}` }
  const word = args[0]?.startsWith('-') === false ? `${program} ${args[0]}` : program
  addon.signalNote(Buffer.from(signalNote(word, limitMs)))
  const result = spawnSync(program, args, {
    env,
    maxBuffer: MAX_OUTPUT_BYTES,
    timeout: limitMs,
    stdio: ['ignore', 'pipe', 'pipe', ...(handedDown === undefined ? [] : [handedDown])],
    // The Ctrl-C of a terminal reaches all of its group: a program that it ends may have done its work, and cannot say so.
    detached: !isStoppable && !mayStopAll,
  } as SpawnSyncOptionsWithBufferEncoding)
  addon.signalNote(Buffer.alloc(0))
  if (result.error) {
    const isCut = errnoOf(result.error) === 'ETIMEDOUT'
    const isMissing = errnoOf(result.error) === 'ENOENT'
    const late = isCut ? `${program} did not answer within ${limitMs / 1000} s` : undefined
    const why = isMissing ? `${program} is not installed` : (late ?? result.error.message)
    return { works: false, stdout: Buffer.alloc(0), why, isCut }
  }
  const lines = result.stderr.toString().trim().split('\n')
  // What the last line says may follow from what stands above it.
  const said = /^internal error/.test(lines.at(-1)!) ? lines.join(' ') : lines.at(-1)!
  const ended = `${program} ended with ${result.status ?? result.signal}`
  const why = said.replace(/^(ERROR|WARNING|cannot)(: | )/i, '') || ended
  return { works: result.status === 0, stdout: result.stdout, why, isCut: result.signal !== null }
}

/** For what must work: the error says what was tried, and what to do about the usual reasons. */
export function mustRun(what: string, program: string, args: readonly string[], isStoppable = false): Buffer {
  const { works, stdout, why, isCut } = runProgram(program, args, isStoppable)
  if (works) return stdout
  throw failed(what, why, cutData(isCut))
}

const cutData = (isCut: boolean): { isCut: true } | undefined => (isCut ? { isCut } : undefined)

/** Whether the filesystem did not answer, or nobody waited for it: the next question would fare no better. */
export const isCutOff = (error: unknown): boolean => error instanceof SavepointError && error.data?.isCut === true

export function failed(what: string, why: string, data?: Record<string, unknown>): SavepointError {
  // Only who takes one can choose another backend.
  const other = /^(take|clone|make) /.test(what) ? ', or take the snapshot with --backend cas' : ''
  const hint = `Nothing was changed. ${fixFor(why) ?? 'See `savepoint doctor` for what works here'}${other}`
  return new SavepointError(isFull(why) ? 'disk.full' : 'backend.failed', `Cannot ${what}: ${why}`, { hint, data })
}

const isFull = (why: string): boolean => /no space left|quota (exceeded|is used up)|out of space/i.test(why)

/** What to do about the state that the filesystem is in; undefined: it is something else. */
export function fixFor(why: string): string | undefined {
  if (isFull(why))
    return 'Free some space there (`savepoint gc` removes snapshots that were deleted more than 7 days ago)'
  return /read-only file system|filesystem is read-only/i.test(why)
    ? 'Mount it for writing again (mount -o remount,rw)'
    : undefined
}
