/** Collects objects until they make a block worth compressing. For trees and few contents; many are packed by the addon's ingest. */
import type { Id } from '../model/entry.ts'
import { compressBlock } from './compress.ts'
import {
  BLOCK_TARGET_BYTES,
  type BlockObject,
  blockObjects,
  blockPayload,
  CODEC,
  decodeBlockHeader,
  encodeBlock,
  type ObjectKind,
} from './pack-format.ts'
import { releaseBuffer } from './release-buffer.ts'

/** The same block with its objects compressed, if that is worthwhile and they are not yet. */
export function packBlock(block: Buffer): Buffer {
  const header = decodeBlockHeader(block)!
  if (header.codec !== CODEC.stored) return block
  const { codec, payload } = compressBlock(blockPayload(block, header))
  return codec === CODEC.stored ? block : encodeBlock(blockObjects(block, header), payload, codec, header.rawBytes)
}

export class BlockBuilder {
  private readonly target: number
  private buffer: Buffer
  private used = 0
  private objects: BlockObject[] = []

  constructor(target = BLOCK_TARGET_BYTES) {
    this.target = target
    this.buffer = Buffer.allocUnsafe(2 * target)
  }

  /** Adds a copy of `bytes`. Returns a finished block when this one is full. */
  add(id: Id, kind: ObjectKind, bytes: Uint8Array): Buffer | undefined {
    if (this.used + bytes.length > this.buffer.length) {
      const grown = Buffer.allocUnsafe(this.used + bytes.length)
      this.buffer.copy(grown, 0, 0, this.used)
      this.buffer = grown
    }
    this.buffer.set(bytes, this.used)
    this.used += bytes.length
    this.objects.push({ id, kind, length: bytes.length })
    return this.used >= this.target ? this.finish() : undefined
  }

  /** The block so far, or undefined when it is empty. */
  finish(): Buffer | undefined {
    const { objects, used } = this
    if (objects.length === 0) return undefined
    const { codec, payload } = compressBlock(this.buffer.subarray(0, used))
    const bytes = encodeBlock(objects, payload, codec, used)
    if (codec === CODEC.zstd) releaseBuffer(payload)
    this.objects = []
    this.used = 0
    return bytes
  }
}
