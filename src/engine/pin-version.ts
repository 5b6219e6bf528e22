/** What somebody else had written, and a run destroys, may be in one snapshot only: that is not thinned out as long as the run can be undone. */
import { isDamage } from '../errors/errors.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { SafeEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import type { Destroyed } from './kept-choice.ts'
import { spoolOf, spoolTarget } from './spool.ts'

/** It was captured since the run began, and mostly not long ago. */
const MAX_LOOKED_AT = 100

export function pinVersion(ctx: Context, run: string, { path, mtimeNs }: SafeEvent): void {
  const target = spoolTarget(spoolOf(ctx, run))
  const inside = path.slice(target.length + 1)
  const newest = ctx.db.snapshots().slice(-MAX_LOOKED_AT).reverse()
  const holder = newest.find(({ root }) => root !== UNREAD_ROOT && mtimeIn(ctx, root, inside) === mtimeNs)
  if (holder && !holder.holdsOthers) ctx.db.setHoldsOthers(holder.id)
}

/** Of files that are kept: those that a snapshot has already are not stored again for it. */
export function pinHolding(
  ctx: Context,
  snapshot: Snapshot,
  files: readonly (Destroyed & { mtimeNs: bigint })[],
): void {
  const isIn = ({ path, mtimeNs, isOthers }: (typeof files)[number]) =>
    isOthers && mtimeIn(ctx, snapshot.root, path) === mtimeNs
  if (!snapshot.holdsOthers && files.some(isIn)) ctx.db.setHoldsOthers(snapshot.id)
}

function mtimeIn({ store }: Context, root: string, path: string): bigint | undefined {
  try {
    return entryAt(store, rootTreeOf(store, root), path)?.mtimeNs
  } catch (error) {
    if (!isDamage(error)) throw error
    return undefined
  }
}
