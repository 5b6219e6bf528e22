/**
 * A store to memory whose page is dirty already moves no timestamp. So a file that is read while a process has it mapped can change
 * afterwards without a sign, until the page is on disk (in a tmpfs: for good). Such records are smudged, so that the next capture reads
 * the file once more, whatever it captures: what is there, or what a filesystem keeps.
 *
 * One look suffices, after the capture has begun and before it reads, and for what it reads. What is mapped only later, or stored to for
 * the first time, has a timestamp of that time, and racy.ts sees to it. What is not read again was not mapped when it was read: the first
 * store since then would show. But not everywhere (`isStoreUnseen`): there what is mapped is read, whatever its record says.
 */
import { deviceOfMount } from '../../backends/mounts-below.ts'
import { isWithin, type Raw, rawFromBytes } from '../../model/raw-path.ts'
import { addon, RECORD } from '../../native/addon.ts'
import { MAPPING } from '../../native/mapping-calls.ts'
import { type StatCache, smudge } from './stat-cache.ts'
import { forEachRecord, recordIno } from './walk-record.ts'

/**
 * tmpfs, ramfs, FUSE, and overlayfs, which may lie on them. In memory, a page that was read can be stored to without a fault, so not
 * even the first store moves a timestamp. With FUSE it is the server that moves it, when the page is written.
 */
const SILENT = new Set([0x01021994, 0x858458f6, 0x65735546, 0x794c7630])

/** Whether a file there may be stored to for the first time without a sign. */
export const isStoreUnseen = (root: number): boolean => SILENT.has(addon.statfs(root).type)

/** Inodes on the filesystem of `root`, as far as this user may see who has mapped what. Processes of other users he may not. */
export function mappedInodes(root: number, rootPath: Buffer): Set<bigint> {
  const found = new Set<bigint>()
  const mappings = sharedMappings()
  if (mappings.length === 0) return found
  const device = deviceOfMount(addon.statFd(root).mount)
  const target = rawFromBytes(rootPath)
  for (let at = 0; at < mappings.length; ) {
    const end = at + MAPPING.path + mappings.readUInt32LE(at + MAPPING.pathLength)
    const its = `${mappings.readUInt32LE(at + MAPPING.major)}:${mappings.readUInt32LE(at + MAPPING.minor)}`
    const path = mappings.toString('latin1', at + MAPPING.path, end)
    if (device === undefined || its === device) found.add(mappings.readBigUInt64LE(at + MAPPING.ino))
    // With an older kernel, a mapping on overlayfs tells the file that lies below: another device, often another inode.
    else if (isWithin(path, target)) addInode(found, root, path.slice(target.length + 1))
    at = end
  }
  return found
}

/** `paths`: of the directories in which they may lie. */
export function distrustMapped(cache: StatCache, paths: Iterable<Raw>, inodes: ReadonlySet<bigint>): void {
  if (inodes.size === 0) return
  const lows = new Set([...inodes].map(inode => Number(inode & 0xffff_ffffn)))
  for (const path of paths) {
    const dir = cache.dirs.get(path)
    if (!dir) continue
    const { records } = dir
    forEachRecord(records, at => {
      // Numbers first: a first capture reads everything, and making bigints of all inodes would take longer than the look.
      if (lows.has(records.readUInt32LE(at + RECORD.ino)) && inodes.has(recordIno(records, at))) smudge(dir, at)
    })
  }
}

/** None where there is no /proc. */
function sharedMappings(): Buffer {
  try {
    return addon.sharedMappings(false)
  } catch {
    return Buffer.alloc(0)
  }
}

function addInode(found: Set<bigint>, root: number, path: Raw): void {
  try {
    found.add(addon.statAt(root, path).ino)
  } catch {
    // Gone, or a name that another process sees there.
  }
}
