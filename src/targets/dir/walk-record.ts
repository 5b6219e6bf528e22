/** Reads and patches the records that native `scanDirs` returns, without making an object per entry. */
import { META, RECORD, RECORD_FLAG, SCAN_HEADER } from '../../native/addon.ts'
import { MetaResult, type ReadResult } from './ingest-read.ts'

export const S_IFMT = 0o170000
export const S_IFREG = 0o100000
export const S_IFDIR = 0o040000
export const S_IFLNK = 0o120000
export const S_IFIFO = 0o010000
export const S_IFCHR = 0o020000
export const S_IFBLK = 0o060000
export const S_IFSOCK = 0o140000

/** One directory's records and, when it could not be listed, why. */
export interface Listing {
  records: Buffer
  /** They are those that were known, and `records` is empty. */
  same: boolean
  errno: number
  /** The change time of the directory after it was listed, in ns; undefined when it was not asked for. */
  ctimeNs: bigint | undefined
}

/** Most are: one object for all. */
const asKnown: Listing = { records: Buffer.alloc(0), same: true, errno: 0, ctimeNs: undefined }

/** Splits the result of `scanDirs` into the listings, in the order of its paths. */
export function splitListings(scan: Buffer, directories: number): Listing[] {
  const listings: Listing[] = []
  for (let i = 0, at = 0; i < directories; i++) {
    const bytes = scan.readUInt32LE(at + SCAN_HEADER.bytes)
    const start = at + SCAN_HEADER.size
    const same = scan.readUInt32LE(at + SCAN_HEADER.same) === 1
    const errno = scan.readInt32LE(at + SCAN_HEADER.errno)
    const isKnown = same && bytes === 0 && errno === 0
    const ctimeNs = scan.readBigInt64LE(at + SCAN_HEADER.ctimeNs)
    listings.push(isKnown ? asKnown : { records: scan.subarray(start, start + bytes), same, errno, ctimeNs })
    at = start + bytes
  }
  return listings
}

export const recordLength = (records: Buffer, at: number): number =>
  RECORD.name + records.readUInt16LE(at + RECORD.nameLength)
export const recordName = (records: Buffer, at: number): string =>
  records.toString('latin1', at + RECORD.name, at + RECORD.name + records.readUInt16LE(at + RECORD.nameLength))
export const recordMode = (records: Buffer, at: number): number => records.readUInt16LE(at + RECORD.mode)
export const recordType = (records: Buffer, at: number): number => records.readUInt16LE(at + RECORD.mode) & S_IFMT
export const recordSize = (records: Buffer, at: number): number =>
  records.readUInt32LE(at + RECORD.size) + records.readUInt32LE(at + RECORD.size + 4) * 0x1_0000_0000
export const recordNlink = (records: Buffer, at: number): number => records.readUInt32LE(at + RECORD.nlink)
export const recordUid = (records: Buffer, at: number): number => records.readUInt32LE(at + RECORD.uid)
export const recordGid = (records: Buffer, at: number): number => records.readUInt32LE(at + RECORD.gid)
export const recordMtimeNs = (records: Buffer, at: number): bigint => records.readBigInt64LE(at + RECORD.mtimeNs)
export const recordCtimeNs = (records: Buffer, at: number): bigint => records.readBigInt64LE(at + RECORD.ctimeNs)
export const recordIno = (records: Buffer, at: number): bigint => records.readBigUInt64LE(at + RECORD.ino)
export const isMountPoint = (records: Buffer, at: number): boolean =>
  (records[at + RECORD.flags]! & RECORD_FLAG.mountPoint) !== 0
export const statFailed = (records: Buffer, at: number): boolean =>
  (records[at + RECORD.flags]! & RECORD_FLAG.statFailed) !== 0
export const statErrno = (records: Buffer, at: number): number => records.readUInt32LE(at + RECORD.rdevMajor)

/** Whether nothing in the directory could be looked at: its owner may list it but not pass through (0444). */
export const isClosedListing = (records: Buffer): boolean => records.length > 0 && statFailed(records, 0)

/** Calls `visit` with the offset of each record. */
export function forEachRecord(records: Buffer, visit: (at: number) => void): void {
  for (let at = 0; at < records.length; at += recordLength(records, at)) visit(at)
}

/** Byte by byte, without an object or a call per record: it is asked of all that a large tree has. Directories have no count. */
export function hasLinksIn(bytes: Buffer, from: number, end: number): boolean {
  const { nlink, nameLength, name } = RECORD
  for (let at = from; at < end; at += name + bytes[at + nameLength]! + bytes[at + nameLength + 1]! * 256) {
    const count = at + nlink
    if (bytes[count]! > 1 || (bytes[count + 1]! | bytes[count + 2]! | bytes[count + 3]!) !== 0) return true
  }
  return false
}

/** Finds records of a listing by the names of another one, in their order: both are sorted. */
export class RecordCursor {
  private readonly records: Buffer
  private at = 0

  constructor(records: Buffer) {
    this.records = records
  }

  /** Where the record with the name of `other`'s record at `otherAt` is; undefined when there is none. */
  find(other: Buffer, otherAt: number): number | undefined {
    const end = otherAt + recordLength(other, otherAt)
    while (this.at < this.records.length) {
      const next = this.at + recordLength(this.records, this.at)
      const order = this.records.compare(other, otherAt + RECORD.name, end, this.at + RECORD.name, next)
      if (order === 0) return this.at
      if (order > 0) return undefined
      this.at = next
    }
    return undefined
  }
}

/** The record's bytes without the name: equal bytes mean "nothing changed since". */
export const sameRecord = (a: Buffer, aAt: number, b: Buffer, bAt: number): boolean =>
  a.compare(b, bAt, bAt + RECORD.name, aAt, aAt + RECORD.name) === 0

/** Makes the record say what the reading saw, which may be newer than the walk. */
export function patchRecord(records: Buffer, at: number, result: ReadResult): void {
  records.writeUInt16LE(result.mode & 0xffff, at + RECORD.mode)
  records.writeUInt32LE(result.uid, at + RECORD.uid)
  records.writeUInt32LE(result.gid, at + RECORD.gid)
  const isDirectory = (result.mode & S_IFMT) === S_IFDIR
  if (result instanceof MetaResult) {
    // Bytes are copied as they are: making bigints of them for every file would cost more than reading it.
    const { meta, at: from } = result
    meta.copy(records, at + RECORD.ctimeNs, from + META.ctimeNs, from + META.ctimeNs + 8)
    meta.copy(records, at + RECORD.ino, from + META.ino, from + META.ino + 8)
    if (isDirectory) return
    meta.copy(records, at + RECORD.size, from + META.size, from + META.size + 8)
    meta.copy(records, at + RECORD.mtimeNs, from + META.mtimeNs, from + META.mtimeNs + 8)
  } else {
    records.writeBigInt64LE(result.ctimeNs, at + RECORD.ctimeNs)
    records.writeBigUInt64LE(result.ino, at + RECORD.ino)
    records.writeBigUInt64LE(BigInt(result.size), at + RECORD.size)
    records.writeBigInt64LE(result.mtimeNs, at + RECORD.mtimeNs)
  }
  records.writeUInt32LE(result.nlink, at + RECORD.nlink)
}

/** Makes the record differ from any that a walk can return, so that the entry is read again next time. */
export function smudgeRecord(records: Buffer, at: number): void {
  records.writeBigInt64LE(-1n, at + RECORD.ctimeNs)
}
