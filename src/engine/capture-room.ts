/** How much may be stored: part of the disk stays free, and the store has a limit. */
import { SavepointError } from '../errors/errors.ts'
import { formatBytes, formatLimit } from '../model/format.ts'
import { freeBytes } from '../store/reserve.ts'
import type { Context } from './context.ts'
import { howToShrink } from './how-to-shrink.ts'

export const isBelowFloor = (ctx: Context, moreBytes = 0): boolean =>
  freeBytes(ctx.store.directory) - moreBytes < ctx.config.snapshots.min_free_bytes

/** Throws when nothing more may be captured; rolling back still works. */
export function checkRoom(ctx: Context): void {
  checkFloor(ctx)
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

/** Throws where so many bytes more have no room on the disk. */
export function checkFit(ctx: Context, moreBytes: number): void {
  if (freeBytes(ctx.store.directory) < moreBytes)
    throw new SavepointError('disk.full', 'Cannot capture: the disk is full', {
      hint: 'Free some space, or delete snapshots and run `savepoint gc`',
    })
}

/** Also in the middle of a capture, which is then given up. `moreBytes`: that are still to come. */
export function checkFloor(ctx: Context, moreBytes = 0): void {
  if (!isBelowFloor(ctx, moreBytes)) return
  const { min_free_bytes } = ctx.config.snapshots
  throw new SavepointError(
    'disk.full',
    `Cannot capture: fewer than ${formatLimit(min_free_bytes)} would stay free on the disk of the store (snapshots.min_free_bytes)`,
    {
      hint: 'Free some space, delete snapshots and run `savepoint gc`, or lower snapshots.min_free_bytes. Rolling back still works',
    },
  )
}
