/** An index that cannot be opened is set aside while a new one is made from the packs, and goes when that has worked. */
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const FILES = ['index.sqlite', 'index.sqlite-wal', 'index.sqlite-shm']
const asideOf = (file: string): string => `${file}.damaged`

export function setIndexAside(storeDirectory: string): void {
  for (const name of FILES) {
    const file = join(storeDirectory, name)
    if (existsSync(file)) renameSync(file, asideOf(file))
  }
}

/** Where the one that was set aside is, if it still is, by this or an earlier repair. */
export function indexAside(storeDirectory: string): string | undefined {
  const file = asideOf(join(storeDirectory, FILES[0]!))
  return existsSync(file) ? file : undefined
}

export function removeIndexAside(storeDirectory: string): void {
  // The main file last: as long as it is there, the next repair comes here again.
  for (const name of FILES.toReversed()) rmSync(asideOf(join(storeDirectory, name)), { force: true })
}
