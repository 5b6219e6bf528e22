/**
 * What existed in a state but was not captured, and is gone: no restore brings it back. What a filesystem keeps may have it. Diffs leave such paths out, so
 * without this a `git clean -fdx` that took an ignored database would look as if nothing had happened.
 */
import type { Id, UnknownReason } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { Skipped } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import { differingEntries } from '../store/tree-diff.ts'
import type { Context } from './context.ts'
import { keptCopies } from './kept-copies.ts'
import { hasCaptured } from './known-path.ts'
import type { Gone, GonePath } from './results.ts'

/** How many are listed: a tree full of ignored files must not fill a report. */
const LISTED_GONE = 100

/**
 * Come and go by themselves, or lie elsewhere: nothing of the user's is lost with the name. Not so a mount: what was unmounted
 * leaves its directory, and of which nothing is left may have been a nested subvolume, which `rm -r` deletes with all in it.
 */
const passing: ReadonlySet<UnknownReason> = new Set(['store', 'socket', 'lock', 'vanished'])

export const isPassing = (reason: UnknownReason): boolean => passing.has(reason)

export const noneGone: Gone = { count: 0, paths: [] }

/** Trees of the target. Only what is missing from `after` and also from `now`: what was made again since is not gone. */
export function missingUnprotected(
  { store }: Context,
  before: Id,
  after: Id,
  now = after,
  scope?: readonly Raw[],
): Skipped[] {
  const missingNow = now === after ? undefined : new Set(missing(store, before, now, scope).map(({ path }) => path))
  return missing(store, before, after, scope).filter(({ path }) => missingNow?.has(path) ?? true)
}

export const toGone = (ctx: Context, gone: Skipped[]): Gone => ({
  count: gone.length,
  paths: withVersions(ctx, gone.slice(0, LISTED_GONE)),
})

/**
 * It may have been captured once, before rules or caps left it out; and what a filesystem keeps has it in any case. Snapshot by
 * snapshot: the paths share most trees.
 */
function withVersions(ctx: Context, gone: Skipped[]): GonePath[] {
  const found = new Map<Raw, string>()
  for (const { id, root } of gone.length > 0 ? ctx.db.snapshots().reverse() : []) {
    if (found.size === gone.length) break
    for (const { path } of gone) if (!found.has(path) && hasCaptured(ctx, root, path)) found.set(path, id)
  }
  const kept = keptCopies(
    ctx,
    gone.map(({ path }) => path),
  )
  return gone.map(skipped => ({ ...skipped, snapshot: found.get(skipped.path), kept: kept.get(skipped.path) }))
}

function missing(store: Store, before: Id, after: Id, scope: readonly Raw[] | undefined): Skipped[] {
  const found: Skipped[] = []
  for (const pair of differingEntries(store, before, after, scope)) {
    const reason = pair.before?.reason
    if (reason !== undefined && !pair.after && !passing.has(reason)) found.push({ path: pair.path, reason })
  }
  return found
}
