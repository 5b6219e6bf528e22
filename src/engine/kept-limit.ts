/**
 * How many states archives and filesystems keep beside the store: `retention.max_count` and `native_max`. Beyond that the oldest
 * go, and only there: the snapshots stay, because the store has all of them, and what somebody asked for never goes by itself.
 */
import { leftOutText } from '../model/only-there.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { lostByStore } from './held-by-store.ts'
import { noteForgotten, removeOwnGoing } from './native-going.ts'
import { newOperation } from './new-operation.ts'

/** What reading will find of those that nobody has read. */
export interface Foreseen {
  /** Ids of those that are not there any more. */
  lost: ReadonlySet<string>
  /** Ids of those that cannot be read now. */
  away: ReadonlySet<string>
}

/** A snapshot that something beside the store kept until now, and the rule by which that ends. */
export interface LeftToStore {
  snapshot: Snapshot
  rule: string
}

/** Newest first. One that nobody has read stays until then; `foreseen`: what goes when that has happened. */
export function beyondLimits(ctx: Context, foreseen?: Foreseen): LeftToStore[] {
  const { max_count, native_max } = ctx.config.snapshots.retention
  const kept = ctx.db.snapshots().filter(({ id, nativeRef }) => nativeRef !== undefined && !foreseen?.lost.has(id))
  const isRead = ({ id, root }: Snapshot) => (foreseen ? !foreseen.away.has(id) : root !== UNREAD_ROOT)
  const byBackend = Map.groupBy(kept.reverse(), ({ backend }) => backend)
  return [...byBackend].flatMap(([backend, snapshots]) => {
    const [name, limit] = backend === 'archive' ? ['max_count', max_count] : ['native_max', native_max]
    const states = [...new Set(snapshots.map(({ nativeRef }) => nativeRef))].slice(0, limit)
    const beyond = snapshots.filter(snapshot => isRead(snapshot) && !states.includes(snapshot.nativeRef))
    return heldByStore(ctx, backend === 'archive' ? beyond : readWhole(ctx, beyond)).map(snapshot => ({
      snapshot,
      rule: `${name} (${limit})`,
    }))
  })
}

/** What the store was not given of one, only its filesystem has. */
function readWhole(ctx: Context, beyond: Snapshot[]): Snapshot[] {
  return beyond.filter(({ id, backend, skipped, skippedCount }) => {
    if (skippedCount > 0)
      ctx.warn(
        `${id} stays in ${backend}, beyond its limit: only there is its ${leftOutText(skipped, skippedCount)}; delete it if that is not needed`,
      )
    return skippedCount === 0
  })
}

/**
 * What the store has lost of one, only that has. All contents of an archive are read to write the next one, and so they are
 * here; of what a filesystem keeps only what the index knows, as this shall cost the change.
 */
function heldByStore(ctx: Context, beyond: Snapshot[]): Snapshot[] {
  const read = beyond.filter(({ root }) => root !== UNREAD_ROOT)
  const lost = new Set(lostByStore(ctx, read, beyond[0]?.backend === 'archive'))
  for (const { id, backend } of lost)
    ctx.warn(
      `${id} stays in ${backend}, beyond its limit: the store has lost parts of it, which \`savepoint verify --repair\` stores again`,
    )
  return beyond.filter(snapshot => !lost.has(snapshot))
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
  removeOwnGoing(ctx)
  return going
}
