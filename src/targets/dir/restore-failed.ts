/** Why a restore failed, and in which state that leaves the target. */
import { type ErrorCode, errnoOf, fullWords, isNoRoom, SavepointError } from '../../errors/errors.ts'
import { parentOf, type Raw, rawFromBytes, showPath } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { addon } from '../../native/addon.ts'
import { LOCK } from '../../native/stat.ts'
import { realPathOf } from './dir-target.ts'
import { STAGE_PREFIX } from './stage-mark.ts'

/** A restore that failed. `reversed`: the target is as it was, and there is nothing to recover. */
export class RestoreFailed extends SavepointError {
  readonly reversed: boolean

  constructor(code: ErrorCode, message: string, reversed: boolean, cause: unknown, hint = hintFor(reversed, cause)) {
    super(code, message, { hint, cause })
    this.reversed = reversed
  }
}

function hintFor(reversed: boolean, cause: unknown): string {
  if (!reversed) return 'Part of it was carried out. Mend the cause; the next savepoint command completes it'
  const own = cause instanceof SavepointError ? cause.hint : undefined
  return own ?? 'The target is back as it was. Mend the cause and try again'
}

/** What somebody has done to the way to it since it was looked at. */
const ways: Partial<Record<string, string>> = {
  ELOOP: 'there is a link now where a directory was',
  ENOENT: 'it is gone now, or a directory above it',
  ENOTDIR: 'there is something else now where a directory was',
}

/** What root has forbidden everybody for a file or directory, itself included (`chattr`). No snapshot has it. */
const locks = [
  { bit: LOCK.immutable, flag: 'i', words: 'immutable' },
  { bit: LOCK.appendOnly, flag: 'a', words: 'append-only' },
]

/** `root`: of the target, to look for what refuses a change of it. */
export function explainFailure(error: unknown, reversed: boolean, root?: number): RestoreFailed {
  if (error instanceof SavepointError) return new RestoreFailed(error.code, error.message, reversed, error)
  const code = errnoOf(error)
  const { message, path } = error as NodeJS.ErrnoException
  const where = !path ? 'a file' : path.startsWith(STAGE_PREFIX) ? 'anything in the target' : showPath(path)
  if (isNoRoom(error))
    return new RestoreFailed('disk.full', `Cannot write ${where}: ${fullWords(error)}`, reversed, error)
  if (code === 'EROFS')
    return new RestoreFailed('io.failed', `Cannot restore ${where}: its filesystem is read-only`, reversed, error)
  const locked = code === 'EPERM' && path && root !== undefined ? lockedBy(root, path, reversed) : undefined
  if (locked)
    return new RestoreFailed('io.failed', `Cannot restore ${where}: ${locked.why}`, reversed, error, locked.hint)
  const why = (code && path && ways[code]) || message
  return new RestoreFailed(code ? 'io.failed' : 'bug', `Cannot restore ${where}: ${why}`, reversed, error)
}

/** Nothing is renamed that bears such a flag, nor out of or into a directory that does. */
function lockedBy(root: number, path: Raw, reversed: boolean): { why: string; hint: string } | undefined {
  for (const place of [path, parentOf(path)]) {
    const lock = locks.find(({ bit }) => (locksOf(root, place) & bit) !== 0)
    if (!lock) continue
    const what = place === path ? 'it' : place === '' ? 'the target directory' : showPath(place)
    const target = realPathOf(root)
    const whole = target === undefined ? place : [rawFromBytes(target), place].filter(Boolean).join('/')
    const mend = `\`chattr -${lock.flag} ${quoteWord(showPath(whole))}\``
    const hint = reversed
      ? `The target is back as it was. Take that off with ${mend} and try again`
      : `Part of it was carried out. Take that off with ${mend}; the next savepoint command completes it`
    return { why: `${what} is ${lock.words} (chattr +${lock.flag})`, hint }
  }
  return undefined
}

function locksOf(root: number, path: Raw): number {
  try {
    return (path === '' ? addon.statFd(root) : addon.statAt(root, path)).locks
  } catch {
    return 0
  }
}
