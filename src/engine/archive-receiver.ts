/** Takes the entries of an archive into the store and into a tree, one after another. */
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import { formatBytes, formatLimit } from '../model/format.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { WHOLE_FILE_BYTES } from '../targets/dir/ingest-read.ts'
import type { ArchiveBytes } from './archive-bytes.ts'
import { checkRoomFor } from './archive-expansion.ts'
import { dataBytes } from './archive-sparse.ts'
import { Spool } from './archive-spool.ts'
import { type TarEntry, TarReader } from './archive-tar-read.ts'
import { ArchiveTree } from './archive-tree.ts'
import { type ImportLimits, suspiciousArchive, unsafeArchive } from './archive-unsafe.ts'
import type { Context } from './context.ts'

const MAX_OWNER = 0xffff_fffe
const MAX_DEVICE_MAJOR = 0xfff
const MAX_DEVICE_MINOR = 0xf_ffff
/** What a system call takes for a link's target. */
const MAX_TARGET_BYTES = 4095
const REPORT_EVERY = 100

export class ArchiveReceiver {
  readonly tree: ArchiveTree
  private readonly ctx: Context
  private readonly writer: StoreWriter
  private readonly limits: ImportLimits
  private readonly spool: Spool
  private holeBytes = 0
  private received = 0

  constructor(ctx: Context, writer: StoreWriter, limits: ImportLimits) {
    this.ctx = ctx
    this.writer = writer
    this.limits = limits
    this.tree = new ArchiveTree(limits)
    this.spool = new Spool(ctx.home, ctx.store, writer)
  }

  /** Returns when the archive is read to its end and everything in it is stored (not yet committed). */
  async receive(bytes: ArchiveBytes): Promise<void> {
    const reader = new TarReader(bytes, this.limits)
    for (let entry = await reader.next(); entry; entry = await reader.next()) {
      await this.take(reader, entry)
      if (++this.received % REPORT_EVERY === 0) this.report()
    }
    this.report()
  }

  close(): void {
    this.spool.close()
  }

  private async take(reader: TarReader, found: TarEntry): Promise<void> {
    // Before its content is stored: an unsafe path costs nothing.
    this.tree.parts(found.path)
    if (found.kind === 'hard-link') {
      this.tree.addHardLink(found.path, found.target)
      return
    }
    const entry = toEntry(found)
    if (found.kind === 'file') entry.content = await this.store(reader, found)
    this.tree.add(found.path, entry)
    if (found.kind !== 'dir' && found.unknown.length > 0)
      throw unsafeArchive('is no directory but has notes on what lies in it', found.path)
    for (const unknown of found.unknown) this.tree.addUnknown(found.path, unknown)
  }

  private async store(reader: TarReader, found: TarEntry): Promise<Id> {
    const { path, size, segments } = found
    const { max_file_bytes } = this.ctx.config.snapshots
    if (size > max_file_bytes) {
      throw unsafeArchive(
        `has ${formatBytes(size)}, and snapshots.max_file_bytes is ${formatLimit(max_file_bytes)}`,
        path,
      )
    }
    this.holeBytes += size - dataBytes(segments)
    if (this.holeBytes > this.limits.holeBytes) {
      throw suspiciousArchive(`has sparse files with more than ${formatBytes(this.limits.holeBytes)} of holes`)
    }
    if (size > WHOLE_FILE_BYTES) {
      checkRoomFor(this.ctx, dataBytes(segments))
      return this.spool.store(size, segments, most => reader.readData(most))
    }
    const content = Buffer.alloc(size)
    for (const { offset, length } of segments) {
      for (let at = offset; at < offset + length; )
        at += (await reader.readData(offset + length - at)).copy(content, at)
    }
    return this.writer.put(content)
  }

  private report(): void {
    this.ctx.progress?.({ phase: 'importing', files: this.tree.files, bytes: this.tree.contentBytes })
  }
}

function toEntry(found: TarEntry): Entry {
  const { kind, path, uid, gid, target, devMajor, devMinor } = found
  if (kind === 'hard-link') throw new Error('a hard link is no entry of its own')
  for (const id of [uid, gid]) if (id < 0 || id > MAX_OWNER) throw unsafeArchive('has an impossible owner', path)
  const entry = blankEntry('', kind)
  Object.assign(entry, { mode: found.mode, uid, gid, xattrs: found.xattrs })
  if (kind === 'dir') return entry
  entry.mtimeNs = found.mtimeNs
  if (kind === 'file') Object.assign(entry, { size: found.size, sparse: found.isSparse })
  else if (kind === 'link') {
    const isSound = target !== '' && target.length <= MAX_TARGET_BYTES && !target.includes('\0')
    if (!isSound) throw unsafeArchive('is a symlink with an impossible target', path)
    Object.assign(entry, { target, size: target.length })
  } else if (kind !== 'fifo') {
    const isSound = devMajor >= 0 && devMajor <= MAX_DEVICE_MAJOR && devMinor >= 0 && devMinor <= MAX_DEVICE_MINOR
    if (!isSound) throw unsafeArchive('is a device with impossible numbers', path)
    Object.assign(entry, { rdevMajor: devMajor, rdevMinor: devMinor })
  }
  return entry
}
