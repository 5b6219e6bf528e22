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
const MORE_OF_NUMBER = 0x80

/** Equal digests mean the same entries. undefined: not an index in a form that is known here (SHA-256, damage). */
export function indexDigest(bytes: Buffer): string | undefined {
  if (bytes.length < HEADER_BYTES + SHA1_BYTES || bytes.toString('latin1', 0, 4) !== 'DIRC') return undefined
  const version = bytes.readUInt32BE(4)
  if (version < 2 || version > 4) return undefined
  const parts: Buffer[] = []
  let at = HEADER_BYTES
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const end = entryEnd(bytes, at, version)
    if (end === undefined) return undefined
    // In version 4 a path says how much of the one before it goes on: with the same entries before it, that is the same.
    parts.push(bytes.subarray(at + MODE_AT, at + MODE_AT + 4), bytes.subarray(at + STAT_BYTES, end))
    at = version === 4 ? end + 1 : paddedEnd(at, end)
  }
  return hashBytes(Buffer.concat([Buffer.of(version === 4 ? 4 : 3), ...parts]))
}

/** The end of an entry's path, its NUL excluded; undefined when the entry does not fit the file. */
function entryEnd(bytes: Buffer, at: number, version: number): number | undefined {
  const flagsAt = at + STAT_BYTES + SHA1_BYTES
  if (flagsAt + 4 > bytes.length) return undefined
  let pathAt = flagsAt + (bytes.readUInt16BE(flagsAt) & EXTENDED ? 4 : 2)
  // The number before the path may have a NUL of its own.
  if (version === 4) while (pathAt < bytes.length && bytes[pathAt++]! & MORE_OF_NUMBER);
  const end = bytes.indexOf(0, pathAt)
  return end < 0 ? undefined : end
}

/** Entries are padded with 1 to 8 NULs to a multiple of eight bytes. */
const paddedEnd = (start: number, end: number): number => start + Math.ceil((end + 1 - start) / 8) * 8
