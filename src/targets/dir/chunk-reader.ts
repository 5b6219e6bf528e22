/**
 * Reads a large file in windows, so that memory does not depend on its size, and cuts it into content-defined chunks.
 * This one does it here and now; ingest-pipeline.ts has one that leaves the work to other threads.
 */
import { readSync } from 'node:fs'
import type { Id } from '../../model/entry.ts'
import { type Hasher, hashBytes } from '../../model/id.ts'
import { addon } from '../../native/addon.ts'
import { hashFile } from '../../store/read-windows.ts'
import type { RecipeItem } from '../../store/recipe.ts'

/** Another number would store all large files anew. */
export const CHUNK = { minBytes: 256 * 1024, averageBytes: 1024 * 1024, maxBytes: 4 * 1024 * 1024 } as const
export const WINDOW_BYTES = CHUNK.maxBytes + CHUNK.averageBytes

export interface ChunkReader {
  /**
   * Cuts the bytes from `from` to `to`, appends their chunks to `items` and to `hasher`, and stores those that are new.
   * False when the file ended before.
   */
  storeChunks(fd: number, from: number, to: number, hasher: Hasher, items: RecipeItem[]): Promise<boolean>
  hashFile(fd: number): Promise<{ id: Id; size: number }>
}

/** Stores chunks that were claimed before. */
export interface ChunkStore {
  claim(id: Id): boolean
  store(id: Id, bytes: Uint8Array): void
}

export function readHere(store: ChunkStore): ChunkReader {
  return {
    storeChunks: async (fd, from, to, hasher, items) => storeChunks(fd, from, to, hasher, items, store),
    hashFile: async fd => hashFile(fd),
  }
}

function storeChunks(
  fd: number,
  from: number,
  to: number,
  hasher: Hasher,
  items: RecipeItem[],
  store: ChunkStore,
): boolean {
  const window = Buffer.allocUnsafeSlow(Math.min(WINDOW_BYTES, to - from))
  const { minBytes, averageBytes, maxBytes } = CHUNK
  let filled = 0
  let position = from
  while (position < to || filled > 0) {
    while (filled < window.length && position < to) {
      const count = readSync(fd, window, filled, Math.min(window.length - filled, to - position), position)
      if (count === 0) return false
      filled += count
      position += count
    }
    let consumed = 0
    for (const end of addon.chunk(window, 0, filled, minBytes, averageBytes, maxBytes, position >= to)) {
      const bytes = window.subarray(consumed, end)
      const id = hashBytes(bytes)
      items.push({ chunk: id, length: bytes.length })
      if (store.claim(id)) store.store(id, bytes)
      consumed = end
    }
    hasher.update(window.subarray(0, consumed))
    window.copy(window, 0, consumed, filled)
    filled -= consumed
  }
  return true
}
