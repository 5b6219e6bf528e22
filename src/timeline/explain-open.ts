/** Why a timeline cannot be opened, and what helps. */
import { dirname } from 'node:path'
import { isDamage, isNoRoom, isUnwritable, SavepointError } from '../errors/errors.ts'
import { sizeLimitOf } from '../errors/size-limit.ts'

export const damageHint = (file: string): string =>
  `\`savepoint verify --repair\` saves what can be read of ${file} into a new one and keeps the damaged one; or bring it back from a backup. Other directories can be protected and restored meanwhile; \`gc\`, \`verify\` and \`purge\` need every timeline`

export function explainOpen(file: string, cause: unknown): SavepointError {
  if (isDamage(cause)) return cause
  const message = `Cannot open the timeline: ${(cause as Error).message}`
  const limit = sizeLimitOf(cause)
  if (limit)
    return new SavepointError('io.failed', `Cannot open the timeline: ${limit.message}`, { hint: limit.hint, cause })
  if (isNoRoom(cause)) {
    const hint = 'Free some space, or set TMPDIR to a directory that has some; nothing is lost'
    return new SavepointError('disk.full', message, { hint, cause })
  }
  if (isUnwritable(cause)) {
    const hint = `Look at the permissions of ${dirname(file)}, and whether it is mounted read-only`
    return new SavepointError('io.failed', message, { hint, cause })
  }
  return new SavepointError('store.damaged', message, { hint: damageHint(file), cause })
}
