/**
 * The move of a directory changes no timestamp of the files in it, but it changes which hard links lie in the tree and
 * which path is the first of its group. Links of the same file that were not looked at in this pass then carry the mark
 * of a group that is no longer so.
 */
import type { Raw } from '../../model/raw-path.ts'
import type { LinkGroups } from './link-groups.ts'
import { type CachedDir, smudge } from './stat-cache.ts'
import { StoredDir } from './stored-dir.ts'
import { forEachRecord, hasLinksIn, recordIno, recordNlink, recordType, S_IFREG } from './walk-record.ts'

type Dirs = ReadonlyMap<Raw, CachedDir>

/** Of the files with several names in directories that are gone, the inodes. */
export function findGoneLinks(before: Dirs, now: Dirs): Set<bigint> {
  const gone = new Set<bigint>()
  for (const [path, dir] of before) if (!now.has(path)) forEachLink(dir, ino => gone.add(ino))
  return gone
}

/** Smudges all members of such groups, so that the next pass finds them together. Returns the directories they are in. */
export function findStaleLinks(links: LinkGroups, gone: ReadonlySet<bigint>, now: Dirs): Set<Raw> {
  const stale = new Set<Raw>()
  if (links.size === 0 && gone.size === 0) return stale
  const members = new Map<bigint, { path: Raw; dir: CachedDir; at: number }[]>()
  for (const [path, dir] of now) {
    forEachLink(dir, (ino, at) => {
      if (links.countOf(ino) === 0 && !gone.has(ino)) return
      const member = { path, dir, at }
      const known = members.get(ino)
      if (known) known.push(member)
      else members.set(ino, [member])
    })
  }
  for (const [ino, found] of members) {
    if (found.length === links.countOf(ino)) continue
    for (const { path, dir, at } of found) {
      smudge(dir, at)
      stale.add(path)
    }
  }
  return stale
}

export function forEachLink({ records }: CachedDir, visit: (ino: bigint, at: number) => void): void {
  forEachRecord(records, at => {
    if (recordNlink(records, at) > 1 && recordType(records, at) === S_IFREG) visit(recordIno(records, at), at)
  })
}

/** Whether anything in it has several names: also a link or a FIFO, whose owner and times are the same under all of them. */
export function hasLinks(dir: CachedDir): boolean {
  // A buffer for each directory would take longer than the look.
  if (dir instanceof StoredDir && dir.isStored && !dir.cacheBytes.isInFile)
    return hasLinksIn(dir.cacheBytes.all(), dir.recordsAt, dir.recordsAt + dir.recordsLength)
  const { records } = dir
  return hasLinksIn(records, 0, records.length)
}
