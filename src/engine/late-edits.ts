/**
 * Between the safety capture and the moment a path is displaced, somebody may edit it. What was displaced is compared
 * with the safety snapshot, and a difference becomes a snapshot of its own before anything is deleted. What differs and
 * cannot be read is the caller's to put back.
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
import type { ReadResult } from '../targets/dir/ingest-read.ts'
import { OpenedPaths } from '../targets/dir/opened-paths.ts'
import type { Displaced } from '../targets/dir/restore-apply.ts'
import {
  forEachRecord,
  isClosedListing,
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
import { openedList } from './opened-modes.ts'

const ENOENT = 2
const EACCES = 13

export interface LateEdits {
  /** Keeps the edits; undefined when there were none. */
  snapshot: Snapshot | undefined
  /** What was edited but could not be stored. */
  unsaved: Displaced[]
}

export async function keepLateEdits(
  ctx: Context,
  root: number,
  live: Live,
  displaced: readonly Displaced[],
  safety: Snapshot,
): Promise<LateEdits> {
  if (displaced.length === 0) return { snapshot: undefined, unsaved: [] }
  const writer = await ctx.store.writer()
  const comparison = new Comparison(ctx, root, live, writer)
  try {
    for (const item of displaced) await comparison.compare(item)
    const { edits, unsaved } = await comparison.finish()
    const snapshot = edits.size === 0 ? undefined : addEditsSnapshot(ctx, writer, live, edits, safety)
    return { snapshot, unsaved: [...unsaved] }
  } finally {
    await comparison.close()
    writer.close()
  }
}

class Comparison {
  private readonly ctx: Context
  private readonly root: number
  private readonly live: Live
  private readonly writer: StoreWriter
  private readonly ingest: Ingest
  /** What its owner closed (`chmod 000`) is no less an edit. */
  private readonly opened: OpenedPaths
  private readonly edits = new Map<Raw, Entry>()
  private readonly unsaved = new Set<Displaced>()

  constructor(ctx: Context, root: number, live: Live, writer: StoreWriter) {
    this.ctx = ctx
    this.root = root
    this.live = live
    this.writer = writer
    this.ingest = new Ingest(ctx.store, writer, root)
    this.opened = new OpenedPaths(root, { list: openedList(ctx), reclosed: ctx.reclosed })
  }

  async compare(item: Displaced): Promise<void> {
    const { path, staged, live } = item
    // By what lies there now: somebody may have put a directory in place of a file.
    if ((addon.statAt(this.root, staged).mode & S_IFMT) !== S_IFDIR) this.compareFile(item, path, staged, live)
    else {
      const before = live?.kind === 'dir' ? live.content : undefined
      if (before === undefined) this.edits.set(path, newDir(this.writer, path))
      await this.compareDir(item, path, staged, before)
    }
  }

  async finish(): Promise<{ edits: Map<Raw, Entry>; unsaved: Set<Displaced> }> {
    await this.ingest.drain()
    return { edits: this.edits, unsaved: this.unsaved }
  }

  async close(): Promise<void> {
    this.opened.close()
    await this.ingest.close()
  }

  private compareFile(item: Displaced, path: Raw, staged: Raw, before: Entry | undefined): void {
    const done = (result: ReadResult) => {
      if (result.errno === EACCES && this.opened.open(staged)) this.compareFile(item, path, staged, before)
      else if (isRead(result)) {
        const entry = entryFromResult(nameOf(path), result)
        entry.mode = this.opened.modeOf(staged, result.ino) ?? entry.mode
        if (!before || !sameContent(before, entry)) this.edits.set(path, entry)
      } else if (!isGone(result)) this.unsaved.add(item)
    }
    this.ingest.submit({ path: staged, size: before?.size ?? 0, isCounted: true, done })
  }

  /** A directory that moved as a whole: its files still have the timestamps that the safety capture saw. */
  private async compareDir(item: Displaced, path: Raw, staged: Raw, tree: Id | undefined): Promise<void> {
    const [listing] = splitListings(await addon.scanDirs(this.root, Buffer.from(staged, 'latin1')), 1)
    const isClosed = listing!.errno === EACCES || isClosedListing(listing!.records)
    if (isClosed && this.opened.open(staged)) return this.compareDir(item, path, staged, tree)
    if (listing!.errno !== 0) {
      if (listing!.errno !== ENOENT) this.unsaved.add(item)
      return
    }
    const { records } = listing!
    const same = this.live.cache.dirs.get(path)?.records.equals(records) ?? false
    const entries = tree === undefined ? [] : this.ctx.store.tree(tree)
    const subdirs: Raw[] = []
    forEachRecord(records, at => {
      const name = recordName(records, at)
      const type = recordType(records, at)
      if (type === S_IFDIR) subdirs.push(name)
      else if (!same && type !== S_IFSOCK) {
        const before = findEntry(entries, name) ?? sized(recordSize(records, at))
        this.compareFile(item, joinRaw(path, name), joinRaw(staged, name), before)
      }
    })
    for (const name of subdirs) {
      const before = findEntry(entries, name)
      const child = before?.kind === 'dir' ? before.content : undefined
      await this.compareDir(item, joinRaw(path, name), joinRaw(staged, name), child)
    }
  }
}

const isRead = (result: ReadResult): boolean => result.errno === 0 && !result.unknown
const isGone = (result: ReadResult): boolean => result.errno === ENOENT || result.unknown === 'vanished'

/** A directory where the safety snapshot has none; what lies in it follows as edits of its own. */
const newDir = (writer: StoreWriter, path: Raw): Entry => ({
  ...blankEntry(nameOf(path), 'dir'),
  mode: 0o755,
  content: writer.put(encodeTree([])),
})

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
    // The state before may be a snapshot of another type, which somebody took or a run left.
    ...safety,
    type: 'safety',
    run: undefined,
    parent: safety.id,
    label: undefined,
    turn: undefined,
    command: 'edits made while a rollback ran',
    createdAt: ctx.now(),
    root,
    sizeDelta: writer.newBytes,
    counts: { added: 0, modified: edits.size, deleted: 0 },
  })
}
