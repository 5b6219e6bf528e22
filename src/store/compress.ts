/** zstd for blocks: level 1, because small files grouped into half-megabyte blocks gain more from grouping than from effort. */
// By name they could not even be imported by a Node that is too old, which sqlite.ts refuses in words.
import * as zlib from 'node:zlib'
import { SavepointError } from '../errors/errors.ts'
import { CODEC } from './pack-format.ts'

const LEVEL = 1
/** With room for the worst case, zstd packs from the input straight into the output, in one piece and without a copy. */
const boundOf = (bytes: number): number => bytes + (bytes >> 8) + 1024
/** So that the output never lies in node's shared pool: its memory is released as soon as it is used. */
const MIN_OUTPUT_BYTES = 256 * 1024
/** Unpacked in one piece up to here, as nearly all blocks are; above, what a forged block says of its size is not believed at once. */
const MAX_PIECE_BYTES = 4 * 1024 * 1024
const MIN_PIECE_BYTES = 64
/** Content that shrinks by less than this fraction is stored as it is: reading it back is then free. */
export const WORTHWHILE = 0.97

/** Not in node:zlib: whether literals are packed. 1: always, also where zstd leaves it out for speed. */
const LITERAL_COMPRESSION = 1002
/** How many bytes without a match are passed over at a time, beside the first. */
const ACCELERATION = 3
/** 2 to this many places where something was seen are remembered: so many fit into the nearest cache of a processor. */
const HASH_LOG = 13

/**
 * For many blocks (the addon's ingest): parameters and values, the first that the zstd at hand accepts. Longer steps
 * where nothing matches, and a smaller table, save a sixth of the time and cost a tenth of the size; decision 012 has the numbers.
 */
export const blockParameters = (): Buffer[] =>
  [
    [
      zlib.constants.ZSTD_c_compressionLevel,
      LEVEL,
      zlib.constants.ZSTD_c_targetLength,
      ACCELERATION,
      zlib.constants.ZSTD_c_hashLog,
      HASH_LOG,
      LITERAL_COMPRESSION,
      1,
    ],
    [zlib.constants.ZSTD_c_compressionLevel, LEVEL],
  ].map(pairs => Buffer.from(Int32Array.from(pairs).buffer))

export function compressBlock(raw: Uint8Array): { codec: number; payload: Uint8Array } {
  const packed = zlib.zstdCompressSync(raw, {
    params: { [zlib.constants.ZSTD_c_compressionLevel]: LEVEL },
    chunkSize: Math.max(boundOf(raw.length), MIN_OUTPUT_BYTES),
    pledgedSrcSize: raw.length,
  })
  return packed.length < raw.length * WORTHWHILE
    ? { codec: CODEC.zstd, payload: packed }
    : { codec: CODEC.stored, payload: raw }
}

/** `rawBytes` bounds the output, so a forged block cannot fill the memory. */
export function decompressBlock(payload: Buffer, codec: number, rawBytes: number): Buffer {
  try {
    const raw = codec === CODEC.zstd ? unpack(payload, rawBytes) : payload
    if (raw.length === rawBytes) return raw
  } catch (cause) {
    throw damaged(cause)
  }
  throw damaged(undefined)
}

/** A piece that is filled to its end makes zlib ask for another. */
const unpack = (payload: Buffer, rawBytes: number): Buffer =>
  zlib.zstdDecompressSync(payload, {
    maxOutputLength: Math.max(rawBytes, 1),
    chunkSize: Math.min(Math.max(rawBytes + 1, MIN_PIECE_BYTES), MAX_PIECE_BYTES),
  })

const damaged = (cause: unknown) =>
  new SavepointError('store.damaged', 'Cannot unpack a block of the store: its bytes are damaged', {
    hint: 'Run `savepoint verify` to see what is affected',
    cause,
  })
