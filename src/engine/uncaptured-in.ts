/** What belongs to the state of a PARTIAL snapshot and is not in it: whoever goes back to it must know what he does not get. */
import type { UnknownReason } from '../model/entry.ts'
import { isGitInternal, isWithin, type Raw } from '../model/raw-path.ts'
import { type Skipped, type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { allEntries } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { partialReasons } from '../targets/dir/tree-builder.ts'
import type { Context } from './context.ts'
import { unlessDamaged } from './snapshot.ts'

/** For who writes it elsewhere: with what was mounted there, or a subvolume, which never belongs to a snapshot. */
export const missingElsewhere = (ctx: Context, snapshot: Snapshot, part: Part = {}): Skipped[] =>
  find(ctx, snapshot, part, reason => reason === 'mount' || partialReasons.has(reason))

/** What was mounted there, and nested subvolumes. Of what is not read, or has lost parts in the store, nothing is known. */
export const mountsIn = (ctx: Context, snapshot: Snapshot): Raw[] =>
  snapshot.root === UNREAD_ROOT
    ? []
    : (unlessDamaged(() => find(ctx, snapshot, {}, reason => reason === 'mount').map(({ path }) => path)) ?? [])

/** In the tree, not the row of the snapshot, which lists only the first. */
export const uncapturedIn = (ctx: Context, snapshot: Snapshot, part: Part): Skipped[] =>
  snapshot.skippedCount === 0 ? [] : find(ctx, snapshot, part, reason => partialReasons.has(reason))

interface Part {
  scope?: readonly Raw[]
  withoutGit?: boolean
}

function find(
  { store }: Context,
  { root }: Snapshot,
  { scope, withoutGit }: Part,
  isMissing: (reason: UnknownReason) => boolean,
): Skipped[] {
  const found: Skipped[] = []
  for (const { path, entry } of allEntries(store, rootTreeOf(store, root))) {
    if (entry.reason === undefined || !isMissing(entry.reason)) continue
    const isMeant = scope?.some(each => isWithin(path, each)) ?? true
    if (isMeant && !(withoutGit && isGitInternal(path))) found.push({ path, reason: entry.reason })
  }
  return found
}
