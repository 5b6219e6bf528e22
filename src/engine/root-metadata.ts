/** Puts mode and owner of the target directory itself back, as far as permitted. */
import { errnoOf } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { addon } from '../native/addon.ts'
import { chmodRoot } from '../targets/dir/root-mode.ts'

const OWNER_ALL = 0o700

export function restoreRootMetadata(root: number, wanted: Entry): void {
  const stat = addon.statFd(root)
  const mode = stat.mode & 0o7777
  const isClosed = (mode & OWNER_ALL) !== OWNER_ALL
  whereAllowed(() => {
    if (isClosed) chmodRoot(root, mode | OWNER_ALL)
    if (stat.uid !== wanted.uid || stat.gid !== wanted.gid) addon.chownAt(root, '', wanted.uid, wanted.gid)
  })
  addon.setXattrs(root, '', wanted.xattrs ?? Buffer.alloc(0))
  // Last: the mode that is wanted may close the directory to us.
  whereAllowed(() => {
    if (isClosed || mode !== wanted.mode) chmodRoot(root, wanted.mode)
  })
}

function whereAllowed(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error
  }
}
