/**
 * Between the safety capture and the moment a path is displaced, somebody may edit it. What was displaced is compared
 * with the safety snapshot, and a difference becomes a snapshot of its own before anything is deleted.
 */
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import { joinRaw, nameOf, type Raw } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { sameContent } from '../store/tree-diff.ts'
import { findEntry } from '../store/tree-lookup.ts'
import { rewriteTree } from '../store/tree-rewrite.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import { entryFromResult } from '../targets/dir/dir-node.ts'
import { Ingest } from '../targets/dir/ingest.ts'
import type { Displaced } from '../targets/dir/restore-apply.ts'
import type { StatCache } from '../targets/dir/stat-cache.ts'
import {
  forEachRecord,
  recordName,
  recordSize,
  recordType,
  S_IFDIR,
  S_IFMT,
  S_IFSOCK,
  splitListings,
} from '../targets/dir/walk-record.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'

/** Returns the snapshot that keeps the edits, or undefined when there were none. */
export async function keepLateEdits(
  ctx: Context,
  root: number,
  live: Live,
  displaced: readonly Displaced[],
  safety: Snapshot,
): Promise<Snapshot | undefined> {
  if (displaced.length === 0) return undefined
  const writer = await ctx.store.writer()
  const ingest = new Ingest(ctx.store, writer, root)
  try {
    const edits = new Map<Raw, Entry>()
    for (const item of displaced) {
      // By what lies there now: somebody may have put a directory in place of a file.
      if (!isDirAt(root, item.staged)) compareFile(ingest, item.path, item.staged, item.live, edits)
      else {
        const before = item.live?.kind === 'dir' ? item.live.content : undefined
        if (before === undefined) edits.set(item.path, newDir(writer, item.path))
        await compareDir(ctx, root, ingest, live.cache, item.path, item.staged, before, edits)
      }
    }
    await ingest.drain()
    return edits.size === 0 ? undefined : addEditsSnapshot(ctx, writer, live, edits, safety)
  } finally {
    await ingest.close()
    writer.close()
  }
}

const isDirAt = (root: number, path: Raw): boolean => (addon.statAt(root, path).mode & S_IFMT) === S_IFDIR

/** A directory where the safety snapshot has none; what lies in it follows as edits of its own. */
const newDir = (writer: StoreWriter, path: Raw): Entry => ({
  ...blankEntry(nameOf(path), 'dir'),
  mode: 0o755,
  content: writer.put(encodeTree([])),
})

function compareFile(ingest: Ingest, path: Raw, staged: Raw, before: Entry | undefined, edits: Map<Raw, Entry>): void {
  ingest.submit(staged, before?.size ?? 0, result => {
    if (result.errno !== 0 || result.unknown) return
    const entry = entryFromResult(nameOf(path), result)
    if (!before || !sameContent(before, entry)) edits.set(path, entry)
  })
}

/** A directory that moved as a whole: its files still have the timestamps that the safety capture saw. */
async function compareDir(
  ctx: Context,
  root: number,
  ingest: Ingest,
  cache: StatCache,
  path: Raw,
  staged: Raw,
  tree: Id | undefined,
  edits: Map<Raw, Entry>,
): Promise<void> {
  const [listing] = splitListings(await addon.scanDirs(root, Buffer.from(staged, 'latin1')), 1)
  if (listing?.errno !== 0) return
  const { records } = listing
  const same = cache.dirs.get(path)?.records.equals(records) ?? false
  const subdirs: Raw[] = []
  forEachRecord(records, at => {
    const name = recordName(records, at)
    const type = recordType(records, at)
    if (type === S_IFDIR) subdirs.push(name)
    else if (!same && type !== S_IFSOCK) {
      const before = tree === undefined ? undefined : findEntry(ctx.store.tree(tree), name)
      compareFile(ingest, joinRaw(path, name), joinRaw(staged, name), before ?? sized(recordSize(records, at)), edits)
    }
  })
  for (const name of subdirs) {
    const before = tree === undefined ? undefined : findEntry(ctx.store.tree(tree), name)
    const child = before?.kind === 'dir' ? before.content : undefined
    await compareDir(ctx, root, ingest, cache, joinRaw(path, name), joinRaw(staged, name), child, edits)
  }
}

/** Stands for "nothing was there", with the size that the reading should expect. */
const sized = (size: number): Entry => ({ kind: 'unknown', size }) as Entry

function addEditsSnapshot(
  ctx: Context,
  writer: StoreWriter,
  live: Live,
  edits: Map<Raw, Entry>,
  safety: Snapshot,
): Snapshot {
  writer.commit()
  const tree = rewriteTree(ctx.store, writer, live.tree, edits)
  const root = writer.put(encodeTree([{ ...rootEntryOf(ctx.store, safety.root), content: tree }]))
  writer.commit()
  ctx.notice(
    `${edits.size} path${edits.size === 1 ? ' was' : 's were'} edited while the rollback ran; the edits are kept in a safety snapshot`,
  )
  return ctx.db.addSnapshot({
    ...safety,
    parent: safety.id,
    label: undefined,
    command: 'edits made while a rollback ran',
    createdAt: ctx.now(),
    root,
    sizeDelta: writer.newBytes,
    counts: { added: 0, modified: edits.size, deleted: 0 },
  })
}
