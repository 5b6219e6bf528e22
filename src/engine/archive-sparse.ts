/**
 * Where the data of a sparse file lies. Written as GNU's PAX format 1.0, which GNU tar, bsdtar and we read: the map
 * stands before the data. GNU's older header format ("S", what `tar -S` writes by default) is read as well.
 */
import type { Raw } from '../model/raw-path.ts'
import type { PaxRecord } from './archive-pax.ts'
import { readTarNumber, TAR_BLOCK_BYTES } from './archive-tar-header.ts'
import { type ImportLimits, unsafeArchive } from './archive-unsafe.ts'

/** A stretch of data; what lies between them are holes. */
export interface Segment {
  offset: number
  length: number
}

export const dataBytes = (segments: readonly Segment[]): number => segments.reduce((sum, { length }) => sum + length, 0)

export const sparseRecords = (name: Raw, size: number): PaxRecord[] => [
  ['GNU.sparse.major', '1'],
  ['GNU.sparse.minor', '0'],
  ['GNU.sparse.name', name],
  ['GNU.sparse.realsize', String(size)],
]

/** The map that stands before the data, padded to whole blocks. An empty segment at the end marks a hole up to there. */
export function encodeSparseMap(segments: readonly Segment[], size: number): Buffer {
  const last = segments.at(-1)
  const all = last && last.offset + last.length === size ? segments : [...segments, { offset: size, length: 0 }]
  const text = [all.length, ...all.flatMap(({ offset, length }) => [offset, length])].join('\n')
  const bytes = Buffer.from(`${text}\n`)
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & (TAR_BLOCK_BYTES - 1))])
}

/** Reads the map of format 1.0 from the beginning of an entry's data, whole blocks at a time. */
export async function readSparseMap(
  readBlock: () => Promise<Buffer>,
  size: number,
  limits: ImportLimits,
): Promise<Segment[]> {
  let text = ''
  const number = async (): Promise<number> => {
    let newline = text.indexOf('\n')
    while (newline < 0) {
      if (text.length > TAR_BLOCK_BYTES) throw unsafeArchive('has a malformed map of a sparse file')
      text += (await readBlock()).toString('latin1')
      newline = text.indexOf('\n')
    }
    const digits = text.slice(0, newline)
    text = text.slice(newline + 1)
    if (!/^\d{1,16}$/.test(digits)) throw unsafeArchive('has a malformed map of a sparse file')
    return Number(digits)
  }
  const count = await number()
  if (count > limits.sparseSegments)
    throw unsafeArchive(`has a sparse file of more than ${limits.sparseSegments} parts`)
  const segments: Segment[] = []
  for (let i = 0; i < count; i++) segments.push({ offset: await number(), length: await number() })
  return checkSegments(segments, size)
}

const OLD = { first: 386, firstCount: 4, extended: 482, size: 483, nextCount: 21, nextExtended: 504, pair: 24 } as const

/** GNU's older format: the map begins in the header and goes on in blocks after it. */
export async function readOldSparseMap(
  header: Buffer,
  readBlock: () => Promise<Buffer>,
  limits: ImportLimits,
): Promise<{ segments: Segment[]; size: number }> {
  const size = readTarNumber(header, OLD.size, 12)
  const segments = oldPairs(header, OLD.first, OLD.firstCount)
  for (let more = header[OLD.extended] !== 0; more; ) {
    const block = await readBlock()
    segments.push(...oldPairs(block, 0, OLD.nextCount))
    if (segments.length > limits.sparseSegments)
      throw unsafeArchive(`has a sparse file of more than ${limits.sparseSegments} parts`)
    more = block[OLD.nextExtended] !== 0
  }
  return { segments: checkSegments(segments, size), size }
}

function oldPairs(block: Buffer, at: number, count: number): Segment[] {
  const pairs: Segment[] = []
  for (let i = 0; i < count && block[at + i * OLD.pair] !== 0; i++) {
    const from = at + i * OLD.pair
    pairs.push({ offset: readTarNumber(block, from, 12), length: readTarNumber(block, from + 12, 12) })
  }
  return pairs
}

function checkSegments(segments: Segment[], size: number): Segment[] {
  let end = 0
  for (const { offset, length } of segments) {
    if (offset < end || length < 0 || offset + length > size)
      throw unsafeArchive('has a malformed map of a sparse file')
    end = offset + length
  }
  return segments.filter(({ length }) => length > 0)
}
