/**
 * What git's index says. Compared without the timestamps that git refreshes in it: `git status` rewrites the file, and nobody
 * would call that an edit.
 */
import { hashBytes } from '../model/id.ts'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'

const HEADER_BYTES = 12
/** ctime, mtime, dev, ino, mode, uid, gid, size: 4 bytes each, times 8. */
const STAT_BYTES = 40
const MTIME_AT = 8
const MODE_AT = 24
const SIZE_AT = 36
const SHA1_BYTES = 20
const SHA256_BYTES = 32
const EXTENSION_BYTES = 8
const EXTENDED = 0x4000
const MORE_OF_NUMBER = 0x80

/** Equal digests mean the same entries. undefined: not an index in a form that is known here (SHA-256, damage). */
export function indexDigest(bytes: Buffer): string | undefined {
  const version = versionOf(bytes)
  if (version === undefined) return undefined
  const parts: Buffer[] = []
  // In version 4 a path says how much of the one before it goes on: with the same entries before it, that is the same.
  const end = walk(bytes, version, SHA1_BYTES, ({ at, end }) =>
    parts.push(bytes.subarray(at + MODE_AT, at + MODE_AT + 4), bytes.subarray(at + STAT_BYTES, end)),
  )
  return end === undefined ? undefined : hashBytes(Buffer.concat([Buffer.of(version === 4 ? 4 : 3), ...parts]))
}

export interface IndexEntry {
  oid: string
  /** As the index last saw the file; then its content is that object. */
  size: number
  mtimeNs: bigint
}

/** By path; of a sparse index also directories, with a slash at their end. undefined: not an index that is known here, or not whole. */
export const readIndexEntries = (bytes: Buffer): Map<Raw, IndexEntry> | undefined =>
  entriesWith(bytes, SHA1_BYTES) ?? entriesWith(bytes, SHA256_BYTES)

function entriesWith(bytes: Buffer, hashLength: number): Map<Raw, IndexEntry> | undefined {
  const version = versionOf(bytes)
  if (version === undefined) return undefined
  const found = new Map<Raw, IndexEntry>()
  let before: Raw = ''
  let at = walk(bytes, version, hashLength, entry => {
    const path = before.slice(0, before.length - entry.cut) + rawFromBytes(bytes.subarray(entry.pathAt, entry.end))
    before = version === 4 ? path : ''
    found.set(path, {
      oid: bytes.toString('hex', entry.at + STAT_BYTES, entry.at + STAT_BYTES + hashLength),
      size: bytes.readUInt32BE(entry.at + SIZE_AT),
      mtimeNs:
        BigInt(bytes.readUInt32BE(entry.at + MTIME_AT)) * 1_000_000_000n +
        BigInt(bytes.readUInt32BE(entry.at + MTIME_AT + 4)),
    })
  })
  // With another length of hashes the extensions would not lead to the last one.
  const last = bytes.length - hashLength
  while (at !== undefined && at + EXTENSION_BYTES <= last) at += EXTENSION_BYTES + bytes.readUInt32BE(at + 4)
  return at === last ? found : undefined
}

function versionOf(bytes: Buffer): number | undefined {
  if (bytes.length < HEADER_BYTES + SHA1_BYTES || bytes.toString('latin1', 0, 4) !== 'DIRC') return undefined
  const version = bytes.readUInt32BE(4)
  return version < 2 || version > 4 ? undefined : version
}

interface Place {
  at: number
  /** How much of the path before it does not go on in this one. */
  cut: number
  pathAt: number
  /** Of the path, its NUL excluded. */
  end: number
}

/** Returns where the entries end; undefined when one does not fit the file. */
function walk(bytes: Buffer, version: number, hashLength: number, visit: (place: Place) => void): number | undefined {
  let at = HEADER_BYTES
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const place = placeOf(bytes, at, version, hashLength)
    if (place === undefined) return undefined
    visit(place)
    at = version === 4 ? place.end + 1 : paddedEnd(at, place.end)
  }
  return at
}

function placeOf(bytes: Buffer, at: number, version: number, hashLength: number): Place | undefined {
  const flagsAt = at + STAT_BYTES + hashLength
  if (flagsAt + 4 > bytes.length) return undefined
  let pathAt = flagsAt + (bytes.readUInt16BE(flagsAt) & EXTENDED ? 4 : 2)
  let cut = 0
  // The number before the path may have a NUL of its own.
  if (version === 4)
    for (let isFirst = true, byte = MORE_OF_NUMBER; byte & MORE_OF_NUMBER && pathAt < bytes.length; isFirst = false) {
      byte = bytes[pathAt++]!
      cut = (isFirst ? 0 : (cut + 1) * MORE_OF_NUMBER) + (byte & ~MORE_OF_NUMBER)
    }
  const end = bytes.indexOf(0, pathAt)
  return end < 0 ? undefined : { at, cut, pathAt, end }
}

/** Entries are padded with 1 to 8 NULs to a multiple of eight bytes. */
const paddedEnd = (start: number, end: number): number => start + Math.ceil((end + 1 - start) / 8) * 8
