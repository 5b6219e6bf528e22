/**
 * One pass over a directory tree: lists directories in batches, compares with what the last pass saw, reads what
 * changed, and builds trees bottom-up. `only` restricts the pass to some directories; the rest is taken from the cache.
 *
 * In a git directory, everything else is read before `objects`, and loose objects before packs: git writes them in the
 * opposite order, so what the captured refs name is among the captured objects.
 */
import { cancelled } from '../../errors/errors.ts'
import type { GitFacts } from '../../files/git-facts.ts'
import type { DirRules } from '../../files/ignore-rules.ts'
import type { Entry, Id, UnknownReason } from '../../model/entry.ts'
import { isWithin, joinRaw, parentOf, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import { blankEntry, encodeTree } from '../../store/tree-codec.ts'
import { findEntry } from '../../store/tree-lookup.ts'
import { createNode, type DirNode, entryFromResult, unknownEntry } from './dir-node.ts'
import type { Ingest } from './ingest.ts'
import type { ReadResult } from './ingest-read.ts'
import { LinkGroups } from './link-groups.ts'
import { findStaleLinks } from './stale-links.ts'
import { STAGE_PREFIX, type WrittenFiles } from './restore-apply.ts'
import type { CachedDir, StatCache } from './stat-cache.ts'
import * as record from './walk-record.ts'

const SCAN_BATCH_DIRS = 256
const SCANS_IN_FLIGHT = 2
const ENOENT = 2
const ENOTDIR = 20
const ELOOP = 40
/** Reasons that make a snapshot PARTIAL: the user would expect these files to be protected. */
const partialReasons: ReadonlySet<UnknownReason> = new Set(['unreadable', 'too-large', 'unstable'])

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
  override: Id | undefined
  only: ReadonlySet<Raw> | undefined
  /** Files that a restore has just written. */
  written: WrittenFiles | undefined
  includeStage: boolean
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
}

export class TreeWalk {
  private readonly options: PassOptions
  private readonly dirs: Map<Raw, CachedDir>
  private readonly links = new LinkGroups()
  private readonly waitingForLinks: DirNode[] = []
  private readonly unsettled = new Set<Raw>()
  private readonly prefixes: Set<Raw> | undefined
  private readonly gitDirs = new Map<Raw, { dirs: Raw[]; changed: boolean }>()
  private queue: DirNode[] = []
  private objects: DirNode[] = []
  private packs: DirNode[] = []
  private changed = false
  private refsMoved = false
  private packLost = false
  private committed = false
  private rootTree: Id = ''

  constructor(options: PassOptions) {
    this.options = options
    // A restricted pass keeps what it does not look at.
    this.dirs = options.only ? new Map(options.cache.dirs) : new Map()
    this.prefixes = options.only ? ancestorsOf(options.only) : undefined
  }

  async run(): Promise<PassResult> {
    const { cache, rules, override } = this.options
    const root = createNode(undefined, '', rules.root, cache.dirs.get(''))
    root.override = override
    this.queue.push(root)
    await this.walkQueue()
    for (const phase of ['objects', 'packs'] as const) {
      if (this[phase].length === 0) continue
      await this.options.ingest.drain()
      this.queue = this[phase]
      this[phase] = []
      await this.walkQueue()
    }
    for (const node of this.waitingForLinks) this.settle(node)
    await this.options.ingest.drain()
    const unsettledGit = new Set([...this.gitDirs.values()].flatMap(git => (git.changed ? git.dirs : [])))
    for (const path of unsettledGit) this.unsettled.add(path)
    if (!this.options.only) {
      this.noticeRemovedDirs()
      for (const path of findStaleLinks(this.links, cache.dirs, this.dirs)) this.unsettled.add(path)
    }
    return {
      tree: this.rootTree,
      cache: { dirs: this.dirs, rootKey: cache.rootKey, root: cache.root },
      unsettled: this.unsettled,
      unsettledGit,
      changed: this.changed,
      refsMoved: this.refsMoved,
      packLost: this.packLost,
    }
  }

  private noticeRemovedDirs(): void {
    if (this.dirs.size !== this.options.cache.dirs.size) this.changed = true
  }

  // --- listing ---

  private async walkQueue(): Promise<void> {
    const inFlight = new Set<Promise<void>>()
    let failure: unknown
    while (this.queue.length > 0 || inFlight.size > 0) {
      if (this.options.signal?.aborted) throw cancelled()
      while (this.queue.length > 0 && inFlight.size < SCANS_IN_FLIGHT) {
        const nodes = this.queue.splice(Math.max(0, this.queue.length - SCAN_BATCH_DIRS))
        const scan: Promise<void> = this.scan(nodes)
          .catch(error => {
            failure ??= error
          })
          .finally(() => inFlight.delete(scan))
        inFlight.add(scan)
      }
      await Promise.race(inFlight)
      await this.options.ingest.room()
      if (failure) throw failure
    }
  }

  private async scan(nodes: DirNode[]): Promise<void> {
    // Directories outside `only` are on the way to one inside: their listing is what the cache says.
    const asked = nodes.filter(node => !this.options.only || this.options.only.has(node.path) || !node.cached)
    const listings = new Map<DirNode, record.Listing>()
    if (asked.length > 0) {
      const paths = Buffer.from(asked.map(node => node.path).join('\0'), 'latin1')
      const scan = await addon.scanDirs(this.options.root, paths)
      for (const [i, listing] of record.splitListings(scan, asked.length).entries()) listings.set(asked[i]!, listing)
    }
    for (const node of nodes) {
      const listing = listings.get(node) ?? { records: node.cached!.records, count: 0, errno: 0 }
      await this.receive(node, listing, listings.has(node))
    }
  }

  private async receive(node: DirNode, listing: record.Listing, listed: boolean): Promise<void> {
    if (listing.errno !== 0) return this.unlistable(node, listing.errno)
    node.records = listing.records
    const names = noteworthyNames(listing.records)
    const { cached } = node
    const same = cached !== undefined && (!listed || cached.records.equals(listing.records))
    if (node.parent) await this.enterRules(node, names, same)
    if (names.isGitDir) node.gitDir = node.path
    else node.gitDir ??= node.parent?.gitDir
    const git = node.gitDir === undefined ? undefined : this.gitDirOf(node.gitDir)
    git?.dirs.push(node.path)
    if (same && this.mayReuse(node, cached)) this.reuse(node, cached)
    else {
      this.changed = true
      if (git) git.changed = true
      if (git && !isObjectDir(node)) this.refsMoved = true
      this.unsettled.add(node.path)
      this.rebuild(node)
    }
    this.settle(node)
  }

  private async enterRules(node: DirNode, names: NoteworthyNames, same: boolean): Promise<void> {
    const { cached, name } = node
    if (names.hasGit) node.rules = node.rules.enter(name, { gitignore: names.gitignore, savepointignore: names.savepointignore, git: await this.options.rules.gitFacts(node.path) })
    else if (same && cached?.rulesIn === node.rulesIn) node.rules = node.rules.enterKnown(name, names, cached.rulesOut)
    else node.rules = node.rules.enter(name, names)
  }

  private gitDirOf(path: Raw): { dirs: Raw[]; changed: boolean } {
    let git = this.gitDirs.get(path)
    if (!git) this.gitDirs.set(path, (git = { dirs: [], changed: false }))
    return git
  }

  /** Same records are the same tree only under the same rules, when nothing was left out that may be readable now. */
  private mayReuse(node: DirNode, cached: CachedDir): boolean {
    if (cached.rulesIn !== node.rulesIn || cached.rulesOut !== node.rules.key) return false
    // The pass before has looked at everything with the same eyes.
    if (this.options.only) return true
    if (cached.skipped > 0 || cached.overridden || node.overrideOnly) return false
    return node.override === undefined || cached.unknown === 0 || node.override === cached.tree
  }

  private reuse(node: DirNode, cached: CachedDir): void {
    node.excludedDirs = cached.excludedDirs
    node.tree = cached.tree
    this.dirs.set(node.path, cached)
    record.forEachRecord(node.records, at => {
      if (record.recordType(node.records, at) !== record.S_IFDIR) return
      const name = record.recordName(node.records, at)
      const path = joinRaw(node.path, name)
      if (cached.excludedDirs.includes(name) || record.isMountPoint(node.records, at)) return
      if (this.prefixes && !this.prefixes.has(path)) return
      if (this.isHome(node.records, at) || this.isStage(node, name)) return
      this.descend(node, name)
    })
  }

  private isHome(records: Buffer, at: number): boolean {
    return record.recordIno(records, at) === this.options.homeIno
  }

  /** The working directory of a restore: only a recovery captures it, because it may hold what was displaced. */
  private isStage(node: DirNode, name: Raw): boolean {
    return node.path === '' && name.startsWith(STAGE_PREFIX) && !this.options.includeStage
  }

  private unlistable(node: DirNode, errno: number): void {
    this.changed = true
    this.unsettled.add(node.parent?.path ?? '')
    this.forgetDirs(node.path)
    const { parent } = node
    if (!parent) throw Object.assign(new Error(`cannot list the target (errno ${errno})`), { errno })
    const entries = this.entriesOf(parent)
    if (errno === ENOENT || errno === ENOTDIR || errno === ELOOP) entries.delete(node.name)
    else entries.set(node.name, unknownEntry(node.name, 'unreadable'))
    this.settle(parent)
  }

  private forgetDirs(path: Raw): void {
    if (!this.options.only) return
    for (const known of this.dirs.keys()) if (isWithin(known, path)) this.dirs.delete(known)
  }

  private descend(parent: DirNode, name: Raw): DirNode {
    const child = createNode(parent, name, parent.rules, this.options.cache.dirs.get(joinRaw(parent.path, name)))
    child.override = this.overrideEntry(parent, name, 'dir')?.content
    parent.pending++
    if (parent.gitDir === parent.path && name === 'objects') this.objects.push(child)
    else if (parent.gitDir !== undefined && parent.path === joinRaw(parent.gitDir, 'objects') && name === 'pack') this.packs.push(child)
    else this.queue.push(child)
    return child
  }

  private overrideEntry(node: DirNode, name: Raw, kind?: Entry['kind']): Entry | undefined {
    if (node.override === undefined) return undefined
    const entry = findEntry(this.options.store.tree(node.override), name)
    return entry && entry.kind !== 'unknown' && (kind === undefined || entry.kind === kind) ? entry : undefined
  }

  // --- entries of a changed directory ---

  private rebuild(node: DirNode): void {
    const { cached, records } = node
    const old = cached ? new Map(this.oldTree(cached.tree).map(entry => [entry.name, entry])) : undefined
    const oldRecords = cached ? indexRecords(cached.records) : undefined
    node.entries = new Map()
    if (this.options.only && cached) this.forgetRemovedSubdirs(node, cached)
    record.forEachRecord(records, at => {
      const name = record.recordName(records, at)
      const oldAt = oldRecords?.get(name)
      const unchanged = oldAt !== undefined && record.sameRecord(records, at, cached!.records, oldAt)
      this.capture(node, name, at, unchanged ? old!.get(name) : undefined)
    })
    if (node.linked.length > 0) {
      node.pending++
      this.waitingForLinks.push(node)
    }
  }

  private forgetRemovedSubdirs(node: DirNode, cached: CachedDir): void {
    const now = indexRecords(node.records)
    record.forEachRecord(cached.records, at => {
      const name = record.recordName(cached.records, at)
      if (record.recordType(cached.records, at) === record.S_IFDIR && !now.has(name)) this.forgetDirs(joinRaw(node.path, name))
    })
  }

  /** `known`: the entry of the last capture, when its record did not change. */
  private capture(node: DirNode, name: Raw, at: number, known: Entry | undefined): void {
    const { records } = node
    const entries = node.entries!
    const type = record.recordType(records, at)
    const isDirectory = type === record.S_IFDIR
    const size = record.recordSize(records, at)
    const leaveOut = this.leaveOut(node, name, at, type)
    if (leaveOut) {
      entries.set(name, unknownEntry(name, leaveOut))
      return
    }
    const verdict = node.rules.verdict(name, isDirectory, size)
    const overridden = (node.overrideOnly || verdict.kind === 'exclude') && this.overrideEntry(node, name) !== undefined
    if (overridden) node.overridden = true
    if ((verdict.kind === 'exclude' || node.overrideOnly) && !overridden) {
      if (isDirectory) node.excludedDirs.push(name)
      entries.set(name, unknownEntry(name, 'excluded'))
      return
    }
    if (size > this.options.maxFileBytes && type === record.S_IFREG) {
      if (!this.overrideEntry(node, name)) {
        entries.set(name, unknownEntry(name, 'too-large'))
        return
      }
      node.overridden = true
    }
    if (isDirectory) this.descend(node, name).overrideOnly = overridden
    else if (type === record.S_IFREG && record.recordNlink(records, at) > 1 && !known) {
      const ino = record.recordIno(records, at)
      this.links.add(ino, joinRaw(node.path, name))
      node.linked.push({ name, ino })
    }
    const written = type === record.S_IFREG ? this.writtenEntry(name, records, at) : undefined
    if (written) entries.set(name, written)
    else if (known && known.kind !== 'unknown' && (known.kind === 'dir') === isDirectory) entries.set(name, isDirectory ? { ...known } : known)
    else this.read(node, name, at, size)
  }

  /** The entry of a file that a restore has just written and nobody has touched since. */
  private writtenEntry(name: Raw, records: Buffer, at: number): Entry | undefined {
    const hint = this.options.written?.get(record.recordIno(records, at))
    if (!hint || hint.ctimeNs !== record.recordCtimeNs(records, at)) return undefined
    const { entry } = hint
    const same =
      entry.size === record.recordSize(records, at) &&
      entry.mode === (record.recordMode(records, at) & 0o7777) &&
      entry.uid === record.recordUid(records, at) &&
      entry.gid === record.recordGid(records, at)
    return same ? { ...entry, name, linkGroup: 0n } : undefined
  }

  private leaveOut(node: DirNode, name: Raw, at: number, type: number): UnknownReason | undefined {
    const { records } = node
    if (record.statFailed(records, at)) return 'unreadable'
    if (record.isMountPoint(records, at)) return 'mount'
    if (type === record.S_IFDIR && (this.isHome(records, at) || this.isStage(node, name))) return 'store'
    if (type === record.S_IFSOCK) return 'socket'
    if (node.gitDir !== undefined && name.endsWith('.lock') && type === record.S_IFREG) return 'lock'
    return undefined
  }

  private read(node: DirNode, name: Raw, at: number, size: number): void {
    node.pending++
    // Holds the place until the reading is done; a directory's tree may be known earlier.
    node.entries!.set(name, blankEntry(name, record.recordType(node.records, at) === record.S_IFDIR ? 'dir' : 'file'))
    this.options.ingest.submit(joinRaw(node.path, name), size, result => {
      this.receiveRead(node, name, at, result)
      this.settle(node)
    })
  }

  private receiveRead(node: DirNode, name: Raw, at: number, result: ReadResult): void {
    const entries = node.entries!
    const placeholder = entries.get(name)
    // Gone, or a directory that turned out to be unreadable.
    if (!placeholder || placeholder.kind === 'unknown') return
    if (result.errno === ENOENT || result.unknown === 'vanished') {
      if (isPackDir(node)) this.packLost = true
      entries.delete(name)
      return
    }
    if (result.errno !== 0) {
      entries.set(name, unknownEntry(name, 'unreadable'))
      return
    }
    const entry = entryFromResult(name, result)
    if ((entry.kind === 'dir') !== (placeholder.kind === 'dir')) {
      // Another kind of thing than the walk saw: leave it to the next pass, which sees it as it is now.
      entries.set(name, unknownEntry(name, 'unstable'))
      return
    }
    record.patchRecord(node.records, at, result)
    entry.content = entry.kind === 'dir' ? placeholder.content : entry.content
    entries.set(name, entry)
  }

  // --- trees, bottom-up ---

  /** One thing less to wait for; when it was the last, the tree is made and the parent told. */
  private settle(start: DirNode): void {
    let node: DirNode | undefined = start
    while (node && --node.pending === 0) {
      if (node.entries) this.build(node)
      const { parent } = node as DirNode
      if (!parent) this.rootTree = node.tree
      else if (parent.entries || node.tree !== node.cached?.tree) {
        const entries: Map<Raw, Entry> = this.entriesOf(parent)
        const entry: Entry | undefined = entries.get(node.name)
        if (entry?.kind === 'dir') entry.content = node.tree
      }
      node = parent
    }
  }

  /** The node's entries to be changed: from its cached tree when nothing of its own has changed. */
  private entriesOf(node: DirNode): Map<Raw, Entry> {
    if (!node.entries) {
      this.changed = true
      node.entries = new Map(
        this.oldTree(node.cached!.tree).map(entry => [entry.name, entry.kind === 'dir' ? { ...entry } : entry]),
      )
    }
    return node.entries
  }

  /** A tree of the cache. In a later pass it may be one that the pass before has just made. */
  private oldTree(id: Id): Entry[] {
    if (this.options.only && !this.committed) {
      this.options.writer.commit()
      this.committed = true
    }
    return this.options.store.tree(id)
  }

  private build(node: DirNode): void {
    for (const { name, ino } of node.linked) {
      const entry = node.entries!.get(name)
      if (entry?.kind === 'file') entry.linkGroup = this.links.groupOf(ino)
    }
    const entries = [...node.entries!.values()]
    node.tree = this.options.writer.put(encodeTree(entries))
    const files = entries.filter(entry => entry.kind !== 'dir' && entry.kind !== 'unknown')
    const unknown = entries.filter(entry => entry.kind === 'unknown')
    this.dirs.set(node.path, {
      records: node.records,
      rulesIn: node.rulesIn,
      rulesOut: node.rules.key,
      tree: node.tree,
      excludedDirs: node.excludedDirs,
      overridden: node.overridden,
      unknown: unknown.length,
      skipped: unknown.filter(entry => partialReasons.has(entry.reason!)).length,
      files: files.length,
      bytes: files.reduce((sum, entry) => sum + entry.size, 0),
    })
    node.entries = undefined
    node.linked = []
  }
}

interface NoteworthyNames {
  gitignore: boolean
  savepointignore: boolean
  hasGit: boolean
  isGitDir: boolean
}

/** Names that decide how a directory is treated. Looks at lengths first: this runs for every entry of every capture. */
function noteworthyNames(records: Buffer): NoteworthyNames {
  const found: NoteworthyNames = { gitignore: false, savepointignore: false, hasGit: false, isGitDir: false }
  let gitParts = 0
  record.forEachRecord(records, at => {
    const length = record.recordLength(records, at)
    if (length > 76) return
    const name = record.recordName(records, at)
    if (name === '.git') found.hasGit = true
    else if (name === '.gitignore') found.gitignore = record.recordType(records, at) === record.S_IFREG
    else if (name === '.savepointignore') found.savepointignore = record.recordType(records, at) === record.S_IFREG
    else if (name === 'HEAD' || name === 'objects' || name === 'refs') gitParts++
  })
  found.isGitDir = gitParts === 3
  return found
}

/** The directory of loose objects and packs, its fan-out included; `objects/info` speaks about objects, so it is none. */
function isObjectDir({ gitDir, path }: DirNode): boolean {
  if (gitDir === undefined) return false
  const objects = joinRaw(gitDir, 'objects')
  return isWithin(path, objects) && !isWithin(path, joinRaw(objects, 'info'))
}

const isPackDir = ({ gitDir, path }: DirNode): boolean => gitDir !== undefined && path === joinRaw(gitDir, 'objects/pack')

function indexRecords(records: Buffer): Map<Raw, number> {
  const index = new Map<Raw, number>()
  record.forEachRecord(records, at => index.set(record.recordName(records, at), at))
  return index
}

function ancestorsOf(paths: ReadonlySet<Raw>): Set<Raw> {
  const ancestors = new Set<Raw>()
  for (let path of paths) {
    for (; !ancestors.has(path); path = parentOf(path)) {
      ancestors.add(path)
      if (path === '') break
    }
  }
  return ancestors
}
