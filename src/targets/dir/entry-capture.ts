/** Decides for each entry of a changed directory: left out, known from before, or to be read. */
import { blankEntry, type Entry, type UnknownReason } from '../../model/entry.ts'
import { isWithin, joinRaw, type Raw } from '../../model/raw-path.ts'
import { EntryCursor } from '../../store/tree-lookup.ts'
import { type DirNode, entryFromResult, isPackDir, kindOfType, unknownEntry } from './dir-node.ts'
import type { Job } from './ingest-queue.ts'
import type { ReadResult } from './ingest-read.ts'
import { isOverridden } from './override.ts'
import type { PassState } from './pass.ts'
import { markOf } from './stage-mark.ts'
import type { CachedDir } from './stat-cache.ts'
import type { TreeBuilder } from './tree-builder.ts'
import * as record from './walk-record.ts'
import { whoseStore } from './whose-store.ts'

const ENOENT = 2
const ENOTDIR = 20
const EACCES = 13

export class EntryCapture {
  private readonly state: PassState
  private readonly builder: TreeBuilder
  /** Enters a subdirectory. */
  private readonly descend: (parent: DirNode, name: Raw) => DirNode

  constructor(state: PassState, builder: TreeBuilder, descend: (parent: DirNode, name: Raw) => DirNode) {
    this.state = state
    this.builder = builder
    this.descend = descend
  }

  rebuild(node: DirNode): void {
    const { cached, records } = node
    // Listings and trees are sorted by name: walking them side by side needs no index of them.
    const old = cached && new EntryCursor(this.state.oldTree(cached.tree))
    const oldRecords = cached && new record.RecordCursor(cached.records)
    node.entries = new Map()
    if (this.state.options.only && cached) this.forgetRemovedSubdirs(node, cached)
    record.forEachRecord(records, at => {
      const name = record.recordName(records, at)
      const oldAt = oldRecords?.find(records, at)
      const unchanged = oldAt !== undefined && record.sameRecord(records, at, cached!.records, oldAt)
      this.capture(node, name, at, unchanged ? old!.find(name) : undefined)
    })
    if (node.linked.length > 0) {
      node.pending++
      this.state.waitingForLinks.push(node)
    }
  }

  private forgetRemovedSubdirs(node: DirNode, cached: CachedDir): void {
    const now = new record.RecordCursor(node.records)
    record.forEachRecord(cached.records, at => {
      const isDirectory = record.recordType(cached.records, at) === record.S_IFDIR
      if (isDirectory && now.find(cached.records, at) === undefined)
        this.state.forgetDirs(joinRaw(node.path, record.recordName(cached.records, at)))
    })
  }

  /** What changes in there while it is left out is not told: when it is captured again, all of it is looked at. */
  private forgetBelow(node: DirNode, name: Raw, isDirectory: boolean): void {
    if (isDirectory) this.state.forgetDirs(joinRaw(node.path, name))
  }

  /** `known`: the entry of the last capture, when its record did not change. */
  private capture(node: DirNode, name: Raw, at: number, known: Entry | undefined): void {
    const { records } = node
    const entries = node.entries!
    const type = record.recordType(records, at)
    const isDirectory = type === record.S_IFDIR
    const size = record.recordSize(records, at)
    const leaveOut = this.leaveOut(node, name, at, type)
    if (leaveOut) {
      this.forgetBelow(node, name, isDirectory)
      entries.set(name, unknownEntry(name, leaveOut))
      return
    }
    if (this.isStaged(node, name)) {
      // Without its mark, a stage that comes back from history is only what it holds.
      if (node.path !== this.state.options.stage || name !== markOf(node.path)) this.take(node, name, at, known)
      return
    }
    const verdict = node.rules.verdict(name, isDirectory, size)
    const overridden =
      (node.overrideOnly || verdict.kind === 'exclude') && isOverridden(this.state.options.store, node, name)
    if (overridden) node.overridden = true
    if ((verdict.kind === 'exclude' || node.overrideOnly) && !overridden) {
      this.forgetBelow(node, name, isDirectory)
      entries.set(name, unknownEntry(name, 'excluded', kindOfType.get(type)))
      return
    }
    if (size > this.state.options.maxFileBytes && type === record.S_IFREG) {
      if (!isOverridden(this.state.options.store, node, name)) {
        entries.set(name, unknownEntry(name, 'too-large', 'file', this.state.options.maxFileBytes))
        return
      }
      node.overridden = true
    }
    this.take(node, name, at, known, overridden)
  }

  /** What an interrupted restore displaced is captured whatever the rules say: it is about to be deleted. */
  private isStaged(node: DirNode, name: Raw): boolean {
    const { stage } = this.state.options
    return stage !== undefined && isWithin(joinRaw(node.path, name), stage)
  }

  private take(node: DirNode, name: Raw, at: number, known: Entry | undefined, overridden = false): void {
    const { records } = node
    const entries = node.entries!
    const type = record.recordType(records, at)
    const isDirectory = type === record.S_IFDIR
    // What was left out last time was in no group.
    const isNew = !known || known.kind === 'unknown'
    if (isDirectory) this.descend(node, name).overrideOnly = overridden
    else if (isNew && type === record.S_IFREG && this.hasOtherNames(records, at)) {
      const ino = record.recordIno(records, at)
      this.state.links.add(ino, joinRaw(node.path, name))
      node.linked.push({ name, ino })
    }
    const written = type === record.S_IFREG ? this.writtenEntry(name, records, at) : undefined
    if (written) entries.set(name, written)
    else if (!isNew && (known.kind === 'dir') === isDirectory) entries.set(name, isDirectory ? { ...known } : known)
    else this.read(node, name, at, record.recordSize(records, at))
  }

  /** The run may have removed the others since the capture began. */
  private hasOtherNames(records: Buffer, at: number): boolean {
    return record.recordNlink(records, at) > 1 || this.state.options.preserved?.hadOtherNames(records, at) === true
  }

  /** The entry of a file that a restore has just written and nobody has touched since. */
  private writtenEntry(name: Raw, records: Buffer, at: number): Entry | undefined {
    const hint = this.state.options.written?.get(record.recordIno(records, at))
    if (!hint || hint.ctimeNs !== record.recordCtimeNs(records, at)) return undefined
    const { entry } = hint
    const same =
      entry.size === record.recordSize(records, at) &&
      entry.mode === (record.recordMode(records, at) & 0o7777) &&
      entry.uid === record.recordUid(records, at) &&
      entry.gid === record.recordGid(records, at)
    return same ? { ...entry, name, linkGroup: 0n } : undefined
  }

  private leaveOut(node: DirNode, name: Raw, at: number, type: number): UnknownReason | undefined {
    const { records } = node
    if (record.statFailed(records, at)) {
      this.state.requireDisk(joinRaw(node.path, name), record.statErrno(records, at))
      return 'unreadable'
    }
    if (record.isMountPoint(records, at) || this.state.options.mounts?.has(joinRaw(node.path, name))) return 'mount'
    const whose =
      type === record.S_IFDIR && whoseStore(this.state.options, node.path, name, record.recordIno(records, at))
    if (whose) return whose
    if (type === record.S_IFSOCK) return 'socket'
    if (node.gitDir !== undefined && name.endsWith('.lock') && type === record.S_IFREG) return 'lock'
    return undefined
  }

  private read(node: DirNode, name: Raw, at: number, size: number): void {
    node.pending++
    const isDirectory = record.recordType(node.records, at) === record.S_IFDIR
    // Holds the place until the reading is done; a directory's tree may be known earlier.
    node.entries!.set(name, blankEntry(name, isDirectory ? 'dir' : 'file'))
    this.state.options.ingest.submit(new ReadJob(this, node, name, at, size, !isDirectory))
  }

  finishRead(node: DirNode, name: Raw, at: number, result: ReadResult): void {
    this.receiveRead(node, name, at, result)
    this.builder.settle(node)
  }

  private receiveRead(node: DirNode, name: Raw, at: number, read: ReadResult): void {
    const { preserved } = this.state.options
    const result = preserved?.isStarted ? preserved.result(joinRaw(node.path, name), read) : read
    const entries = node.entries!
    const placeholder = entries.get(name)
    // Gone, or a directory that turned out to be unreadable.
    if (!placeholder || placeholder.kind === 'unknown') return
    if (result.errno !== 0 || result.unknown !== undefined) this.state.listedAt(undefined)
    if (result.errno === ENOENT || result.errno === ENOTDIR || result.unknown === 'vanished') {
      if (isPackDir(node)) this.state.packLost = true
      entries.delete(name)
      return
    }
    const path = joinRaw(node.path, name)
    this.state.requireDisk(path, result.errno)
    if (result.errno !== 0) {
      if (result.errno === EACCES && this.state.options.opened?.open(path)) this.read(node, name, at, result.size)
      else entries.set(name, unknownEntry(name, 'unreadable'))
      return
    }
    const entry = entryFromResult(name, result, placeholder)
    entry.mode = this.state.options.opened?.modeOf(path, result.ino) ?? entry.mode
    if ((entry.kind === 'dir') !== (placeholder.kind === 'dir')) {
      // Another kind of thing than the walk saw: leave it to the next pass, which sees it as it is now.
      this.state.listedAt(undefined)
      entries.set(name, unknownEntry(name, 'unstable'))
      return
    }
    record.patchRecord(node.records, at, result)
    if (entry !== placeholder) entries.set(name, entry)
  }
}

/** One object per file: a capture of many makes many. */
class ReadJob implements Job {
  private readonly capture: EntryCapture
  private readonly node: DirNode
  private readonly name: Raw
  private readonly at: number
  readonly path: Raw
  readonly isCounted: boolean
  size: number

  constructor(capture: EntryCapture, node: DirNode, name: Raw, at: number, size: number, isCounted: boolean) {
    this.capture = capture
    this.node = node
    this.name = name
    this.at = at
    this.path = joinRaw(node.path, name)
    this.size = size
    this.isCounted = isCounted
  }

  done(result: ReadResult): void {
    this.capture.finishRead(this.node, this.name, this.at, result)
  }
}
