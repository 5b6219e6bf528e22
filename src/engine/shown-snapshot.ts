/** Snapshots as people see them: a deleted one is in no listing, so it is nobody's parent, and nothing is counted against it. */
import { isDamage } from '../errors/errors.ts'
import type { ChangeCounts } from '../model/entry.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { countChanges } from '../store/tree-diff.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import { archiveDamage } from './archive-check.ts'
import type { Context } from './context.ts'

export type Find = (id: string) => Snapshot | undefined

/** The nearest ancestor that is not deleted. */
export function shownParent(find: Find, snapshot: Snapshot): string | undefined {
  let parent = snapshot.parent
  while (parent !== undefined && find(parent)?.deletedAt !== undefined) parent = find(parent)?.parent
  return parent
}

/** With that parent, counts against it, and what is wrong with its archive. */
export function asShown(ctx: Context, snapshot: Snapshot, find: Find = id => ctx.db.snapshot(id)): Snapshot {
  const damage = archiveDamage(ctx.timelineDir, snapshot)
  const shown = withShownParent(ctx, snapshot, find)
  return damage === undefined ? shown : { ...shown, damage }
}

function withShownParent(ctx: Context, snapshot: Snapshot, find: Find): Snapshot {
  const parent = shownParent(find, snapshot)
  if (parent === snapshot.parent) return snapshot
  const before = parent === undefined ? undefined : find(parent)
  // Of what nobody has read there is nothing to count yet.
  if (snapshot.root === UNREAD_ROOT || before?.root === UNREAD_ROOT) return { ...snapshot, parent }
  try {
    return { ...snapshot, parent, counts: knownCounts(ctx, before, snapshot) }
  } catch (error) {
    // A listing is not where damage is found.
    if (!isDamage(error)) throw error
    return { ...snapshot, parent }
  }
}

/** One command lists them several times; what is content-addressed does not change. */
const counted = new WeakMap<Context, Map<string, ChangeCounts>>()
const MAX_COUNTED = 10_000

function knownCounts(ctx: Context, parent: Snapshot | undefined, snapshot: Snapshot): ChangeCounts {
  const before = counted.get(ctx)
  const known = before && before.size < MAX_COUNTED ? before : new Map<string, ChangeCounts>()
  counted.set(ctx, known)
  const key = `${parent?.root} ${snapshot.root}`
  const counts = known.get(key) ?? countsAgainst(ctx, parent?.id, snapshot)
  known.set(key, counts)
  return counts
}

/** What a state can be compared with: the snapshot, or where that is not read yet, what it came after. */
export function readAncestor({ db }: Pick<Context, 'db'>, id: string | undefined): Snapshot | undefined {
  const snapshot = id === undefined ? undefined : db.snapshot(id)
  return snapshot?.root === UNREAD_ROOT ? readAncestor({ db }, snapshot.parent) : snapshot
}

export const countsAgainst = (
  { store, db }: Pick<Context, 'store' | 'db'>,
  parent: string | undefined,
  { root }: Snapshot,
): ChangeCounts => countChanges(stateChanges(store, readAncestor({ db }, parent)?.root, root))

/** Against the parent that it has by now, or that is read by now. */
export function recount(ctx: Pick<Context, 'store' | 'db'>, id: string): void {
  const snapshot = ctx.db.snapshot(id)!
  if (snapshot.root === UNREAD_ROOT) return
  try {
    const counts = countsAgainst(ctx, snapshot.parent, snapshot)
    ctx.db.setCounts(id, counts)
    ctx.db.events.setFiles(id, counts)
  } catch (error) {
    // Damage is found, and said, by those who look for it.
    if (!isDamage(error)) throw error
  }
}
