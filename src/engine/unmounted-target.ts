/** A target that was a filesystem of its own, and is the directory that this was mounted on: what is in there is nobody's work. */
import { mountedAt } from '../backends/mounts-below.ts'
import type { Context } from './context.ts'
import { keptOf } from './native-ref.ts'

/** What to do where another directory has taken the target's place. */
export function hintOfReplaced(ctx: Context): string {
  const meant =
    'if this is meant to be the same workspace: savepoint snapshot --force makes the timeline belong to the new directory'
  const kept = ctx.db.snapshots(true).map(keptOf)
  const last = kept.findLast(each => each !== undefined)
  if (!last || mountedAt(ctx.targetPath) !== '') return `I${meant.slice(1)}`
  // Only what is mounted at the target goes back as a whole.
  const mounted = kept.findLast(each => each?.backend.wholeRollback !== undefined)
  if (mounted) return `Nothing is mounted there: mount the filesystem of ${mounted.backend.whereOf(mounted.ref)} again`
  return `Nothing is mounted there: if the filesystem of ${last.backend.whereOf(last.ref)} was, mount it again; ${meant}`
}
