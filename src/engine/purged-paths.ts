/** Of an operation that is undone: what it changed and what was purged since. Nobody knows how it was, so it stays. */
import { isWithin, type Raw } from '../model/raw-path.ts'
import { allEntries, entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'
import type { RestoreRequest } from './restore.ts'

/**
 * Adds it to what `plan` reports. Both sides of the operation have forgotten the path, so that the plan, which looks where
 * they differ, does not come across it. If several paths were purged, one that the operation left alone may be among them.
 */
export function notePurged(
  ctx: Context,
  { wanted, scope, hasPurged }: RestoreRequest,
  live: Pick<Live, 'tree'>,
  plan: RestorePlan,
): void {
  if (!hasPurged) return
  const isInside = (path: Raw) => !scope || scope.some(part => isWithin(path, part))
  for (const { path, entry } of allEntries(ctx.store, rootTreeOf(ctx.store, wanted))) {
    if (entry.reason !== 'purged' || !isInside(path)) continue
    const now = entryAt(ctx.store, live.tree, path)
    if (now && now.kind !== 'unknown') plan.uncaptured.push({ path, reason: 'purged' })
  }
}
