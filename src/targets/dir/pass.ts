/** What one pass over a tree is asked, what it answers, and what its parts share while it runs. */
import { getSystemErrorName } from 'node:util'
import { isDiskGone, SavepointError, wordsOf } from '../../errors/errors.ts'
import type { GitFacts } from '../../files/git-facts.ts'
import type { DirRules } from '../../files/ignore-rules.ts'
import type { Entry, Id } from '../../model/entry.ts'
import { type Raw, showPath } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import type { DirNode } from './dir-node.ts'
import type { Ingest } from './ingest.ts'
import { LinkGroups } from './link-groups.ts'
import type { OpenedPaths } from './opened-paths.ts'
import type { Preserved } from './preserved.ts'
import type { WrittenFiles } from './restore-stage.ts'
import { forEachLink } from './stale-links.ts'
import { CachedDirs, type StatCache } from './stat-cache.ts'
import type { Listing } from './walk-record.ts'

/** Where rules come from. */
export interface RuleContext {
  /** Of the root, its own ignore files and repository included. */
  root: DirRules
  /** What git says about the repository at `path`. */
  gitFacts(path: Raw): Promise<GitFacts | undefined>
}

export interface PassOptions {
  store: Store
  writer: StoreWriter
  ingest: Ingest
  root: number
  rules: RuleContext
  cache: StatCache
  maxFileBytes: number
  /** Inode of our own home, which is never captured. */
  homeIno: bigint | undefined
  override: readonly Id[]
  only: ReadonlySet<Raw> | undefined
  /** The cache is of no use to anybody else: saves a copy. */
  mayChangeCache?: boolean
  /** Not one that looks again at what a pass before it has seen. */
  isFirst: boolean
  /** Directories that were listed a moment ago. */
  listed: ReadonlyMap<Raw, Listing> | undefined
  /** Files that a restore has just written. */
  written: WrittenFiles | undefined
  /** The stage of the interrupted restore that this capture is the recovery of. */
  stage: Raw | undefined
  /** Paths at which something else was mounted, which does not show here. */
  mounts: ReadonlySet<Raw> | undefined
  /** It is a state that the filesystem keeps, which can be read another time. */
  isKept: boolean
  /** Makes what this user owns readable for the time of the capture; undefined: unreadable stays unreadable. */
  opened: OpenedPaths | undefined
  /** What was put aside before a run changed it; the state is to be the one before. */
  preserved: Preserved | undefined
  signal: AbortSignal | undefined
}

export interface PassResult {
  tree: Id
  cache: StatCache
  /** Directories to look at again, to know whether the state held still. */
  unsettled: Set<Raw>
  /** Those of them that belong to git directories. */
  unsettledGit: Set<Raw>
  /** Whether anything differed from the cache. */
  changed: boolean
  /** Whether anything in a git directory but its objects differed from the cache. */
  refsMoved: boolean
  /** Whether a pack was gone before it could be read: what replaced it may not have been listed. */
  packLost: boolean
  /** The newest change time of the `unsettled`, each after it was listed; undefined when something else was in doubt. */
  newestListingNs: bigint | undefined
}

/** Shared by the parts of one pass. */
export class PassState {
  readonly options: PassOptions
  /** What becomes the cache. */
  readonly dirs: CachedDirs
  /** Inodes of files with several names in directories that are gone, as far as a restricted pass has met them. */
  readonly goneLinks = new Set<bigint>()
  readonly links = new LinkGroups()
  readonly waitingForLinks: DirNode[] = []
  readonly unsettled = new Set<Raw>()
  changed = false
  packLost = false
  newestListingNs: bigint | undefined = 0n
  private committed = false

  constructor(options: PassOptions) {
    this.options = options
    // A restricted pass keeps what it does not look at.
    if (!options.only) this.dirs = new CachedDirs()
    else this.dirs = options.mayChangeCache ? options.cache.dirs : options.cache.dirs.copy()
  }

  /** undefined: not everything could be listed and read as it was. */
  listedAt(ctimeNs: bigint | undefined): void {
    const newest = this.newestListingNs
    if (newest !== undefined && (ctimeNs === undefined || ctimeNs > newest)) this.newestListingNs = ctimeNs
  }

  /**
   * Of a state that is kept, a disk that fails says nothing: what it does not give now may be read later, and to say for good
   * that it could not be captured would be wrong. Of the live one, now is all there is.
   */
  requireDisk(path: Raw, errno: number): void {
    if (!this.options.isKept || errno === 0) return
    const code = getSystemErrorName(-errno)
    const cause = Object.assign(new Error(code), { code })
    if (!isDiskGone(cause)) return
    throw new SavepointError('io.failed', `Cannot read ${showPath(path)}: ${wordsOf(cause)}`, { cause })
  }

  /** A tree of the cache. In a later pass it may be one that the pass before has just made. */
  oldTree(id: Id): Iterable<Entry> {
    if (this.options.only && !this.committed) {
      this.options.writer.commit()
      this.committed = true
    }
    return this.options.store.entries(id)
  }

  /** A directory that is gone, with everything below it. */
  forgetDirs(path: Raw): void {
    if (!this.options.only) return
    this.dirs.forget(path, dir => forEachLink(dir, ino => this.goneLinks.add(ino)))
  }
}
