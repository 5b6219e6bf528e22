/** Reads blocks of packs, with a small cache of unpacked ones. Every block's checksum is checked when it is read. */
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, isDamage, SavepointError } from '../errors/errors.ts'
import { decompressBlock } from './compress.ts'
import { BLOCK_HEADER_BYTES, type BlockHeader, blockPayload, decodeBlockHeader, isIntactBlock } from './pack-format.ts'

const CACHE_BYTES = 24 * 1024 * 1024

export class PackReader {
  private readonly directory: string
  private readonly nameOf: (pack: number) => string | undefined
  private readonly descriptors = new Map<number, number>()
  private readonly cache = new Map<string, Buffer>()
  private cachedBytes = 0

  constructor(directory: string, nameOf: (pack: number) => string | undefined) {
    this.directory = directory
    this.nameOf = nameOf
  }

  /** The unpacked content of the block at `offset`. */
  block(pack: number, offset: number): Buffer {
    const key = `${pack}:${offset}`
    const cached = this.cache.get(key)
    if (cached) {
      this.cache.delete(key)
      this.cache.set(key, cached)
      return cached
    }
    const { bytes, header } = this.packedBlock(pack, offset)
    const raw = decompressBlock(blockPayload(bytes, header), header.codec, header.rawBytes)
    this.remember(key, raw)
    return raw
  }

  /** The block as it lies in the pack, checksum verified. */
  packedBlock(pack: number, offset: number): { bytes: Buffer; header: BlockHeader } {
    const fd = this.open(pack)
    const start = Buffer.allocUnsafe(BLOCK_HEADER_BYTES)
    const header = readFully(fd, start, offset) ? decodeBlockHeader(start) : undefined
    if (header) {
      const bytes = Buffer.allocUnsafe(header.totalBytes)
      if (readFully(fd, bytes, offset) && isIntactBlock(bytes)) return { bytes, header }
    }
    throw this.damagedBlock(pack, offset)
  }

  /** Whether the block can be read. */
  isIntact(pack: number, offset: number): boolean {
    try {
      this.packedBlock(pack, offset)
      return true
    } catch (error) {
      if (isDamage(error)) return false
      throw error
    }
  }

  /** Without reading the block itself. */
  blockHeader(pack: number, offset: number): BlockHeader {
    const start = Buffer.allocUnsafe(BLOCK_HEADER_BYTES)
    const header = readFully(this.open(pack), start, offset) ? decodeBlockHeader(start) : undefined
    if (!header) throw this.damagedBlock(pack, offset)
    return header
  }

  private damagedBlock(pack: number, offset: number): SavepointError {
    return new SavepointError(
      'store.damaged',
      `Cannot read pack ${this.nameOf(pack)}: the block at ${offset} is damaged`,
      {
        hint: 'Run `savepoint verify` to see which snapshots and files are affected',
        data: { pack: this.nameOf(pack), offset },
      },
    )
  }

  private open(pack: number): number {
    let fd = this.descriptors.get(pack)
    if (fd !== undefined) return fd
    const name = this.nameOf(pack)
    try {
      if (name === undefined) throw new Error('the index does not know it')
      fd = openSync(join(this.directory, name), 'r')
    } catch (cause) {
      const state = errnoOf(cause) === 'ENOENT' ? 'the file is missing' : (cause as Error).message
      throw new SavepointError('store.damaged', `Cannot open pack ${name ?? pack}: ${state}`, {
        hint: 'Run `savepoint verify` to see which snapshots and files are affected',
        data: { pack: name ?? pack },
        cause,
      })
    }
    this.descriptors.set(pack, fd)
    return fd
  }

  private remember(key: string, raw: Buffer): void {
    this.cache.set(key, raw)
    this.cachedBytes += raw.length
    for (const [oldest, bytes] of this.cache) {
      if (this.cachedBytes <= CACHE_BYTES || oldest === key) break
      this.cache.delete(oldest)
      this.cachedBytes -= bytes.length
    }
  }

  close(): void {
    for (const fd of this.descriptors.values()) closeSync(fd)
    this.descriptors.clear()
    this.cache.clear()
    this.cachedBytes = 0
  }
}

export function readFully(fd: number, buffer: Buffer, position: number): boolean {
  let done = 0
  while (done < buffer.length) {
    const count = readSync(fd, buffer, done, buffer.length - done, position + done)
    if (count === 0) return false
    done += count
  }
  return true
}
