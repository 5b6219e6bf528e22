/** `history PATH`: the versions of one path, snapshot by snapshot. */

import { SavepointError } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { isWithin, type Raw, showPath } from '../model/raw-path.ts'
import { UNREAD_ROOT } from '../model/snapshot.ts'
import { addon, type Stat } from '../native/addon.ts'
import { sameContent, sameMetadata, treeChanges } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { S_IFDIR, S_IFMT } from '../targets/dir/walk-record.ts'
import type { Context } from './context.ts'
import { keptCopies } from './kept-copies.ts'
import { lookLive, resolvePath, typedPath } from './resolve-path.ts'
import type { HistoryResult, HistoryVersion } from './results.ts'
import { shownParent } from './shown-snapshot.ts'

/** Oldest first; each version is compared with the snapshot's own parent, so that branches read right. */
export async function history(ctx: Context, path: string): Promise<HistoryResult> {
  const raw = resolvePath(ctx, path)
  // What its filesystem keeps, and could not be read yet, has been said.
  const snapshots = ctx.db.snapshots().filter(({ root }) => root !== UNREAD_ROOT)
  // All of them first: one that was compacted may have been made after its children.
  const entries = new Map(snapshots.map(({ id, root }) => [id, entryIn(ctx, root, raw)]))
  const versions: HistoryVersion[] = []
  for (const snapshot of snapshots) {
    const entry = entries.get(snapshot.id)
    const parent = shownParent(id => ctx.db.snapshot(id), snapshot)
    const before = parent === undefined ? undefined : entries.get(parent)
    const status = statusOf(ctx, before, entry)
    if (status)
      versions.push({
        snapshot,
        status,
        reason: entry?.reason,
        // A directory has none that would mean anything; of what is not captured nobody knows it.
        size: entry?.kind === 'dir' || entry?.kind === 'unknown' ? undefined : entry?.size,
        content: entry?.content || undefined,
        mode: entry?.mode,
      })
  }
  const now = await statNow(ctx, raw)
  const currentSize = now?.size
  const isDirectory = now !== undefined && (now.mode & S_IFMT) === S_IFDIR
  const isHidden = currentSize === undefined && lookLive(ctx, raw) === 'hidden'
  const movedTo = laterNamesOf(ctx, raw).findLast(name => snapshots.some(({ root }) => entryIn(ctx, root, name)))
  const kept = keptCopies(ctx, [raw]).get(raw)
  if (versions.length === 0 && currentSize === undefined && !kept) {
    throw new SavepointError(
      'path.unknown',
      `Cannot show the history of ${showPath(raw)}: no snapshot has it, and ${isHidden ? 'a directory above it does not let you look whether it exists' : 'it does not exist'}`,
      { hint: hintOf(ctx, movedTo) },
    )
  }
  return { path: raw, currentSize, isDirectory, isHidden, movedTo, kept, versions }
}

const hintOf = (ctx: Context, movedTo: Raw | undefined): string =>
  movedTo === undefined
    ? '`savepoint coverage PATH` tells whether a path is protected'
    : `A run moved it to ${showPath(movedTo)}, and snapshots have it there: savepoint history ${typedPath(ctx, movedTo)}`

/** To which names runs have moved what was there. */
function laterNamesOf({ db }: Context, path: Raw): Raw[] {
  const names: Raw[] = []
  for (const { op, path: from, to } of db.events.nameChangesOf(db.runs().map(({ id }) => id))) {
    const name = names.at(-1) ?? path
    if (op === 'rename' && from !== undefined && to !== undefined && isWithin(name, from))
      names.push(to + name.slice(from.length))
  }
  return names
}

const entryIn = ({ store }: Context, root: Id, path: Raw): Entry | undefined =>
  path === '' ? rootEntryOf(store, root) : entryAt(store, rootTreeOf(store, root), path)

function statusOf(
  { store }: Context,
  before: Entry | undefined,
  now: Entry | undefined,
): HistoryVersion['status'] | undefined {
  if (now?.kind === 'unknown') return 'unknown'
  if (!now) return before && before.kind !== 'unknown' ? 'deleted' : undefined
  if (!before || before.kind === 'unknown') return 'new'
  if (!sameContent(before, now) || !sameMetadata(before, now)) return 'modified'
  // Of a directory: whether anything in it changed.
  const isChanged = now.kind === 'dir' && !treeChanges(store, before.content, now.content).next().done
  return isChanged ? 'modified' : 'unchanged'
}

async function statNow(ctx: Context, path: Raw): Promise<Stat | undefined> {
  try {
    return await withDir(ctx.targetPath, root => (path === '' ? addon.statFd(root) : addon.statAt(root, path)))
  } catch {
    return undefined
  }
}
