/**
 * What git's index says, without the timestamps that git refreshes in it: `git status` rewrites the file, and nobody
 * would call that an edit.
 */
import { hashBytes } from '../model/id.ts'

const HEADER_BYTES = 12
/** ctime, mtime, dev, ino, mode, uid, gid, size: 4 bytes each, times 8. */
const STAT_BYTES = 40
const MODE_AT = 24
const SHA1_BYTES = 20
const EXTENDED = 0x4000

/** Equal digests mean the same entries. undefined: not an index in a form that is known here (SHA-256, version 4, damage). */
export function indexDigest(bytes: Buffer): string | undefined {
  if (bytes.length < HEADER_BYTES + SHA1_BYTES || bytes.toString('latin1', 0, 4) !== 'DIRC') return undefined
  const version = bytes.readUInt32BE(4)
  if (version !== 2 && version !== 3) return undefined
  const parts: Buffer[] = []
  let at = HEADER_BYTES
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const end = entryEnd(bytes, at)
    if (end === undefined) return undefined
    parts.push(bytes.subarray(at + MODE_AT, at + MODE_AT + 4), bytes.subarray(at + STAT_BYTES, end))
    at = paddedEnd(at, end)
  }
  return hashBytes(Buffer.concat(parts))
}

/** The end of an entry's path, its NUL excluded; undefined when the entry does not fit the file. */
function entryEnd(bytes: Buffer, at: number): number | undefined {
  const flagsAt = at + STAT_BYTES + SHA1_BYTES
  if (flagsAt + 4 > bytes.length) return undefined
  const pathAt = flagsAt + (bytes.readUInt16BE(flagsAt) & EXTENDED ? 4 : 2)
  const end = bytes.indexOf(0, pathAt)
  return end < 0 ? undefined : end
}

/** Entries are padded with 1 to 8 NULs to a multiple of eight bytes. */
const paddedEnd = (start: number, end: number): number => start + Math.ceil((end + 1 - start) / 8) * 8
