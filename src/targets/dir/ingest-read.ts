/**
 * Reads entries and names their content, on the main thread for a few and in workers for many. Nothing is stored here:
 * the caller decides with the hashes which contents are new.
 */
import type { Id, UnknownReason } from '../../model/entry.ts'
import { hashBytes } from '../../model/id.ts'
import { rawFromBytes } from '../../model/raw-path.ts'
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
  errno: number
  unknown: UnknownReason | undefined
  mode: number
  nlink: number
  uid: number
  gid: number
  size: number
  mtimeNs: bigint
  ctimeNs: bigint
  ino: bigint
  content: Id
  target: string
  xattrs: Buffer | undefined
  sparse: boolean
  rdevMajor: number
  rdevMinor: number
}

/** A result and, while its buffer lives, the bytes of a regular file. */
export interface ReadEntry {
  result: ReadResult
  bytes: Buffer | undefined
}

/** `paths`: NUL-separated. Results in the same order. `expectedBytes`: the sum of the sizes seen by the walk. */
export function readBatch(root: number, paths: Buffer, count: number, expectedBytes: number): ReadEntry[] {
  const entries: ReadEntry[] = []
  let rest = paths
  let room = expectedBytes + SLACK_BYTES
  while (entries.length < count) {
    const out = Buffer.allocUnsafeSlow(room)
    const { done, meta } = addon.readEntries(root, rest, out, WHOLE_FILE_BYTES, READ_RETRIES)
    for (let i = 0; i < done; i++) entries.push(toEntry(meta, i * META.size_, out))
    rest = skipPaths(rest, done)
    // Something grew since the walk: go on with room for the largest file and its xattrs.
    room = 2 * WHOLE_FILE_BYTES + SLACK_BYTES
  }
  return entries
}

function skipPaths(paths: Buffer, count: number): Buffer {
  let at = 0
  for (let i = 0; i < count; i++) {
    const end = paths.indexOf(0, at)
    at = end < 0 ? paths.length : end + 1
  }
  return paths.subarray(at)
}

function toEntry(meta: Buffer, at: number, out: Buffer): ReadEntry {
  const result = statResult(meta, at)
  if (result.errno !== 0) return { result, bytes: undefined }
  const flags = meta.readUInt32LE(at + META.flags)
  const contentAt = meta.readUInt32LE(at + META.contentOffset)
  const content = out.subarray(contentAt, contentAt + meta.readUInt32LE(at + META.contentLength))
  const xattrLength = meta.readUInt32LE(at + META.xattrLength)
  if (xattrLength > 0) {
    const xattrAt = meta.readUInt32LE(at + META.xattrOffset)
    result.xattrs = Buffer.from(out.subarray(xattrAt, xattrAt + xattrLength))
  }
  const type = result.mode & S_IFMT
  if (type === S_IFLNK) {
    result.target = rawFromBytes(content)
    return { result, bytes: undefined }
  }
  if (type !== S_IFREG) return { result, bytes: undefined }
  if (flags & META_FLAG.unstable) result.unknown = 'unstable'
  else if (flags & META_FLAG.tooBig) result.unknown = 'too-large'
  else {
    result.content = hashBytes(content)
    result.size = content.length
  }
  result.sparse = (flags & META_FLAG.sparse) !== 0
  return { result, bytes: result.unknown ? undefined : content }
}

function statResult(meta: Buffer, at: number): ReadResult {
  return {
    errno: meta.readInt32LE(at + META.errno),
    unknown: undefined,
    mode: meta.readUInt32LE(at + META.mode),
    nlink: meta.readUInt32LE(at + META.nlink),
    uid: meta.readUInt32LE(at + META.uid),
    gid: meta.readUInt32LE(at + META.gid),
    size: Number(meta.readBigUInt64LE(at + META.size)),
    mtimeNs: meta.readBigInt64LE(at + META.mtimeNs),
    ctimeNs: meta.readBigInt64LE(at + META.ctimeNs),
    ino: meta.readBigUInt64LE(at + META.ino),
    content: '',
    target: '',
    xattrs: undefined,
    sparse: false,
    rdevMajor: meta.readUInt32LE(at + META.rdevMajor),
    rdevMinor: meta.readUInt32LE(at + META.rdevMinor),
  }
}
