/** Collects objects until they make a block worth compressing. Used by the main thread for trees and by workers for content. */
import type { Id } from '../model/entry.ts'
import { compressBlock } from './compress.ts'
import { BLOCK_TARGET_BYTES, type BlockObject, CODEC, encodeBlock, type ObjectKind } from './pack-format.ts'
import { releaseBuffer } from './release-buffer.ts'

export class BlockBuilder {
  private buffer: Buffer = Buffer.allocUnsafe(2 * BLOCK_TARGET_BYTES)
  private used = 0
  private objects: BlockObject[] = []

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
    return this.used >= BLOCK_TARGET_BYTES ? this.finish() : undefined
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
