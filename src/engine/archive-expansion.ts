/** Watches how much an archive unpacks to, so that a small file cannot fill the disk or keep us busy for days. */
import { SavepointError } from '../errors/errors.ts'
import { formatBytes, formatLimit } from '../model/format.ts'
import { freeBytes } from '../store/reserve.ts'
import { type ImportLimits, suspiciousArchive } from './archive-unsafe.ts'
import type { Context } from './context.ts'

/** How often the free space is looked at. */
const CHECK_EVERY_BYTES = 64 * 1024 * 1024

/** Passes the unpacked pieces on. `packedBytes`: what was read of the file so far. */
export async function* guardExpansion(
  ctx: Context,
  pieces: AsyncIterable<Buffer>,
  packedBytes: () => number,
  limits: ImportLimits,
): AsyncGenerator<Buffer> {
  const room = Math.max(0, roomOf(ctx)) * limits.roomShare
  let unpacked = 0
  let nextCheck = 0
  for await (const piece of pieces) {
    ctx.signal?.throwIfAborted()
    unpacked += piece.length
    if (unpacked > limits.freeRatioBytes && unpacked > packedBytes() * limits.ratio) {
      throw suspiciousArchive(`unpacks to more than ${limits.ratio} times its size`)
    }
    if (unpacked >= nextCheck) {
      checkRoomFor(ctx, 0)
      nextCheck = unpacked + CHECK_EVERY_BYTES
    }
    if (unpacked > room)
      throw suspiciousArchive(`unpacks to more than the ${formatBytes(room)} that the disk has room for`)
    yield piece
  }
}

/** Above what snapshots.min_free_bytes keeps. */
const roomOf = (ctx: Context): number => freeBytes(ctx.store.directory) - ctx.config.snapshots.min_free_bytes

/** Throws when `bytes` more would not leave what snapshots.min_free_bytes keeps, or the store has its limit. */
export function checkRoomFor(ctx: Context, bytes: number): void {
  const { min_free_bytes, max_store_bytes } = ctx.config.snapshots
  const free = roomOf(ctx)
  if (free < bytes) {
    throw new SavepointError(
      'disk.full',
      `Cannot import the archive: ${formatBytes(free + min_free_bytes)} are free, ${bytes > 0 ? `a file in it has ${formatBytes(bytes)}, ` : ''}and snapshots.min_free_bytes keeps ${formatLimit(min_free_bytes)}`,
      {
        hint: 'Free some space (`savepoint gc` frees what was deleted more than 7 days ago). Nothing was imported',
      },
    )
  }
  const stored = ctx.store.index.storedBytes()
  if (stored >= max_store_bytes) {
    throw new SavepointError(
      'disk.full',
      `Cannot import the archive: the store has ${formatBytes(stored)}, and snapshots.max_store_bytes is ${formatLimit(max_store_bytes)}`,
      {
        hint: 'Run `savepoint prune` and `savepoint gc`. Nothing was imported',
      },
    )
  }
}
