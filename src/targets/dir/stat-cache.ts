/**
 * What the last capture saw, directory by directory: the raw walk records and the tree they became. A directory whose
 * records are the same bytes again is unchanged, so an unchanged tree costs one walk and a comparison.
 * stat-cache-file.ts keeps it.
 */
import type { Id } from '../../model/entry.ts'
import { joinRaw, type Raw } from '../../model/raw-path.ts'
import { CacheBytes } from './cache-bytes.ts'
import { StoredDir } from './stored-dir.ts'
import { smudgeRecord } from './walk-record.ts'

export interface CachedDir {
  readonly records: Buffer
  /** Digest of the rules that came from above, and of those in force inside. */
  readonly rulesIn: string
  readonly rulesOut: string
  readonly tree: Id
  /** Names of the subdirectories that were entered. */
  readonly childDirs: readonly Raw[]
  /** See noteworthy-names. */
  readonly noteworthy: number
  /** Something was captured against the rules, for a rollback. */
  readonly overridden: boolean
  /** Entries of this directory that are `unknown`. */
  readonly unknown: number
  /** Of those, what makes a snapshot PARTIAL. Such a directory is always looked at again. */
  readonly skipped: number
  readonly files: number
  readonly bytes: number
  /** The file that says exactly this of it; undefined when none does. */
  base?: Base | undefined
}

/** A file with a whole cache. What is not as it says is kept beside it. */
export interface Base {
  /** The checksum that it ends with, and which file it is, as long as it is there. */
  readonly sum: string
  readonly identity: string
  /** Of all directories in it. */
  readonly paths: readonly Raw[]
}

/** Directories by path, with the sums over all of them. */
export class CachedDirs extends Map<Raw, CachedDir> {
  files = 0
  bytes = 0
  /** Directories with nothing captured in them. */
  emptyDirs = 0
  /** Paths of those with something skipped. */
  readonly skipped = new Set<Raw>()

  override set(path: Raw, dir: CachedDir): this {
    const before = this.get(path)
    if (before) this.count(path, before, -1)
    this.count(path, dir, 1)
    return super.set(path, dir)
  }

  /** `set` for a path that is not in it. */
  add(path: Raw, dir: CachedDir): void {
    this.count(path, dir, 1)
    super.set(path, dir)
  }

  override delete(path: Raw): boolean {
    const before = this.get(path)
    if (before) this.count(path, before, -1)
    return super.delete(path)
  }

  /** A directory with everything below it; `visit` sees each. */
  forget(path: Raw, visit: (dir: CachedDir) => void): void {
    const dir = this.get(path)
    if (!dir) return
    visit(dir)
    this.delete(path)
    for (const name of dir.childDirs) this.forget(joinRaw(path, name), visit)
  }

  copy(): CachedDirs {
    const copy = new CachedDirs()
    for (const [path, dir] of this) copy.add(path, dir)
    return copy
  }

  private count(path: Raw, dir: CachedDir, sign: 1 | -1): void {
    this.files += sign * dir.files
    this.bytes += sign * dir.bytes
    if (path !== '' && dir.files === 0 && dir.childDirs.length === 0) this.emptyDirs += sign
    if (dir.skipped === 0) return
    if (sign > 0) this.skipped.add(path)
    else this.skipped.delete(path)
  }
}

export interface StatCache {
  dirs: CachedDirs
  /** Identity of the target's root when it was captured, so that another directory's cache is never used. */
  rootKey: string
  /** What `records` of directories from disk lie in. */
  bytes: CacheBytes
  /** The tree of the whole: a cache whose tree is not in the store is worth nothing. '' when nothing was captured. */
  root: Id
  /** The file that it came from, or went to as a whole. */
  base: Base | undefined
}

export const emptyCache = (rootKey = ''): StatCache => ({
  dirs: new CachedDirs(),
  rootKey,
  bytes: new CacheBytes(Buffer.alloc(0)),
  root: '',
  base: undefined,
})

/** Where a directory's records lie in the bytes of the cache that it came from; undefined when they were made since. */
export function storedSpan(dir: CachedDir | undefined): { offset: number; length: number } | undefined {
  return dir instanceof StoredDir && dir.isStored ? { offset: dir.recordsAt, length: dir.recordsLength } : undefined
}

/** The next capture reads this entry again; and no file says so yet. */
export function smudge(dir: CachedDir, at: number): void {
  // What is read from the file again would not know of it.
  if (dir instanceof StoredDir && dir.cacheBytes.isInFile) dir.keepOwn()
  smudgeRecord(dir.records, at)
  dir.base = undefined
}
