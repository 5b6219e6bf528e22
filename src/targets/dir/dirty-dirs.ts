/**
 * Which directories of the last capture a walk must visit, given what a run touched since: those, what was put in the place
 * of another directory, and all of a git directory in which anything changed, because what its refs name must be looked for
 * after the refs.
 */
import { joinRaw, nameOf, parentOf, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { isGitDir } from './noteworthy-names.ts'
import { forEachLink } from './stale-links.ts'
import { type CachedDir, type CachedDirs, type StatCache, smudge } from './stat-cache.ts'
import { forEachRecord, recordIno, recordName } from './walk-record.ts'

/** Paths are relative to the target. */
export interface Dirty {
  /** Directories whose entries may be others. They need not exist. */
  dirs: Set<Raw>
  /** Directories that may be others than before, with everything in them. */
  replaced: Set<Raw>
  /** The same, but the last capture may have come after it. */
  again: Set<Raw>
}

/**
 * Changes the cache where it is no longer true: when the capture fails, it is of no use any more. Undefined when all must be
 * visited: files with several names went with a directory, and the others may lie anywhere.
 */
export function dirtyDirs(root: number, cache: StatCache, { dirs, replaced, again }: Dirty): Set<Raw> | undefined {
  const visit = new Set<Raw>()
  for (const path of [...replaced, ...again]) {
    const isOther = replaced.has(path) || !isAsKnown(root, cache, path)
    if (isOther && hasLinksBelow(cache.dirs, path)) return undefined
    if (isOther) cache.dirs.forget(path, () => {})
    visit.add(path)
    visit.add(knownDir(cache, parentOf(path)))
  }
  for (const path of dirs) visit.add(knownDir(cache, path))
  const gitDirs = new Set<Raw>()
  for (const path of visit) {
    const gitDir = gitDirOf(cache, path)
    if (gitDir !== undefined) gitDirs.add(gitDir)
  }
  for (const gitDir of gitDirs) {
    addBelow(cache, gitDir, visit)
    // Its index, its excludes and its configuration decide what is captured around it.
    visit.add(parentOf(gitDir))
  }
  return visit
}

/** The nearest directory that was captured: one that is new is found in it. */
export function knownDir({ dirs }: StatCache, path: Raw): Raw {
  let known = path
  while (known !== '' && !dirs.has(known)) known = parentOf(known)
  return known
}

function hasLinksBelow(dirs: CachedDirs, path: Raw): boolean {
  const dir = dirs.get(path)
  if (!dir) return false
  let found = false
  forEachLink(dir, () => {
    found = true
  })
  return found || dir.childDirs.some(name => hasLinksBelow(dirs, joinRaw(path, name)))
}

function addBelow(cache: StatCache, path: Raw, visit: Set<Raw>): void {
  visit.add(path)
  for (const name of cache.dirs.get(path)?.childDirs ?? []) addBelow(cache, joinRaw(path, name), visit)
}

function gitDirOf({ dirs }: StatCache, path: Raw): Raw | undefined {
  for (let at = path; ; at = parentOf(at)) {
    if (isGitDir(dirs.get(at)?.noteworthy ?? 0)) return at
    if (at === '') return undefined
  }
}

/** Whether the last capture saw the same directory there. */
function isAsKnown(root: number, cache: StatCache, path: Raw): boolean {
  const known = recordOf(cache, path)
  try {
    return known !== undefined && recordIno(known.dir.records, known.at) === addon.statAt(root, path).ino
  } catch {
    return false
  }
}

/** Files that processes can write without another call. */
export interface HeldFiles {
  /** Mapped into memory: they may have changed although their timestamps are the same. */
  mapped: Raw[]
  /** Of files with several names: their names are looked for. */
  inodes: Set<bigint>
  mappedInodes: Set<bigint>
}

/** The next capture looks at them again. */
export function distrustPaths(cache: StatCache, paths: Iterable<Raw>): void {
  for (const [path, names] of Map.groupBy(paths, parentOf)) {
    const dir = cache.dirs.get(path)
    if (dir) forEachNamed(dir, new Set(names.map(nameOf)), at => smudge(dir, at))
  }
}

/** The cache forgets what it knows of mapped files. Returns the directories in which files with several names lie. */
export function distrust(cache: StatCache, { mapped, inodes, mappedInodes }: HeldFiles): Set<Raw> {
  const found = new Set<Raw>()
  distrustPaths(cache, mapped)
  if (inodes.size === 0) return found
  // Not only those with several names: the other one may be gone by now.
  for (const [path, dir] of cache.dirs) {
    const { records } = dir
    forEachRecord(records, at => {
      const inode = recordIno(records, at)
      if (!inodes.has(inode)) return
      found.add(path)
      if (mappedInodes.has(inode)) smudge(dir, at)
    })
  }
  return found
}

function recordOf({ dirs }: StatCache, path: Raw): { dir: CachedDir; at: number } | undefined {
  const dir = dirs.get(parentOf(path))
  if (!dir) return undefined
  let found: number | undefined
  forEachNamed(dir, new Set([nameOf(path)]), at => {
    found = at
  })
  return found === undefined ? undefined : { dir, at: found }
}

function forEachNamed({ records }: CachedDir, names: ReadonlySet<Raw>, work: (at: number) => void): void {
  forEachRecord(records, at => {
    if (names.has(recordName(records, at))) work(at)
  })
}
