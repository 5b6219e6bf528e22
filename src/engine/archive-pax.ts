/**
 * PAX records, "length key=value\n". Values are bytes, so that names which are not UTF-8 stay as they are (libraries
 * decode them as text, which loses them). Also here: what we put into records beyond POSIX, in forms that others know.
 */
import type { Raw } from '../model/raw-path.ts'
import { unsafeArchive } from './archive-unsafe.ts'

export type PaxRecord = [key: Raw, value: Raw]

export function encodePax(records: readonly PaxRecord[]): Buffer {
  return Buffer.from(records.map(encodeRecord).join(''), 'latin1')
}

/** The length counts its own digits. */
function encodeRecord([key, value]: PaxRecord): Raw {
  const rest = ` ${key}=${value}\n`
  let length = rest.length
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return `${length}${rest}`
}

export function decodePax(bytes: Buffer): PaxRecord[] {
  const records: PaxRecord[] = []
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const digits = space < 0 ? '' : bytes.toString('latin1', at, Math.min(space, at + 12))
    const end = at + Number(digits)
    const equals = bytes.indexOf(0x3d, space + 1)
    const isWhole = /^[1-9]\d*$/.test(digits) && end <= bytes.length && bytes[end - 1] === 0x0a
    if (!isWhole || equals < 0 || equals >= end) throw unsafeArchive('is damaged: an extended header is malformed')
    records.push([bytes.toString('latin1', space + 1, equals), bytes.toString('latin1', equals + 1, end - 1)])
    at = end
  }
  return records
}

// --- times ---

const NS = 1_000_000_000n

export function encodePaxTime(timeNs: bigint): Raw {
  const absolute = timeNs < 0n ? -timeNs : timeNs
  const fraction = String(absolute % NS)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${timeNs < 0n ? '-' : ''}${absolute / NS}${fraction && `.${fraction}`}`
}

/** Digits beyond nanoseconds are cut off. */
export function decodePaxTime(text: Raw): bigint {
  const match = /^(-?)(\d{1,18})(?:\.(\d*))?$/.exec(text)
  if (!match) throw unsafeArchive('has a time that is none')
  const absolute = BigInt(match[2]!) * NS + BigInt((match[3] ?? '').slice(0, 9).padEnd(9, '0'))
  const timeNs = match[1] ? -absolute : absolute
  if (BigInt.asIntN(64, timeNs) !== timeNs) throw unsafeArchive('has a time that no file can have')
  return timeNs
}

// --- xattrs, as star, GNU tar and bsdtar write them ---

const XATTR_KEY = 'SCHILY.xattr.'
const MAX_XATTR_NAME_BYTES = 255
const MAX_XATTR_VALUE_BYTES = 64 * 1024

/** `encoded` as in native readEntries: u16 length, name, u32 length, value. */
export function xattrRecords(encoded: Buffer): PaxRecord[] {
  const records: PaxRecord[] = []
  for (let at = 0; at < encoded.length; ) {
    const nameEnd = at + 2 + encoded.readUInt16LE(at)
    const valueEnd = nameEnd + 4 + encoded.readUInt32LE(nameEnd)
    const name = encoded.toString('latin1', at + 2, nameEnd)
    // A key ends at its first "=": GNU tar's escapes.
    const key = name.replace(/[%=]/g, char => (char === '%' ? '%25' : '%3D'))
    records.push([`${XATTR_KEY}${key}`, encoded.toString('latin1', nameEnd + 4, valueEnd)])
    at = valueEnd
  }
  return records
}

/** Reverses `xattrRecords`; other records are passed over. undefined when there is none. */
export function encodeXattrs(records: Iterable<PaxRecord>): Buffer | undefined {
  const found: PaxRecord[] = []
  for (const [key, value] of records) {
    if (!key.startsWith(XATTR_KEY)) continue
    const name = key.slice(XATTR_KEY.length).replace(/%25|%3D/g, code => (code === '%25' ? '%' : '='))
    const isSound =
      name !== '' &&
      name.length <= MAX_XATTR_NAME_BYTES &&
      !name.includes('\0') &&
      value.length <= MAX_XATTR_VALUE_BYTES
    if (!isSound) throw unsafeArchive('has an extended attribute that no file can have')
    found.push([name, value])
  }
  if (found.length === 0) return undefined
  found.sort(([a], [b]) => (a < b ? -1 : 1))
  return Buffer.concat(
    found.flatMap(([name, value]) => {
      const lengths = Buffer.alloc(6)
      lengths.writeUInt16LE(name.length)
      lengths.writeUInt32LE(value.length, 2)
      return [lengths.subarray(0, 2), Buffer.from(name, 'latin1'), lengths.subarray(2), Buffer.from(value, 'latin1')]
    }),
  )
}
