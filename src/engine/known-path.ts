/** Whether snapshots know a path: what a user names must mean something to them. */
import { isDamage, SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { lookAtLive } from './capture-live.ts'
import type { Context } from './context.ts'
import { keptCopyHint } from './kept-copies.ts'
import { existsLive, typedPath } from './resolve-path.ts'

/** A state that the store has lost has nothing any more; of one that could not be read yet, nothing is known. */
export function hasCaptured(ctx: Context, root: Id, path: Raw): boolean {
  if (root === UNREAD_ROOT) return false
  try {
    const entry = entryAt(ctx.store, rootTreeOf(ctx.store, root), path)
    return entry !== undefined && entry.kind !== 'unknown'
  } catch (error) {
    if (isDamage(error)) return false
    throw error
  }
}

/**
 * Each must be captured in the snapshot, or absent there but known elsewhere: then going back to it removes the path. `lent`:
 * the tree with all that it has, where that of the snapshot has not.
 */
export async function requireKnown(ctx: Context, snapshot: Snapshot, paths: readonly Raw[], lent?: Id): Promise<void> {
  const tree = lent ?? rootTreeOf(ctx.store, snapshot.root)
  for (const path of paths) if (!(await isKnown(ctx, tree, path))) throw notIn(ctx, path, snapshot)
}

async function isKnown(ctx: Context, tree: Id, path: Raw): Promise<boolean> {
  if (path === '') return true
  const entry = entryAt(ctx.store, tree, path)
  if (entry) return entry.kind !== 'unknown'
  if (ctx.db.snapshots(true).some(other => hasCaptured(ctx, other.root, path))) return true
  return isCapturable(ctx, path)
}

/** Whether the path exists and the next snapshot would have it. */
export async function isCapturable(ctx: Context, path: Raw): Promise<boolean> {
  if (!existsLive(ctx, path)) return false
  const entry = entryAt(ctx.store, (await lookAtLive(ctx)).tree, path)
  return entry !== undefined && entry.kind !== 'unknown'
}

function notIn(ctx: Context, path: Raw, snapshot: Snapshot): SavepointError {
  return unknownPath(ctx, path, `${nameOf(snapshot)} does not have it`, keptCopyHint(ctx, path, snapshot))
}

/** `elsewhere`: where it is, if somebody else has it; ends in a space. */
export function unknownPath(ctx: Context, path: Raw, state: string, elsewhere = ''): SavepointError {
  const typed = typedPath(ctx, path)
  return new SavepointError('path.unknown', `Cannot restore ${showPath(path)}: ${state}`, {
    hint: `${elsewhere}\`savepoint history ${typed}\` shows its versions, \`savepoint coverage ${typed}\` whether it is protected`,
  })
}

export const nameOf = (snapshot: Snapshot): string =>
  snapshot.label ? `${snapshot.id} (${snapshot.label})` : snapshot.id
