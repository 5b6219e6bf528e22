/** The 512-byte header block of tar: POSIX ustar is written; ustar, GNU and the old format without magic are read. */
import type { Raw } from '../model/raw-path.ts'
import { unsafeArchive } from './archive-unsafe.ts'

export const TAR_BLOCK_BYTES = 512
export const NAME_BYTES = 100

export interface TarHeader {
  name: Raw
  mode: number
  uid: number
  gid: number
  size: number
  mtimeSeconds: number
  /** The type flag, one character. */
  type: string
  linkname: Raw
  devMajor: number
  devMinor: number
}

/** Offset and length of the fields. */
const FIELD = {
  name: [0, NAME_BYTES],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkname: [157, NAME_BYTES],
  magic: [257, 8],
  devMajor: [329, 8],
  devMinor: [337, 8],
  prefix: [345, 155],
} as const
type Field = readonly [offset: number, length: number]

const USTAR = 'ustar\x0000'
const GNU = 'ustar  \0'

/** Names beyond their field are cut, and numbers beyond theirs become binary: PAX records say them as POSIX wants it. */
export function encodeTarHeader(header: TarHeader): Buffer {
  const block = Buffer.alloc(TAR_BLOCK_BYTES)
  block.write(header.name.slice(0, NAME_BYTES), 'latin1')
  writeNumber(block, FIELD.mode, header.mode)
  writeNumber(block, FIELD.uid, header.uid)
  writeNumber(block, FIELD.gid, header.gid)
  writeNumber(block, FIELD.size, header.size)
  writeNumber(block, FIELD.mtime, Math.max(0, header.mtimeSeconds))
  block.write(header.type, FIELD.type[0], 'latin1')
  block.write(header.linkname.slice(0, NAME_BYTES), FIELD.linkname[0], 'latin1')
  block.write(USTAR, FIELD.magic[0], 'latin1')
  writeNumber(block, FIELD.devMajor, header.devMajor)
  writeNumber(block, FIELD.devMinor, header.devMinor)
  block.write(`${checksums(block).unsigned.toString(8).padStart(6, '0')}\0 `, FIELD.checksum[0], 'latin1')
  return block
}

/** Whether a number fits into the field as POSIX defines it. */
export const fitsOctal = (value: number, digits: 7 | 11): boolean => value >= 0 && value < 8 ** digits

function writeNumber(block: Buffer, [at, length]: Field, value: number): void {
  const digits = value.toString(8)
  if (digits.length < length) {
    block.write(digits.padStart(length - 1, '0'), at, 'latin1')
    return
  }
  let rest = value
  for (let i = at + length - 1; i > at; i--) {
    block[i] = rest % 256
    rest = Math.floor(rest / 256)
  }
  block[at] = 0x80
}

/** undefined for a block of zeros. Throws when it is no header, or a damaged one. */
export function decodeTarHeader(block: Buffer): TarHeader | undefined {
  if (isZero(block)) return undefined
  const sum = readNumber(block, FIELD.checksum)
  const { unsigned, signed } = checksums(block)
  // Some old writers summed signed bytes.
  if (sum !== unsigned && sum !== signed) throw unsafeArchive('is damaged: a checksum is wrong')
  const magic = readRaw(block, FIELD.magic)
  const isUstar = magic.startsWith('ustar\0')
  if (!isUstar && magic !== GNU && magic.slice(0, 5) !== '\0'.repeat(5)) throw unsafeArchive('is of an unknown format')
  const prefix = isUstar ? readText(block, FIELD.prefix) : ''
  const name = readText(block, FIELD.name)
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    mode: readNumber(block, FIELD.mode),
    uid: readNumber(block, FIELD.uid),
    gid: readNumber(block, FIELD.gid),
    size: readNumber(block, FIELD.size),
    mtimeSeconds: readNumber(block, FIELD.mtime),
    type: readRaw(block, FIELD.type),
    linkname: readText(block, FIELD.linkname),
    devMajor: readNumber(block, FIELD.devMajor),
    devMinor: readNumber(block, FIELD.devMinor),
  }
}

/** Whether an archive may begin like this: what says that it is a header, or sums up as one, or an end without entries. */
export function mayBeTar(head: Buffer): boolean {
  if (head.length < TAR_BLOCK_BYTES) return false
  if (readRaw(head, FIELD.magic).startsWith('ustar') || isZero(head)) return true
  const sum = Number.parseInt(readText(head, FIELD.checksum), 8)
  const { unsigned, signed } = checksums(head)
  return sum === unsigned || sum === signed
}

export const isZero = (bytes: Buffer): boolean => bytes.every(byte => byte === 0)

const readRaw = (block: Buffer, [at, length]: Field): Raw => block.toString('latin1', at, at + length)

/** Up to the first NUL. */
function readText(block: Buffer, field: Field): Raw {
  const raw = readRaw(block, field)
  const nul = raw.indexOf('\0')
  return nul < 0 ? raw : raw.slice(0, nul)
}

/** Octal digits, or GNU's binary form (two's complement, marked by the top bit). */
export function readTarNumber(block: Buffer, at: number, length: number): number {
  const first = block[at]!
  if (first < 0x80) {
    const match = /^ *([0-7]*)[ \0]*$/.exec(block.toString('latin1', at, at + length))
    if (!match) throw unsafeArchive('is damaged: a number in a header is none')
    return match[1] === '' ? 0 : Number.parseInt(match[1]!, 8)
  }
  let value = first === 0xff ? -1 : first & 0x7f
  for (let i = at + 1; i < at + length; i++) value = value * 256 + block[i]!
  if (!Number.isSafeInteger(value)) throw unsafeArchive('is damaged: a number in a header is too large')
  return value
}

const readNumber = (block: Buffer, [at, length]: Field): number => readTarNumber(block, at, length)

/** The sum of all bytes, where those of the checksum itself count as spaces. */
function checksums(block: Buffer): { unsigned: number; signed: number } {
  const [from, length] = FIELD.checksum
  let unsigned = length * 0x20
  let signed = unsigned
  for (let i = 0; i < TAR_BLOCK_BYTES; i++) {
    if (i >= from && i < from + length) continue
    unsigned += block[i]!
    signed += block.readInt8(i)
  }
  return { unsigned, signed }
}
