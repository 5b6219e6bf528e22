/**
 * Directories inside the target may be targets of their own. One that a restore makes anew is another directory to the
 * system, but not to its user: the replacement is ours, so its timeline goes on with it.
 */
import type { Id } from '../model/entry.ts'
import { isWithin, type Raw } from '../model/raw-path.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { identityOf, sameIdentity, statDir } from '../targets/dir/dir-target.ts'
import type { Context } from './context.ts'
import { allTargets, relativeTo, writeTarget } from './target-registry.ts'

/** Trees of the target around the restore. May be called again: what already belongs to its timeline is passed over. */
export function keepInnerTargets(ctx: Context, before: Id, after: Id, scope: readonly Raw[] | undefined): void {
  for (const target of allTargets(ctx.home)) {
    const path = relativeTo(ctx.targetPath, target.path)
    if (!path || !wasMade(ctx, before, after, path)) continue
    // Outside the scope it was somebody else who made it.
    if (scope && !scope.some(part => isWithin(path, part) || isWithin(part, path))) continue
    const stat = statDir(target.path)
    if (stat && !sameIdentity(identityOf(stat), target.identity)) writeTarget({ ...target, identity: identityOf(stat) })
  }
}

/** Whether the path was known to be no directory before, and is one now. */
function wasMade(ctx: Context, before: Id, after: Id, path: Raw): boolean {
  const was = entryAt(ctx.store, before, path)?.kind
  return was !== 'dir' && was !== 'unknown' && entryAt(ctx.store, after, path)?.kind === 'dir'
}
