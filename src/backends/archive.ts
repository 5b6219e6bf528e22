/**
 * Archives: one compressed tar for each snapshot, in the directory of its timeline, beside what the store has of it. They need
 * no filesystem of a special kind, and are read by every tar; `src/engine/archive-snapshot.ts` writes them. Found by the id
 * of the snapshot, so that a home can be moved.
 */
import { existsSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import type { Keeper, NativeState } from './native-backend.ts'

const DIRECTORY = 'archives'
/** How the name of one begins that is not whole yet. */
export const ARCHIVE_TEMPORARY = '.savepoint-export-'
export const archiveEndings = { zstd: '.tar.zst', gzip: '.tar.gz' } as const
export type ArchiveFormat = keyof typeof archiveEndings

export interface ArchiveState extends NativeState {
  format: ArchiveFormat
  /** Of the file. */
  bytes: number
  /** BLAKE3 of the file, in hex. */
  hash: string
}

/** `directory`: of the timeline. */
export const archivesOf = (directory: string): string => join(directory, DIRECTORY)

export const archiveFile = (directory: string, { name, format }: Pick<ArchiveState, 'name' | 'format'>): string =>
  join(archivesOf(directory), `${name}${archiveEndings[format]}`)

/** undefined when there is none. Throws where that cannot be told. */
export function archiveBytes(file: string): number | undefined {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat?.isFile() ? stat.size : undefined
}

/** All of one timeline. */
export const archivesIn = (directory: string): Keeper => ({
  name: 'archive',

  remove({ name }) {
    const files = Object.values(archiveEndings).map(ending => join(archivesOf(directory), `${name}${ending}`))
    const there = files.filter(file => existsSync(file))
    for (const file of there) rmSync(file, { force: true })
    removeLeftovers(archivesOf(directory))
    return there.length > 0 ? 'removed' : 'absent'
  },

  // What is wrong with one is told by who checks it.
  find: state => state,

  whereOf: state => archiveFile(directory, state as ArchiveState),

  usageBytes(state) {
    try {
      return archiveBytes(archiveFile(directory, state as ArchiveState))
    } catch (error) {
      if (!errnoOf(error)) throw error
      return undefined
    }
  },
})

/** Of a process that was killed: only one at a time writes here, and it is not at work when something is removed. */
function removeLeftovers(archives: string): void {
  try {
    const names = readdirSync(archives)
    const left = names.filter(name => name.startsWith(ARCHIVE_TEMPORARY))
    for (const name of left) rmSync(join(archives, name), { force: true })
    if (left.length === names.length) rmdirSync(archives)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
}
