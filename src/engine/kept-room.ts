/** How much of a spool is taken up at once: the files are in two places until their snapshot is there. */
import { freeBytes, RESERVE_BYTES } from '../store/reserve.ts'
import type { Context } from './context.ts'

/**
 * Neither the floor nor `max_store_bytes` counts: what is taken up is on the same disk already, and goes from where it was. Trees
 * and rows come with it.
 */
export const roomIn = ({ store }: Context): number => freeBytes(store.directory) - RESERVE_BYTES

/** The names of those that fit together, in the order in which they were given. One that is too large leaves room to others. */
export function fittingIn<T extends { name: string }>(
  roomBytes: number,
  files: readonly T[],
  sizeOf: (file: T) => number,
): Set<string> {
  const names = new Set<string>()
  let left = roomBytes
  for (const file of files) {
    const size = names.has(file.name) ? 0 : sizeOf(file)
    if (size > left) continue
    left -= size
    names.add(file.name)
  }
  return names
}
