/**
 * What a run moved to where it is captured from where it was not: from outside, or from what rules or limits leave out. There
 * is no other, and no state before the run has it: to take the run back must not remove it.
 */
import type { Id } from '../model/entry.ts'
import { isGitInternal, type Raw } from '../model/raw-path.ts'
import type { Run } from '../model/snapshot.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { Span } from '../targets/dir/others-paths.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Context } from './context.ts'
import { repositoryOf } from './own-repositories.ts'
import { statLive } from './resolve-path.ts'
import { namesIn } from './touched-paths.ts'
import { UncapturedEntries } from './uncaptured-entries.ts'

/** Root trees around the run. What it made itself, there or outside, is its own work, also in a file that it emptied for that. */
export function onlyCopies(ctx: Context, run: Run, states: { before: Id; after: Id }): Span[] {
  const names = namesIn(ctx, run.id, run.endedAt)
  const tree = rootTreeOf(ctx.store, states.before)
  const uncaptured = new UncapturedEntries(ctx.store, tree)
  const isFromUncaptured = (path: Raw): boolean => {
    if (names.broughtBy(path)) return true
    const first = names.firstOf(path)
    return first !== undefined && first !== path && uncaptured.of(first) !== undefined
  }
  // Git moves only what it made; what is in a repository fits together.
  const isOfKnownRepository = (path: Raw): boolean =>
    isGitInternal(path) && entryAt(ctx.store, tree, repositoryOf(path)!) !== undefined
  const paths: Raw[] = []
  for (const { path, after } of stateChanges(ctx.store, states.before, states.after)) {
    if (!after || after.kind === 'dir' || after.kind === 'unknown') continue
    if (!isFromUncaptured(path) || isOfKnownRepository(path)) continue
    if (isOlder(ctx, path, run.startedAt, names.emptiedBy(path) === run.id)) paths.push(path)
  }
  return paths.length === 0 ? [] : [{ before: states.after, after: states.after, paths, isOnlyCopy: true }]
}

/** `wasEmptied`: then what is in it is no older than its time. Some filesystems do not say when a file was made. */
function isOlder(ctx: Context, path: Raw, ms: number, wasEmptied: boolean): boolean {
  const stat = statLive(ctx, path)
  if (!stat) return false
  const since = wasEmptied ? stat.mtimeNs : stat.btimeNs || stat.mtimeNs
  return Number(since / 1_000_000n) < ms
}
