/**
 * What reading entries gives, and reading a few of them here and now (ingest-pipeline.ts reads many). Nothing is stored:
 * the caller decides with the hashes which contents are new.
 */
import type { Id, UnknownReason } from '../../model/entry.ts'
import { ID_BYTES } from '../../model/id.ts'
import { addon, META, META_FLAG } from '../../native/addon.ts'

/** Files up to this size are one object; larger ones are cut into chunks. */
export const WHOLE_FILE_BYTES = 1024 * 1024
/** How often a file that changes while it is read is read again. */
export const READ_RETRIES = 4
/** Room for link targets and xattrs beside the content that the sizes promise. */
export const SLACK_BYTES = 256 * 1024

const S_IFMT = 0o170000
const S_IFREG = 0o100000
const S_IFLNK = 0o120000

/** What reading one entry gave. Fields of the stat are those the content belongs to. */
export interface ReadResult {
  readonly errno: number
  readonly unknown: UnknownReason | undefined
  readonly mode: number
  readonly nlink: number
  readonly uid: number
  readonly gid: number
  readonly size: number
  readonly mtimeNs: bigint
  readonly ctimeNs: bigint
  readonly ino: bigint
  readonly content: Id
  readonly target: string
  readonly xattrs: Buffer | undefined
  readonly sparse: boolean
  readonly rdevMajor: number
  readonly rdevMinor: number
}

/** `paths`: NUL-separated. `expectedBytes`: the sum of the sizes seen by the walk. */
export function readBatch(root: number, paths: Buffer, count: number, expectedBytes: number): MetaResult[] {
  const results: MetaResult[] = []
  let rest = paths
  let room = expectedBytes + SLACK_BYTES
  while (results.length < count) {
    const out = Buffer.allocUnsafeSlow(room)
    const { done, meta } = addon.readEntries(root, rest, out, WHOLE_FILE_BYTES, READ_RETRIES)
    for (let i = 0; i < done; i++) results.push(new MetaResult(meta, i, out, contentOf(meta, i)))
    if (results.length < count) rest = skipPaths(rest, done)
    // Something grew since the walk: go on with room for the largest file and its xattrs.
    room = 2 * WHOLE_FILE_BYTES + SLACK_BYTES
  }
  return results
}

function skipPaths(paths: Buffer, count: number): Buffer {
  let at = 0
  for (let i = 0; i < count; i++) {
    const end = paths.indexOf(0, at)
    at = end < 0 ? paths.length : end + 1
  }
  return paths.subarray(at)
}

/** The id of the content that the META record at `at` speaks of. */
export const contentId = (meta: Buffer, at: number): Id =>
  meta.toString('latin1', at + META.id, at + META.id + ID_BYTES)

/** The same for the record with this number; '' when it has no content, or none that counts. */
export function contentOf(meta: Buffer, index: number): Id {
  const at = index * META.size_
  const isRead =
    meta.readInt32LE(at + META.errno) === 0 &&
    (meta.readUInt32LE(at + META.mode) & S_IFMT) === S_IFREG &&
    (meta.readUInt32LE(at + META.flags) & (META_FLAG.unstable | META_FLAG.tooBig)) === 0
  return isRead ? contentId(meta, at) : ''
}

/** A META record, whose fields are read when they are asked for. `extra`: what its offsets point into. */
export class MetaResult implements ReadResult {
  /** The META record that this result stands for. */
  readonly meta: Buffer
  readonly at: number
  private readonly extra: Buffer
  readonly content: Id

  constructor(meta: Buffer, index: number, extra: Buffer, content: Id) {
    this.meta = meta
    this.at = index * META.size_
    this.extra = extra
    this.content = content
  }

  private u32(field: number): number {
    return this.meta.readUInt32LE(this.at + field)
  }

  contentBytes(): Buffer {
    const start = this.u32(META.contentOffset)
    return this.extra.subarray(start, start + this.u32(META.contentLength))
  }

  get target(): string {
    return (this.mode & S_IFMT) === S_IFLNK ? this.contentBytes().toString('latin1') : ''
  }
  /** A copy: the buffer is large, and the xattrs may live long. */
  get xattrs(): Buffer | undefined {
    const length = this.u32(META.xattrLength)
    if (length === 0) return undefined
    const start = this.u32(META.xattrOffset)
    return Buffer.from(this.extra.subarray(start, start + length))
  }
  get errno(): number {
    return this.meta.readInt32LE(this.at + META.errno)
  }
  get unknown(): UnknownReason | undefined {
    const flags = this.u32(META.flags)
    return flags & META_FLAG.unstable ? 'unstable' : flags & META_FLAG.tooBig ? 'too-large' : undefined
  }
  get sparse(): boolean {
    return (this.u32(META.flags) & META_FLAG.sparse) !== 0
  }
  get mode(): number {
    return this.u32(META.mode)
  }
  get nlink(): number {
    return this.u32(META.nlink)
  }
  get uid(): number {
    return this.u32(META.uid)
  }
  get gid(): number {
    return this.u32(META.gid)
  }
  get size(): number {
    return this.u32(META.size) + this.u32(META.size + 4) * 0x1_0000_0000
  }
  get mtimeNs(): bigint {
    return this.meta.readBigInt64LE(this.at + META.mtimeNs)
  }
  get ctimeNs(): bigint {
    return this.meta.readBigInt64LE(this.at + META.ctimeNs)
  }
  get ino(): bigint {
    return this.meta.readBigUInt64LE(this.at + META.ino)
  }
  get rdevMajor(): number {
    return this.u32(META.rdevMajor)
  }
  get rdevMinor(): number {
    return this.u32(META.rdevMinor)
  }
}
