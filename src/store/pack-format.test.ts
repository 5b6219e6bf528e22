import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SavepointError } from '../errors/errors.ts'
import { hashBytes } from '../model/id.ts'
import { BlockBuilder } from './block-builder.ts'
import { decompressBlock } from './compress.ts'
import {
  BLOCK_HEADER_BYTES,
  blockObjects,
  blockPayload,
  CODEC,
  decodeBlockHeader,
  encodeBlock,
  isIntactBlock,
  isPackHeader,
  OBJECT,
  PACK_HEADER_BYTES,
  packHeader,
} from './pack-format.ts'

const contents = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 20 })

function blockOf(parts: Uint8Array[]): Buffer {
  const builder = new BlockBuilder()
  for (const part of parts) builder.add(hashBytes(part), OBJECT.data, part)
  return builder.finish()!
}

/** What a reader does with bytes that may be a block: the objects, or undefined when it is none. */
function readBlock(bytes: Buffer): Buffer[] | undefined {
  const header = decodeBlockHeader(bytes)
  if (!header || header.totalBytes !== bytes.length || !isIntactBlock(bytes)) return undefined
  const raw = decompressBlock(blockPayload(bytes, header), header.codec, header.rawBytes)
  let offset = 0
  return blockObjects(bytes, header).map(({ length }) => {
    offset += length
    return raw.subarray(offset - length, offset)
  })
}

describe('a block', () => {
  test('gives back what was put in, whether it was worth compressing or not', () => {
    fc.assert(
      fc.property(contents, parts => {
        expect(readBlock(blockOf(parts))!.map(part => part.toString('hex'))).toEqual(
          parts.map(part => Buffer.from(part).toString('hex')),
        )
      }),
    )
  })

  test('is compressed when that saves something, and stored as it is otherwise', () => {
    expect(decodeBlockHeader(blockOf([Buffer.alloc(10_000, 'a')]))!.codec).toBe(CODEC.zstd)
    expect(decodeBlockHeader(blockOf([Buffer.from('x')]))!.codec).toBe(CODEC.stored)
  })

  test('with any one bit flipped is refused (X4)', () => {
    fc.assert(
      fc.property(contents, fc.nat(), (parts, at) => {
        const block = blockOf(parts)
        const bit = at % (block.length * 8)
        block[bit >> 3]! ^= 1 << (bit & 7)
        expect(readBlock(block)).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  test('that is cut off or has bytes behind it is refused (X4)', () => {
    fc.assert(
      fc.property(contents, fc.nat(), (parts, at) => {
        const block = blockOf(parts)
        expect(readBlock(block.subarray(0, at % block.length))).toBeUndefined()
        expect(readBlock(Buffer.concat([block, Buffer.alloc(1)]))).toBeUndefined()
      }),
    )
  })

  test('of random bytes is refused, also with a right beginning (X4)', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, withMagic) => {
        const block = Buffer.concat([withMagic ? Buffer.from('BLK1') : Buffer.alloc(0), bytes])
        expect(readBlock(block)).toBeUndefined()
      }),
    )
  })

  test('that claims to be huge is refused before anything is allocated', () => {
    const block = blockOf([Buffer.from('x')])
    for (const field of [8, 12, 16]) {
      const forged = Buffer.from(block)
      forged.writeUInt32LE(0xffffffff, field)
      expect(decodeBlockHeader(forged)).toBeUndefined()
    }
  })

  test('whose payload unpacks to more than it says is refused: no bomb', () => {
    const { payload } = {
      payload: blockPayload(blockOf([Buffer.alloc(500_000)]), decodeBlockHeader(blockOf([Buffer.alloc(500_000)]))!),
    }
    const forged = encodeBlock(
      [{ id: hashBytes(Buffer.alloc(0)), kind: OBJECT.data, length: 10 }],
      payload,
      CODEC.zstd,
      10,
    )
    expect(() => readBlock(forged)).toThrow(SavepointError)
    expect(() => decompressBlock(Buffer.from('not zstd'), CODEC.zstd, 10)).toThrow(SavepointError)
  })
})

test('the header of a pack is recognised, and nothing else is', () => {
  expect(isPackHeader(packHeader())).toBe(true)
  for (let at = 0; at < 12; at++) {
    const header = packHeader()
    header[at]! ^= 1
    expect(isPackHeader(header)).toBe(false)
  }
  expect(isPackHeader(packHeader().subarray(0, PACK_HEADER_BYTES - 1))).toBe(false)
  expect(decodeBlockHeader(Buffer.alloc(BLOCK_HEADER_BYTES - 1))).toBeUndefined()
})
