/**
 * Whether the store can give back a state that something beside it has, too: before that goes, or is said to be kept. Otherwise
 * what is destroyed may be the only one that is whole.
 */
import { isDamage, SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { wholenessOf } from '../store/whole-content.ts'
import { rootEntryOf, unread } from '../targets/dir/capture.ts'
import type { Context } from './context.ts'

/**
 * Answers those that are not whole. `readsBlocks`: damage that nobody has noticed is found, too, by reading each block, and each
 * clone of a large file, once.
 */
export function lostByStore(ctx: Context, snapshots: readonly Snapshot[], readsBlocks = true): Snapshot[] {
  if (snapshots.length === 0 || (!readsBlocks && !isKnownDamaged(ctx))) return []
  // What was remembered must not hide that it is lost.
  ctx.store.forgetKept()
  const whole = wholenessOf(ctx.store, readsBlocks)
  const isHeld = (root: Id): boolean => {
    if (root === UNREAD_ROOT) return false
    try {
      return whole.hasObject(root) && whole.hasAllOf(rootEntryOf(ctx.store, root))
    } catch (error) {
      if (isDamage(error)) return false
      throw error
    }
  }
  return snapshots.filter(({ root }) => !isHeld(root))
}

/** Or its index was made anew, which may have found that something is lost. */
const isKnownDamaged = ({ store }: Context): boolean => store.hasKnownDamage() || store.index.made !== 0

/** What only they have would be lost with them. */
export function requireHeldByStore(ctx: Context, verb: string, snapshots: readonly Snapshot[]): void {
  const [lost] = lostByStore(ctx, snapshots)
  if (!lost) return
  // Nothing of it is lost, and no repair stores it.
  if (lost.root === UNREAD_ROOT) throw unread()
  throw new SavepointError(
    'store.damaged',
    `Cannot ${verb}: the store has lost parts of ${lost.id}, which ${lost.backend} keeps until now`,
    { hint: '`savepoint verify --repair` stores them again; or delete that snapshot' },
  )
}
