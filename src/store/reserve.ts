/**
 * A file in the store that only takes up room. On a disk that is full to the last byte not even a deletion can be
 * recorded; verbs that free space or bring files back give the reserve up first, and the next capture on a disk with room
 * makes it again.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isNoRoom } from '../errors/errors.ts'
import { tryToWrite } from './quota.ts'

/** Enough for the logs of both databases and a small safety snapshot. */
export const RESERVE_BYTES = 1024 * 1024
/** Where less than this is free, the room is better left to others. */
const ROOMY_BYTES = 16 * RESERVE_BYTES

const fileOf = (storeDirectory: string): string => join(storeDirectory, 'reserve')

/** Does nothing when it is there, or when the disk has little room. Where it does not fit after all, there is none. */
export function keepReserve(storeDirectory: string): void {
  if (existsSync(fileOf(storeDirectory)) || freeBytes(storeDirectory) < ROOMY_BYTES) return
  // Not zeros: a filesystem that compresses would reserve nothing.
  try {
    writeFileSync(fileOf(storeDirectory), randomBytes(RESERVE_BYTES), { mode: 0o600 })
  } catch (error) {
    giveUpReserve(storeDirectory)
    throw error
  }
}

/** Gives it up when there is not even that much room left. A home that is read-only, or not made yet, has nothing to give. */
export function giveUpReserve(storeDirectory: string): void {
  try {
    if (existsSync(fileOf(storeDirectory)) && !hasRoom(storeDirectory)) rmSync(fileOf(storeDirectory), { force: true })
  } catch {}
}

function hasRoom(directory: string): boolean {
  if (freeBytes(directory) < RESERVE_BYTES) return false
  try {
    tryToWrite(directory, RESERVE_BYTES)
    return true
  } catch (error) {
    return !isNoRoom(error)
  }
}

export function freeBytes(directory: string): number {
  const { blocks, bavail, bsize } = statfsSync(directory)
  // One that says no size (ramfs, some of FUSE) is not full: it does not know.
  return blocks === 0 ? Number.MAX_SAFE_INTEGER : bavail * bsize
}
