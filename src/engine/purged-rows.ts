/** What rows of a timeline say of a path that is purged: counts, labels, lists of paths. Trees are purge.ts's business. */
import { isDamage } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { isWithin, type Raw } from '../model/raw-path.ts'
import type { Operation, Snapshot } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import { entryAt, withAllBelow } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { sameDeep } from '../targets/dir/plan-entries.ts'
import type { Context } from './context.ts'
import { keptLabel } from './kept-files.ts'
import { countsAgainst } from './shown-snapshot.ts'
import { sizeOf } from './whole-state.ts'

/** Sets the states of snapshots to what they are without `path`. In the transaction of the purge; the trees are stored. */
export function setPurgedStates(ctx: Context, path: Raw, rewritten: ReadonlyMap<Id, Id>): void {
  const changed = new Set<string>()
  for (const snapshot of ctx.db.snapshots(true)) {
    const root = rewritten.get(snapshot.root) ?? snapshot.root
    if (root === snapshot.root) continue
    const entry = entryAt(ctx.store, rootTreeOf(ctx.store, snapshot.root), path)
    const less = sizeOf(entry ? withAllBelow(ctx.store, { path: '', entry }) : [])
    const [files, bytes] = [snapshot.files - less.files, snapshot.bytes - less.bytes].map(count => Math.max(0, count))
    changed.add(snapshot.id)
    ctx.db.setState(snapshot.id, { ...snapshot, root, files: files!, bytes: bytes! })
  }
  for (const snapshot of ctx.db.snapshots(true)) {
    const isAnew = changed.has(snapshot.id) || (snapshot.parent !== undefined && changed.has(snapshot.parent))
    if (isAnew) countAnew(ctx, snapshot)
    if (changed.has(snapshot.id) && snapshot.type === 'kept')
      ctx.db.setState(snapshot.id, { ...snapshot, label: keptLabel(ctx, snapshot) })
  }
}

function countAnew(ctx: Context, snapshot: Snapshot): void {
  const parent = snapshot.parent === undefined ? undefined : ctx.db.snapshot(snapshot.parent)
  // What it was counted against is gone.
  if (snapshot.parent !== undefined && !parent) return
  try {
    const counts = countsAgainst(ctx, parent?.id, snapshot)
    ctx.db.setCounts(snapshot.id, counts)
    ctx.db.events.setFiles(snapshot.id, counts)
  } catch (error) {
    // A purge is not where damage is found.
    if (!isDamage(error)) throw error
  }
}

/** Whether an operation changed the path: its undo must not be silent about it. Root trees around it, before the purge. */
export function hasChanged(store: Store, path: Raw, before: Id, after: Id): boolean {
  const [was, is] = [before, after].map(root => entryAt(store, rootTreeOf(store, root), path))
  const isPurged = was?.reason === 'purged' || is?.reason === 'purged'
  return !isPurged && !sameDeep(was, is)
}

/** The lists of paths in it, without the path. */
export function detailWithout({ detail }: Operation, path: Raw): Record<string, unknown> {
  const { guarded, ...rest } = detail
  const left = guarded && typeof guarded === 'object' ? listsWithout(guarded, path, () => true) : {}
  return {
    ...listsWithout(rest, path, key => key === 'others' || key === 'mixed'),
    ...(Object.keys(left).length > 0 && { guarded: left }),
  }
}

function listsWithout(all: object, path: Raw, hasPaths: (key: string) => boolean): Record<string, unknown> {
  const isOther = (each: unknown) => typeof each !== 'string' || !isWithin(each, path)
  return Object.fromEntries(
    Object.entries(all).flatMap(([key, value]) => {
      if (!hasPaths(key) || !Array.isArray(value)) return [[key, value]]
      const left = value.filter(isOther)
      return left.length === 0 ? [] : [[key, left]]
    }),
  )
}
