/** Looks at one path of an open directory. */
import { constants } from 'node:fs'
import { errnoOf } from '../../errors/errors.ts'
import type { Entry } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import { addon, type Stat } from '../../native/addon.ts'

/** Undefined when nothing is there, or that cannot be seen. */
export function statOrNothing(root: number, path: Raw): Stat | undefined {
  try {
    return addon.statAt(root, path)
  } catch {
    return undefined
  }
}

/** Throws when it cannot be seen. */
export function existsAt(root: number, path: Raw): boolean {
  try {
    addon.statAt(root, path)
    return true
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw error
  }
}

const types: Partial<Record<Entry['kind'], number>> = {
  file: constants.S_IFREG,
  dir: constants.S_IFDIR,
  link: constants.S_IFLNK,
  fifo: constants.S_IFIFO,
  char: constants.S_IFCHR,
  block: constants.S_IFBLK,
}

export const isOfKind = ({ mode }: Pick<Stat, 'mode'>, kind: Entry['kind']): boolean =>
  (mode & constants.S_IFMT) === types[kind]
