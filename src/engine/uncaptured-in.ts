/** What belongs to the state of a PARTIAL snapshot and is not in it: whoever writes that elsewhere must know what he does not get. */
import { isGitInternal, isWithin, type Raw } from '../model/raw-path.ts'
import type { Skipped, Snapshot } from '../model/snapshot.ts'
import { allEntries } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { partialReasons } from '../targets/dir/tree-builder.ts'
import type { Context } from './context.ts'

/** In the tree, not the row of the snapshot, which lists only the first. */
export function uncapturedIn(
  { store }: Context,
  { root, skippedCount }: Snapshot,
  { scope, withoutGit }: { scope?: readonly Raw[]; withoutGit?: boolean } = {},
): Skipped[] {
  const found: Skipped[] = []
  for (const { path, entry } of skippedCount > 0 ? allEntries(store, rootTreeOf(store, root)) : []) {
    if (entry.reason === undefined || !partialReasons.has(entry.reason)) continue
    const isMeant = scope?.some(each => isWithin(path, each)) ?? true
    if (isMeant && !(withoutGit && isGitInternal(path))) found.push({ path, reason: entry.reason })
  }
  return found
}
