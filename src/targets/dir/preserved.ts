/**
 * Lets a capture show the state in which it began although a run changes the tree meanwhile: each change waits until what
 * it is about to change has been put aside here. The walk takes what is here for what it would find.
 */
import { joinRaw, nameOf, parentOf, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import { Exclusions } from './explain-exclusion.ts'
import { Ingest } from './ingest.ts'
import type { ReadResult } from './ingest-read.ts'
import { statOrNothing } from './look-at.ts'
import type { RuleContext } from './pass.ts'
import * as record from './walk-record.ts'

/** What a change is about; paths are relative to the target. */
export interface Change {
  paths: Raw[]
  /** Of files that have other names, too: those may lie where the capture has not been yet. */
  shared: Raw[]
  /** Directories that go elsewhere, or are replaced, with all that is in them. */
  subtrees: Raw[]
  /** Where one of them goes. */
  into?: Raw
}

interface Source {
  store: Store
  writer: StoreWriter
  root: number
  rules: RuleContext
}

/** After so many changes the rest of the capture is shorter than putting aside more. */
const MANY = 500
const noSpans = Buffer.alloc(0)
/** Their content decides what is captured elsewhere. */
const ruleFiles: ReadonlySet<Raw> = new Set(['.gitignore', '.savepointignore'])

export class Preserved {
  private readonly listings = new Map<Raw, record.Listing>()
  private readonly results = new Map<Raw, ReadResult>()
  private readonly byInode = new Map<bigint, ReadResult>()
  private readonly touched = new Set<Raw>()
  private readonly trees = new Set<Raw>()
  private readonly listed = new Set<Raw>()
  private readonly done = new Set<Raw>()
  private readonly opened = Promise.withResolvers<void>()
  private readonly finished = Promise.withResolvers<void>()
  private work: Promise<unknown> = Promise.resolve()
  private source: Source | undefined
  private exclusions: Exclusions | undefined
  private isOver = false
  isStarted = false
  isBegun = false
  private readonly beginning = Promise.withResolvers<void>()
  readonly begun = this.beginning.promise
  private secured = 0

  constructor() {
    // Who waits for it sees it; until then it must not count as unhandled.
    this.finished.promise.catch(() => {})
  }

  // --- for the capture ---

  /** The capture begins. */
  open(source: Source): void {
    this.source = source
    this.exclusions = new Exclusions(source.root, source.rules)
    this.opened.resolve()
  }

  /** The capture has all, or is given up: nothing waits any more. */
  async close(): Promise<void> {
    this.isOver = true
    this.begin()
    this.opened.resolve()
    this.finished.resolve()
    // What is being put aside is in the same pack.
    await this.work
    // The run that it was for goes on, perhaps for days.
    for (const kept of [this.listings, this.results, this.byInode, this.touched, this.trees, this.listed, this.done])
      kept.clear()
    this.source = undefined
    this.exclusions = undefined
  }

  /** What the directory held when the capture began, if that was put aside. */
  listing(path: Raw): record.Listing | undefined {
    return this.listings.get(path)
  }

  /** The walk has the listing of a directory. */
  onListed(path: Raw): void {
    this.listed.add(path)
  }

  /** Everything in the directory itself has been read. */
  onDone(path: Raw): void {
    this.done.add(path)
    this.listings.delete(path)
  }

  result(path: Raw, result: ReadResult): ReadResult {
    return this.results.get(path) ?? this.byInode.get(result.ino) ?? result
  }

  /** Whether the file was put aside by one of several names. */
  hadOtherNames(records: Buffer, at: number): boolean {
    // A bigint for every file of a tree takes long.
    return this.byInode.size > 0 && this.byInode.has(record.recordIno(records, at))
  }

  /** From here on a run may change the tree. */
  start(): void {
    this.isStarted = true
  }

  /** Its command has begun, or never will. */
  begin(): void {
    this.isBegun = true
    this.beginning.resolve()
  }

  /** A pass begins, over these directories alone if they are named: what was seen of them before counts no more. */
  onPass(only: ReadonlySet<Raw> | undefined): void {
    if (!only) {
      this.listed.clear()
      this.done.clear()
    }
    for (const path of only ?? []) {
      this.listed.delete(path)
      this.done.delete(path)
    }
  }

  /** Whether the run has touched something in the directory since. */
  isTouched(path: Raw): boolean {
    if (this.touched.has(path)) return true
    for (let at = path; at !== ''; at = parentOf(at)) if (this.trees.has(at)) return true
    return false
  }

  /** Whether two listings differ only in files that the run changed under another name. */
  isOfShared(before: Buffer, now: Buffer): boolean {
    const cursor = new record.RecordCursor(now)
    let isSame = true
    let count = 0
    record.forEachRecord(before, at => {
      const other = cursor.find(before, at)
      const isKnown = other !== undefined && record.sameRecord(before, at, now, other)
      if (other === undefined || !(isKnown || this.byInode.has(record.recordIno(before, at)))) isSame = false
      count++
    })
    record.forEachRecord(now, () => count--)
    return isSame && count === 0
  }

  // --- for the run ---

  /** Returns when the change may be carried out. */
  async secure(change: Change): Promise<void> {
    await this.opened.promise
    if (this.isOver) return
    for (const path of change.paths) {
      // The change time of the directory stands in the one above it.
      this.touched.add(parentOf(path))
      this.touched.add(parentOf(parentOf(path)))
    }
    for (const path of change.subtrees) this.trees.add(path)
    if (change.paths.some(decides) || ++this.secured > MANY || (await this.isHidden(change.into)))
      await this.finished.promise
    const next = this.work.then(() => this.put(change))
    this.work = next.catch(() => {})
    await next
  }

  private async put({ paths, shared, subtrees }: Change): Promise<void> {
    if (this.isOver) return
    const files: Raw[] = []
    for (const path of paths) {
      if (this.isOver) return
      const directory = parentOf(path)
      const isDone = this.done.has(directory)
      if ((isDone && !shared.includes(path)) || this.results.has(path) || (await this.isExcluded(path))) continue
      if (!isDone) await this.list([directory])
      files.push(path)
    }
    await this.read(files)
    for (const path of subtrees) if (!(await this.isExcluded(path))) await this.putTree(path)
  }

  private async isExcluded(path: Raw): Promise<boolean> {
    if (path === '') return false
    const stat = statOrNothing(this.source!.root, path)
    const isDirectory = ((stat?.mode ?? 0) & record.S_IFMT) === record.S_IFDIR
    return (await this.exclusions!.of(path, { isDirectory, size: stat?.size ?? 0 })) !== undefined
  }

  /** Whether a directory would go where nothing is captured: as if it left the target. */
  private async isHidden(path: Raw | undefined): Promise<boolean> {
    return path !== undefined && (await this.exclusions!.of(path, { isDirectory: true, size: 0 })) !== undefined
  }

  /** Level by level: all directories below, then all files. */
  private async putTree(path: Raw): Promise<void> {
    let level = [path]
    while (level.length > 0 && !this.isOver) {
      const listings = await this.list(level)
      const below: Raw[] = []
      const files: Raw[] = []
      for (const [i, directory] of level.entries()) {
        const { records } = listings[i]!
        record.forEachRecord(records, at => {
          const entry = joinRaw(directory, record.recordName(records, at))
          if (record.statFailed(records, at) || record.isMountPoint(records, at)) return
          files.push(entry)
          if (record.recordType(records, at) === record.S_IFDIR) below.push(entry)
        })
      }
      await this.read(files.filter(file => !this.results.has(file)))
      level = below
    }
  }

  /** Their listings, put aside for the walk if it has none yet. */
  private async list(directories: Raw[]): Promise<record.Listing[]> {
    const paths = Buffer.from(directories.join('\0'), 'latin1')
    const scan = await addon.scanDirs(this.source!.root, paths, noSpans, Buffer.alloc(directories.length * 8, 0xff))
    const listings = record.splitListings(scan, directories.length)
    return directories.map((directory, i) => {
      const known = this.listings.get(directory)
      if (known) return known
      // A copy: the walk notes in it what it reads.
      const listing = { ...listings[i]!, records: Buffer.from(listings[i]!.records) }
      if (!this.listed.has(directory) && listing.errno === 0) this.listings.set(directory, listing)
      return listing
    })
  }

  private async read(files: Raw[]): Promise<void> {
    if (files.length === 0) return
    const { store, writer, root } = this.source!
    const reader = new Ingest(store, writer, root)
    try {
      for (const path of files) {
        const size = statOrNothing(root, path)?.size
        if (size === undefined) continue
        reader.submit({ path, size, isCounted: false, done: result => this.keep(path, result) })
        await reader.room()
      }
      await reader.drain()
    } finally {
      await reader.close()
    }
  }

  private keep(path: Raw, result: ReadResult): void {
    if (result.errno !== 0) return
    // By another of its names it may have been changed already.
    const kept = this.byInode.get(result.ino) ?? copyOf(result)
    this.results.set(path, kept)
    if (kept.nlink > 1 && (kept.mode & record.S_IFMT) === record.S_IFREG) this.byInode.set(kept.ino, kept)
  }
}

/** A result is only lent. */
const copyOf = (result: ReadResult): ReadResult => ({
  errno: result.errno,
  unknown: result.unknown,
  mode: result.mode,
  nlink: result.nlink,
  uid: result.uid,
  gid: result.gid,
  size: result.size,
  mtimeNs: result.mtimeNs,
  ctimeNs: result.ctimeNs,
  ino: result.ino,
  content: result.content,
  target: result.target,
  xattrs: result.xattrs && Buffer.from(result.xattrs),
  sparse: result.sparse,
  rdevMajor: result.rdevMajor,
  rdevMinor: result.rdevMinor,
})

/** Whether other paths depend on it: then it waits for all of them. */
function decides(path: Raw): boolean {
  if (path === '' || ruleFiles.has(nameOf(path))) return true
  // The repository of the target itself has been asked before anything was started.
  return /\/\.git(\/|$)/.test(path)
}
