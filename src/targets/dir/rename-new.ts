/** Renames to a name that must be free, and exchanges two. Some filesystems (zfs-fuse, older NFS servers) have no call for it. */
import { errnoOf } from '../../errors/errors.ts'
import type { Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { existsAt } from './look-at.ts'

export const RENAME = { noReplace: 1, exchange: 2 } as const

const S_IFMT = 0o170000
const S_IFDIR = 0o040000

/** An exchange has no direction: what fails is told of the path, not of the stage. */
export const renameWith = (root: number, from: Raw, to: Raw, flags: number): void =>
  flags === RENAME.exchange ? addon.renameAt(root, to, from, flags) : renameNew(root, from, to)

/** Throws EEXIST, and changes nothing, when something is there. */
export function renameNew(root: number, from: Raw, to: Raw): void {
  try {
    addon.renameAt(root, from, to, RENAME.noReplace)
  } catch (error) {
    const code = errnoOf(error)
    if (code !== 'EINVAL' && code !== 'ENOSYS') throw error
    renameOtherwise(root, from, to)
  }
}

/** A second name is refused where there is one already. A directory can have none: nothing but an empty one is replaced. */
function renameOtherwise(root: number, from: Raw, to: Raw): void {
  if ((addon.statAt(root, from).mode & S_IFMT) !== S_IFDIR) {
    addon.linkAt(root, from, to)
    addon.unlinkAt(root, from)
    return
  }
  if (existsAt(root, to))
    throw Object.assign(new Error(`EEXIST: file already exists, rename '${to}'`), { code: 'EEXIST' })
  addon.renameAt(root, from, to, 0)
}
