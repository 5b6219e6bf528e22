/** Whether somebody has changed something since a restore looked at it: then it goes back to its place. */
import { closeSync, constants, readdirSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { Hasher } from '../model/id.ts'
import { joinRaw, parentOf, type Raw, rawFromBytes } from '../model/raw-path.ts'
import { addon, type Stat } from '../native/addon.ts'
import { readWindows } from '../store/read-windows.ts'
import type { Store } from '../store/store.ts'
import { findEntry } from '../store/tree-lookup.ts'
import { isOfKind } from '../targets/dir/dir-node.ts'
import type { Displaced } from '../targets/dir/restore-apply.ts'
import { OWNER_ALL, SafeDirs } from '../targets/dir/safe-dirs.ts'
import { openToRead, readXattrs } from './shut-file.ts'

const PERMISSIONS = 0o7777

/** `store`: has the directories that are live. */
export function isEdited(root: number, store: Store, { staged, live }: Displaced): boolean {
  // What its owner has shut is opened while it is looked at.
  const safe = new SafeDirs(root)
  try {
    // Directories may be thousands of levels deep.
    const rest: { path: Raw; entry: Entry | undefined }[] = [{ path: staged, entry: live }]
    for (let next = rest.pop(); next; next = rest.pop()) {
      const { path, entry } = next
      // It came meanwhile, where nothing was.
      if (!entry || safe.in([parentOf(path)], () => isAnother(root, path, entry))) return true
      if (entry.kind !== 'dir') continue
      const entries = store.tree(entry.content)
      for (const name of namesIn(root, path, safe))
        rest.push({ path: joinRaw(path, name), entry: findEntry(entries, name) })
    }
    return false
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    // What cannot be looked at is not known to be as it was.
    return true
  } finally {
    safe.close()
  }
}

/** Itself, or its attributes: of a directory not what is in it. */
export function isAnother(root: number, path: Raw, live: Entry): boolean {
  const stat = addon.statAt(root, path)
  if (!isOfKind(stat.mode, live.kind)) return true
  const mode = stat.mode & PERMISSIONS
  // A directory that was shut may have been opened by us, and by another of its names a file may have got its attributes from us.
  const isOpened = live.kind === 'dir' && mode === (live.mode | OWNER_ALL)
  const isShared = live.kind !== 'dir' && stat.nlink > 1
  if (!isShared && ((mode !== live.mode && !isOpened) || stat.uid !== live.uid || stat.gid !== live.gid)) return true
  // An access list says the mode, too.
  if (!isShared && mode === live.mode && live.kind !== 'link' && !hasXattrs(root, path, stat, live)) return true
  if (live.kind === 'link') return rawFromBytes(addon.readlinkAt(root, path)) !== live.target
  if (live.kind !== 'file' || (stat.size === live.size && stat.mtimeNs === live.mtimeNs)) return false
  return !isShared || contentAt(root, path) !== live.content
}

function hasXattrs(root: number, path: Raw, stat: Stat, { xattrs = Buffer.alloc(0) }: Entry): boolean {
  return (readXattrs(root, path, stat) ?? Buffer.alloc(0)).equals(xattrs)
}

export function namesIn(root: number, directory: Raw, safe: SafeDirs): Raw[] {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY
  const fd = safe.in([directory], () => addon.openAt(root, directory, flags, 0))
  try {
    return readdirSync(`/proc/self/fd/${fd}`, 'buffer').map(rawFromBytes)
  } finally {
    closeSync(fd)
  }
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
