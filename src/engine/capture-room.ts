/** How much may be stored: part of the disk stays free, and the store has a limit. */
import { SavepointError } from '../errors/errors.ts'
import { formatBytes, formatLimit } from '../model/format.ts'
import { freeBytes } from '../store/reserve.ts'
import type { Context } from './context.ts'
import { howToShrink } from './how-to-shrink.ts'

const MARGIN_BYTES = 64 * 1024 * 1024

export const isBelowFloor = (ctx: Context): boolean =>
  freeBytes(ctx.store.directory) < ctx.config.snapshots.min_free_bytes

/** Throws when nothing more may be captured; rolling back still works. */
export function checkRoom(ctx: Context): void {
  checkFloor(ctx)
  checkLimit(ctx)
}

/** The part of it that also holds for what is only noted now, and stored when there is room. */
export function checkLimit(ctx: Context): void {
  const { max_store_bytes } = ctx.config.snapshots
  const stored = ctx.store.index.storedBytes()
  if (stored >= max_store_bytes) {
    throw new SavepointError(
      'disk.full',
      `Cannot capture: the store has ${formatBytes(stored)}, and snapshots.max_store_bytes is ${formatLimit(max_store_bytes)}`,
      {
        hint: howToShrink(ctx, stored),
      },
    )
  }
}

/** In the middle of a capture that may use what is to stay free: throws before others have no room at all. */
export function checkMargin(ctx: Context): void {
  if (freeBytes(ctx.store.directory) < Math.min(MARGIN_BYTES, ctx.config.snapshots.min_free_bytes))
    throw new SavepointError('disk.full', 'Cannot capture: the disk is full', {
      hint: 'Free some space (`savepoint gc` frees what was deleted more than 7 days ago)',
    })
}

/** Also in the middle of a capture, which is then given up. */
export function checkFloor(ctx: Context): void {
  if (!isBelowFloor(ctx)) return
  const { min_free_bytes } = ctx.config.snapshots
  throw new SavepointError(
    'disk.full',
    `Cannot capture: fewer than ${formatLimit(min_free_bytes)} would stay free on the disk of the store (snapshots.min_free_bytes)`,
    {
      hint: 'Free some space (`savepoint gc` frees what was deleted more than 7 days ago), or lower snapshots.min_free_bytes. Rolling back still works',
    },
  )
}
