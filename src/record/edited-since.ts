/** Whether somebody has changed a file since a restore looked at it: then it goes back to its place. */
import { closeSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { Hasher } from '../model/id.ts'
import type { Raw } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import { readWindows } from '../store/read-windows.ts'
import type { Displaced } from '../targets/dir/restore-apply.ts'
import { openToRead } from './shut-file.ts'

export function isEdited(root: number, { staged, live }: Displaced): boolean {
  // It came meanwhile, where nothing was.
  if (!live) return true
  if (live.kind !== 'file') return false
  const stat = addon.statAt(root, staged)
  if (stat.size === live.size && stat.mtimeNs === live.mtimeNs) return false
  // By another of its names it may have got its time from us.
  return stat.nlink === 1 || contentAt(root, staged) !== live.content
}

/** undefined: it cannot be read. */
function contentAt(root: number, path: Raw): Id | undefined {
  try {
    const fd = openToRead(flags => addon.openAt(root, path, flags, 0))
    try {
      const hasher = new Hasher()
      for (const { bytes } of readWindows(fd)) hasher.update(bytes)
      return hasher.digest()
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}
