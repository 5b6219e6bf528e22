/** A directory as a target: where it is, which one it is, and the descriptor that everything works beneath. */
import { mkdirSync } from 'node:fs'
import { errnoOf, SavepointError } from '../../errors/errors.ts'
import { rawFromBytes, showPath } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { addon, type Stat } from '../../native/addon.ts'

/** Tells a directory from another one that took its place. Device numbers may change when a disk is mounted again. */
export interface DirIdentity {
  ino: string
  btimeNs: string
}

export const identityOf = (stat: Stat): DirIdentity => ({ ino: String(stat.ino), btimeNs: String(stat.btimeNs) })
export const sameIdentity = (a: DirIdentity, b: DirIdentity): boolean => a.ino === b.ino && a.btimeNs === b.btimeNs

/** Stat of a directory by its absolute path, or undefined when there is none. */
export function statDir(path: Buffer): Stat | undefined {
  let fd: number
  try {
    fd = addon.openRoot(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined
    throw cannotOpen(path, error)
  }
  try {
    return addon.statFd(fd)
  } finally {
    addon.close(fd)
  }
}

/** Runs `work` with a descriptor of the directory; throws `target.missing` when it does not exist. */
export async function withDir<T>(path: Buffer, work: (root: number) => Promise<T> | T): Promise<T> {
  let root: number
  try {
    root = addon.openRoot(path)
  } catch (error) {
    throw cannotOpen(path, error)
  }
  try {
    return await work(root)
  } finally {
    addon.close(root)
  }
}

export function makeDir(path: Buffer, mode: number): void {
  mkdirSync(path, { recursive: true, mode })
}

function cannotOpen(path: Buffer, error: unknown): SavepointError {
  const shown = showPath(rawFromBytes(path))
  const code = errnoOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new SavepointError('target.missing', `Cannot open ${shown}: the directory does not exist`, {
      hint: `If it was deleted: savepoint rollback SNAP -t ${quoteWord(shown)} makes it again (savepoint log -t ${quoteWord(shown)} lists the snapshots)`,
      cause: error,
    })
  }
  return new SavepointError('io.failed', `Cannot open ${shown}: ${(error as Error).message}`, { cause: error })
}
