/** A target that was a filesystem of its own, and is the directory that this was mounted on: what is in there is nobody's work. */
import { mountedAt } from '../backends/mounts-below.ts'
import type { Context } from './context.ts'
import { keptOf } from './native-ref.ts'

/** Where its filesystem keeps the last snapshot of it; undefined: something is mounted there, or it was no filesystem. */
export function unmountedFrom(ctx: Context): string | undefined {
  const kept = ctx.db.snapshots(true).map(keptOf)
  // Only what is mounted at the target goes back as a whole.
  const last = kept.findLast(each => each?.backend.wholeRollback !== undefined)
  return last && mountedAt(ctx.targetPath) === '' ? last.backend.whereOf(last.ref) : undefined
}
