/** Restores that find no room: for the state before, or for what they bring back. */
import { isDiskFull, SavepointError } from '../errors/errors.ts'
import { showPath } from '../model/raw-path.ts'
import type { OperationKind } from '../model/snapshot.ts'
import { RestoreFailed } from '../targets/dir/restore-failed.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import type { Context } from './context.ts'
import { keptOf } from './native-ref.ts'
import type { RestoreRequest } from './restore.ts'

const LISTED = 3

/** The state before cannot be stored, so that nothing was changed. */
export function cannotSave(kind: OperationKind, cause: Error): SavepointError {
  const without = kind === 'rollback' ? 'say --no-safety' : '`savepoint rollback SNAP --no-safety -- PATH`'
  const [code, mend] = isDiskFull(cause)
    ? (['disk.full', 'Free some space (1 MB or more)'] as const)
    : (['io.failed', 'Make it writable'] as const)
  return new SavepointError(code, `Cannot save the state before the ${kind}: ${cause.message}`, {
    hint: `Nothing was changed. ${mend}; \`savepoint rollback SNAP --to DIR\` writes it elsewhere; or, if the present state may be lost, ${without}`,
    cause,
  })
}

/** What helps where the filesystem keeps snapshots: the newest one stays there, whatever the limit. */
export function whatSnapshotsHold(ctx: Context, { snapshot }: Pick<RestoreRequest, 'snapshot'>): string {
  const kept = ctx.db.snapshots().filter(each => keptOf(each) !== undefined)
  const states = new Set(kept.map(({ nativeRef }) => nativeRef)).size
  const held = 'Snapshots that the filesystem keeps hold the space of what has changed since'
  const older = 'with `snapshots.retention.native_max: 1`, `savepoint prune` leaves older ones to the store'
  const elsewhere = snapshot ? `\`savepoint rollback ${snapshot.id} --to DIR\` writes it to another disk` : ''
  if (states > 1) return `${held}: ${older}`
  const ways = [...(states === 1 ? [`take one more (\`savepoint snapshot\`): ${older}`] : []), elsewhere]
  return [held, ways.filter(Boolean).join('; or ')].filter(Boolean).join(': ')
}

/** What could not be saved is left alone, and may be just what fills the disk. */
export function nameWhatStays(error: unknown, plan: RestorePlan): unknown {
  const stays = plan.leftAlone.filter(({ why }) => why === 'no-room').map(({ path }) => showPath(path))
  if (!(error instanceof RestoreFailed) || error.code !== 'disk.full' || stays.length === 0) return error
  const what = `${stays.slice(0, LISTED).join(', ')}${stays.length > LISTED ? ` and ${stays.length - LISTED} more` : ''}`
  const hint = `${error.hint}. There is no room to save ${what}: delete it yourself if it may be lost, or say \`savepoint rollback SNAP --no-safety\``
  return new RestoreFailed(error.code, error.message, error.reversed, error.cause, hint)
}
