/** Why a restore failed, and in which state that leaves the target. */
import { type ErrorCode, errnoOf, fullWords, isNoRoom, SavepointError } from '../../errors/errors.ts'
import { showPath } from '../../model/raw-path.ts'
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

export function explainFailure(error: unknown, reversed: boolean): RestoreFailed {
  if (error instanceof SavepointError) return new RestoreFailed(error.code, error.message, reversed, error)
  const code = errnoOf(error)
  const { message, path } = error as NodeJS.ErrnoException
  const where = !path ? 'a file' : path.startsWith(STAGE_PREFIX) ? 'anything in the target' : showPath(path)
  if (isNoRoom(error))
    return new RestoreFailed('disk.full', `Cannot write ${where}: ${fullWords(error)}`, reversed, error)
  if (code === 'EROFS')
    return new RestoreFailed('io.failed', `Cannot restore ${where}: its filesystem is read-only`, reversed, error)
  const why = (code && path && ways[code]) || message
  return new RestoreFailed(code ? 'io.failed' : 'bug', `Cannot restore ${where}: ${why}`, reversed, error)
}
