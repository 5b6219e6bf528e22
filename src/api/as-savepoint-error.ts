/** Whatever was thrown, as an error of the catalogue; the same on all faces. */
import manifest from '../../package.json' with { type: 'json' }
import { errnoOf, fullWords, isNoRoom, SavepointError } from '../errors/errors.ts'
import { sizeLimitOf } from '../errors/size-limit.ts'

/** System calls that failed are the machine's state; anything else that escapes is a defect of ours. */
export function asSavepointError(thrown: unknown): SavepointError {
  if (thrown instanceof SavepointError) return thrown
  if (thrown instanceof Error && thrown.name === 'AbortError') {
    return new SavepointError('cancelled', 'Cannot finish: cancelled', {
      hint: 'Nothing is lost: `savepoint status` says where things stand',
      cause: thrown,
    })
  }
  const errno = errnoOf(thrown)
  if (errno === 'EBUSY' && 'errcode' in (thrown as object))
    return new SavepointError(
      'busy',
      'Cannot go on: another process is in the middle of writing, and does not finish',
      {
        hint: 'Is one stopped (Ctrl-Z)? Let it go on, or end it, then say the same again; nothing is lost',
        cause: thrown,
      },
    )
  if (errno) {
    const limit = sizeLimitOf(thrown)
    const message = limit?.message ?? (errno === 'EDQUOT' ? fullWords(thrown) : (thrown as Error).message)
    const code = isNoRoom(thrown) && !limit ? 'disk.full' : 'io.failed'
    const hint = code === 'disk.full' ? 'Free some space, then say the same again; nothing is lost' : limit?.hint
    return new SavepointError(code, `Cannot go on: ${message}`, { hint, data: { errno }, cause: thrown })
  }
  const message = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  return new SavepointError('bug', `Cannot go on: this is a defect of Savepoint ${manifest.version} (${message})`, {
    hint: `Your files and snapshots are as the last finished step left them; please report the lines below (node ${process.version}, ${process.platform} ${process.arch})`,
    cause: thrown,
  })
}
