/** `history PATH`: the versions of one path, snapshot by snapshot. */

import { SavepointError } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import { sameContent, sameMetadata } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import type { Context } from './context.ts'
import { lookLive, resolvePath } from './resolve-path.ts'
import type { HistoryResult, HistoryVersion } from './results.ts'
import { shownParent } from './shown-snapshot.ts'

/** Oldest first; each version is compared with the snapshot's own parent, so that branches read right. */
export async function history(ctx: Context, path: string): Promise<HistoryResult> {
  const raw = resolvePath(ctx, path)
  const entries = new Map<string, Entry | undefined>()
  const versions: HistoryVersion[] = []
  for (const snapshot of ctx.db.snapshots()) {
    const entry = entryAt(ctx.store, rootTreeOf(ctx.store, snapshot.root), raw)
    entries.set(snapshot.id, entry)
    const parent = shownParent(id => ctx.db.snapshot(id), snapshot)
    const before = parent === undefined ? undefined : entries.get(parent)
    const status = statusOf(before, entry)
    if (status)
      versions.push({
        snapshot,
        status,
        reason: entry?.reason,
        size: entry?.size,
        content: entry?.content || undefined,
        mode: entry?.mode,
      })
  }
  const currentSize = await sizeNow(ctx, raw)
  const isHidden = currentSize === undefined && lookLive(ctx, raw) === 'hidden'
  if (versions.length === 0 && currentSize === undefined) {
    throw new SavepointError(
      'path.unknown',
      `Cannot show the history of ${showPath(raw)}: no snapshot has it, and ${isHidden ? 'a directory above it does not let you look whether it exists' : 'it does not exist'}`,
      {
        hint: '`savepoint coverage PATH` tells whether a path is protected',
      },
    )
  }
  return { path: raw, currentSize, isHidden, versions }
}

function statusOf(before: Entry | undefined, now: Entry | undefined): HistoryVersion['status'] | undefined {
  if (now?.kind === 'unknown') return 'unknown'
  if (!now) return before && before.kind !== 'unknown' ? 'deleted' : undefined
  if (!before || before.kind === 'unknown') return 'new'
  return sameContent(before, now) && sameMetadata(before, now) ? 'unchanged' : 'modified'
}

async function sizeNow(ctx: Context, path: Raw): Promise<number | undefined> {
  try {
    return await withDir(ctx.targetPath, root => addon.statAt(root, path).size)
  } catch {
    return undefined
  }
}
