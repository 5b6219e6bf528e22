/** Puts mode and owner of the target directory itself back, as far as permitted. */
import { errnoOf } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { addon } from '../native/addon.ts'

export function restoreRootMetadata(root: number, wanted: Entry): void {
  const stat = addon.statFd(root)
  try {
    if (stat.uid !== wanted.uid || stat.gid !== wanted.gid) addon.chownAt(root, '', wanted.uid, wanted.gid)
    if ((stat.mode & 0o7777) !== wanted.mode) addon.chmodAt(root, '', wanted.mode)
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error
  }
  addon.setXattrs(root, '', wanted.xattrs ?? Buffer.alloc(0))
}
