/**
 * Reads entries and names their content, on the main thread for a few and in workers for many. Nothing is stored here:
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
const SLACK_BYTES = 256 * 1024

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

/** The results of a batch in few buffers, so that they cross between threads without an object per entry. */
export interface BatchResults {
  /** META records, one after another. */
  meta: Uint8Array
  /** What few entries have: [index, bytes]. */
  targets: [number, Uint8Array][]
  xattrs: [number, Uint8Array][]
}

export interface Batch {
  results: BatchResults
  /** Contents of the regular files by index, as long as the buffer they lie in is not used again. */
  contents: (Buffer | undefined)[]
}

/** Gives buffers for reading; a batch's contents lie in them until the caller gives them back. */
export type BufferSource = (bytes: number) => Buffer

/** `paths`: NUL-separated. `expectedBytes`: the sum of the sizes seen by the walk. */
export function readBatch(
  root: number,
  paths: Buffer,
  count: number,
  expectedBytes: number,
  buffers: BufferSource,
): Batch {
  const batch: Batch = {
    results: {
      meta: Buffer.allocUnsafeSlow(count * META.size_),
      targets: [],
      xattrs: [],
    },
    contents: [],
  }
  let rest = paths
  let room = expectedBytes + SLACK_BYTES
  for (let at = 0; at < count; ) {
    const out = buffers(room)
    const { done, meta } = addon.readEntries(root, rest, out, WHOLE_FILE_BYTES, READ_RETRIES)
    ;(batch.results.meta as Buffer).set(meta.subarray(0, done * META.size_), at * META.size_)
    for (let i = 0; i < done; i++) addEntry(batch, at + i, meta, i * META.size_, out)
    at += done
    if (at < count) rest = skipPaths(rest, done)
    // Something grew since the walk: go on with room for the largest file and its xattrs.
    room = 2 * WHOLE_FILE_BYTES + SLACK_BYTES
  }
  return batch
}

function skipPaths(paths: Buffer, count: number): Buffer {
  let at = 0
  for (let i = 0; i < count; i++) {
    const end = paths.indexOf(0, at)
    at = end < 0 ? paths.length : end + 1
  }
  return paths.subarray(at)
}

function addEntry({ results, contents }: Batch, index: number, meta: Buffer, at: number, out: Buffer): void {
  contents[index] = undefined
  if (meta.readInt32LE(at + META.errno) !== 0) return
  const contentAt = meta.readUInt32LE(at + META.contentOffset)
  const content = out.subarray(contentAt, contentAt + meta.readUInt32LE(at + META.contentLength))
  const xattrLength = meta.readUInt32LE(at + META.xattrLength)
  if (xattrLength > 0) {
    const xattrAt = meta.readUInt32LE(at + META.xattrOffset)
    results.xattrs.push([index, new Uint8Array(out.subarray(xattrAt, xattrAt + xattrLength))])
  }
  const type = meta.readUInt32LE(at + META.mode) & S_IFMT
  if (type === S_IFLNK) results.targets.push([index, new Uint8Array(content)])
  if (type !== S_IFREG || meta.readUInt32LE(at + META.flags) & (META_FLAG.unstable | META_FLAG.tooBig)) return
  contents[index] = content
}

/** The results as objects that read their fields when they are asked for. */
export function resultsOf({ meta, targets, xattrs }: BatchResults): MetaResult[] {
  const metaBuffer = asBuffer(meta)
  const results = Array.from({ length: metaBuffer.length / META.size_ }, (_, i) => new MetaResult(metaBuffer, i))
  for (const [index, bytes] of targets) results[index]!.target = asBuffer(bytes).toString('latin1')
  for (const [index, bytes] of xattrs) results[index]!.xattrs = asBuffer(bytes)
  return results
}

/** The id of the content that the META record at `at` speaks of. */
export const contentId = (meta: Buffer, at: number): Id =>
  meta.toString('latin1', at + META.id, at + META.id + ID_BYTES)

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

export class MetaResult implements ReadResult {
  /** The META record that this result stands for. */
  readonly meta: Buffer
  readonly at: number
  readonly content: Id
  target = ''
  xattrs: Buffer | undefined = undefined

  constructor(meta: Buffer, index: number) {
    this.meta = meta
    this.at = index * META.size_
    const isRead = this.errno === 0 && (this.mode & S_IFMT) === S_IFREG && this.unknown === undefined
    this.content = isRead ? contentId(meta, this.at) : ''
  }

  private u32(field: number): number {
    return this.meta.readUInt32LE(this.at + field)
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
