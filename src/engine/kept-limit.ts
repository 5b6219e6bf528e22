/**
 * How many states archives and filesystems keep beside the store: `retention.max_count` and `native_max`. Beyond that the oldest
 * go, and only there: the snapshots stay, because the store has all of them, and what somebody asked for never goes by itself.
 */
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { noteForgotten, removeGoing } from './native-going.ts'
import { newOperation } from './new-operation.ts'

/** A snapshot that something beside the store kept until now, and the rule by which that ends. */
export interface LeftToStore {
  snapshot: Snapshot
  rule: string
}

/** Newest first. One that nobody has read stays until then; `onceRead`: what goes when that has happened. */
export function beyondLimits(ctx: Context, onceRead = false): LeftToStore[] {
  const { max_count, native_max } = ctx.config.snapshots.retention
  const kept = ctx.db.snapshots().filter(({ nativeRef }) => nativeRef !== undefined)
  const byBackend = Map.groupBy(kept.reverse(), ({ backend }) => backend)
  return [...byBackend].flatMap(([backend, snapshots]) => {
    const [name, limit] = backend === 'archive' ? ['max_count', max_count] : ['native_max', native_max]
    const states = [...new Set(snapshots.map(({ nativeRef }) => nativeRef))].slice(0, limit)
    return snapshots
      .filter(({ nativeRef, root }) => (onceRead || root !== UNREAD_ROOT) && !states.includes(nativeRef))
      .map(snapshot => ({ snapshot, rule: `${name} (${limit})` }))
  })
}

/** Called under the timeline's lock, after a state was added or read. Answers what was left to the store. */
export function keepWithinLimits(ctx: Context): LeftToStore[] {
  const going = beyondLimits(ctx)
  if (going.length === 0) return going
  const ids = going.map(({ snapshot }) => snapshot.id)
  const rule = [...new Set(going.map(each => each.rule))].join('; ')
  const what = [...new Set(going.map(({ snapshot }) => snapshot.backend))].join(', ')
  ctx.db.transaction(() => {
    for (const id of ids) ctx.db.native.setStored(id)
    noteForgotten(
      ctx.db,
      going.map(({ snapshot }) => snapshot),
    )
    ctx.db.addOperation({
      ...newOperation(ctx, 'retention', `left ${ids.join(', ')} to the store alone (was: ${what})`, { snapshots: ids }),
      ...{ state: 'fixed', rule },
    })
  })
  removeGoing(ctx.timelineDir, ctx.db, ctx.warn)
  return going
}
