/**
 * One pass over a directory tree: lists directories in batches, compares with what the last pass saw, reads what
 * changed, and builds trees bottom-up. `only` restricts the pass to some directories; the rest is taken from the cache.
 *
 * In a git directory, everything else is read before `objects`, and loose objects before packs: git writes them in the
 * opposite order, so what the captured refs name is among the captured objects.
 */
import { setImmediate } from 'node:timers/promises'
import { getSystemErrorName } from 'node:util'
import { cancelled, SavepointError } from '../../errors/errors.ts'
import type { Present } from '../../files/ignore-rules.ts'
import { monotonicMs } from '../../model/monotonic.ts'
import { joinRaw, parentOf, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { pausepoint } from '../../store/failpoint.ts'
import { createNode, type DirNode, isObjectDir, unknownEntry } from './dir-node.ts'
import { EntryCapture } from './entry-capture.ts'
import { isGitDir, NOTEWORTHY, noteworthyNames } from './noteworthy-names.ts'
import { overridesIn } from './override.ts'
import { type PassOptions, type PassResult, PassState } from './pass.ts'
import { knownOf } from './scan-known.ts'
import { findGoneLinks, findStaleLinks } from './stale-links.ts'
import type { CachedDir } from './stat-cache.ts'
import { TreeBuilder } from './tree-builder.ts'
import * as record from './walk-record.ts'

const SCAN_BATCH_DIRS = 64
/** The first are smaller: somebody may wait for what they tell. */
const FIRST_BATCH_DIRS = 1
const SCANS_IN_FLIGHT = 2
/** So long the walk keeps others of this process waiting. */
const TURN_MS = 5
const ENOENT = 2
const EACCES = 13
const ENOTDIR = 20
const ELOOP = 40

/** Of a directory that is on the way only. */
const unasked = { same: true, errno: 0, ctimeNs: undefined } as const

export class TreeWalk {
  private readonly options: PassOptions
  private readonly state: PassState
  private readonly builder: TreeBuilder
  private readonly entries: EntryCapture
  private readonly prefixes: Set<Raw> | undefined
  private readonly gitDirs = new Map<Raw, { dirs: Raw[]; changed: boolean }>()
  private queue: DirNode[] = []
  private batchDirs = FIRST_BATCH_DIRS
  private gaveWayAt = monotonicMs()
  private objects: DirNode[] = []
  private packs: DirNode[] = []
  private refsMoved = false

  constructor(options: PassOptions) {
    this.options = options
    this.state = new PassState(options)
    this.builder = new TreeBuilder(this.state)
    this.entries = new EntryCapture(this.state, this.builder, (parent, name) => this.descend(parent, name))
    this.prefixes = options.only ? ancestorsOf(options.only) : undefined
  }

  async run(): Promise<PassResult> {
    const { cache, rules, override } = this.options
    const root = createNode(undefined, '', rules.root, cache.dirs.get(''))
    root.override = override
    this.options.preserved?.onPass(this.options.only)
    this.queue.push(root)
    await this.walkQueue()
    // Each may bring more of both: a repository can lie inside the objects of another.
    for (let late = this.takeLate(); late.length > 0; late = this.takeLate()) {
      await this.options.ingest.drain()
      this.queue = late
      await this.walkQueue()
    }
    for (const node of this.state.waitingForLinks) this.builder.settle(node)
    await this.options.ingest.drain()
    return this.finish()
  }

  /** What must be looked at after everything else, the objects before the packs. */
  private takeLate(): DirNode[] {
    return this.objects.length > 0 ? this.objects.splice(0) : this.packs.splice(0)
  }

  private finish(): PassResult {
    const { cache } = this.options
    // A snapshot of nothing must never be taken for one of everything.
    if (this.builder.root === '') throw new SavepointError('bug', 'Cannot capture: a directory was never looked at')
    const { dirs, links, unsettled } = this.state
    const unsettledGit = new Set([...this.gitDirs.values()].flatMap(git => (git.changed ? git.dirs : [])))
    for (const path of unsettledGit) unsettled.add(path)
    if (this.options.isFirst) {
      // Directories that are gone.
      if (dirs.size !== cache.dirs.size) this.state.changed = true
      // The first of all has nothing that could be stale.
      const gone = this.options.only ? this.state.goneLinks : findGoneLinks(cache.dirs, dirs)
      const isFirstOfAll = cache.dirs.size === 0
      if (!isFirstOfAll) for (const path of findStaleLinks(links, gone, dirs)) unsettled.add(path)
    }
    return {
      tree: this.builder.root,
      cache: { ...cache, dirs },
      unsettled,
      unsettledGit,
      changed: this.state.changed,
      refsMoved: this.refsMoved,
      packLost: this.state.packLost,
      newestListingNs: this.state.newestListingNs,
    }
  }

  // --- listing ---

  private async walkQueue(): Promise<void> {
    const inFlight = new Set<Promise<void>>()
    let failure: unknown
    while (this.queue.length > 0 || inFlight.size > 0) {
      if (this.options.signal?.aborted) throw cancelled()
      while (this.queue.length > 0 && inFlight.size < SCANS_IN_FLIGHT) {
        const nodes = this.queue.splice(Math.max(0, this.queue.length - this.batchDirs))
        this.batchDirs = Math.min(SCAN_BATCH_DIRS, this.batchDirs * 2)
        const scan: Promise<void> = this.scan(nodes)
          .catch(error => {
            failure ??= error
          })
          .finally(() => inFlight.delete(scan))
        inFlight.add(scan)
      }
      await Promise.race(inFlight)
      await this.options.ingest.room()
      await pausepoint('capture:walking')
      if (failure) throw failure
    }
  }

  private async scan(nodes: DirNode[]): Promise<void> {
    // Directories outside `only` are on the way to one inside: their listing is what the cache says.
    const inQuestion = nodes.filter(node => !this.options.only || this.options.only.has(node.path) || !node.cached)
    const listings = new Map<DirNode, record.Listing>()
    const asked = inQuestion.filter(node => {
      const listing = this.options.preserved?.listing(node.path) ?? this.options.listed?.get(node.path)
      if (listing) listings.set(node, listing)
      return !listing
    })
    if (asked.length > 0) {
      const paths = Buffer.from(asked.map(node => node.path).join('\0'), 'latin1')
      const known = knownOf(
        this.options.cache,
        asked.map(node => node.cached),
      )
      const scan = await addon.scanDirs(this.options.root, paths, known.bytes, known.spans)
      // It may have been put aside, and changed, since we asked.
      for (const [i, listing] of record.splitListings(scan, asked.length).entries())
        listings.set(asked[i]!, this.options.preserved?.listing(asked[i]!.path) ?? listing)
    }
    for (const node of nodes) this.options.preserved?.onListed(node.path)
    for (const node of nodes) {
      await this.giveWay()
      await this.receive(node, listings.get(node) ?? { ...unasked, records: node.cached!.records })
    }
  }

  /** While a command is being started nothing is done here, and while it waits for what it changes nothing takes long. */
  private async giveWay(): Promise<void> {
    const { preserved } = this.options
    if (!preserved) return
    if (preserved.isStarted && !preserved.isBegun) await preserved.begun
    else if (monotonicMs() - this.gaveWayAt < TURN_MS) return
    else await setImmediate()
    this.gaveWayAt = monotonicMs()
  }

  private async receive(node: DirNode, listing: record.Listing): Promise<void> {
    if (listing.errno !== 0) return this.unlistable(node, listing.errno)
    if (record.isClosedListing(listing.records) && this.options.opened?.open(node.path)) {
      this.queue.push(node)
      return
    }
    const { cached } = node
    const same = cached !== undefined && (listing.same || cached.records.equals(listing.records))
    node.records = listing.records
    node.noteworthy = same ? cached.noteworthy : noteworthyNames(listing.records)
    if (node.parent) await this.enterRules(node, same)
    if (isGitDir(node.noteworthy)) node.gitDir = node.path
    else node.gitDir ??= node.parent?.gitDir
    const git = node.gitDir === undefined ? undefined : this.gitDirOf(node.gitDir)
    git?.dirs.push(node.path)
    if (same && this.mayReuse(node, cached)) this.reuse(node, cached)
    else {
      this.state.changed = true
      if (git) git.changed = true
      if (git && !isObjectDir(node)) this.refsMoved = true
      this.state.unsettled.add(node.path)
      this.state.listedAt(listing.ctimeNs)
      // What is read is noted in the records.
      if (listing.same) node.records = Buffer.from(cached!.records)
      this.entries.rebuild(node)
    }
    this.builder.settle(node)
  }

  private async enterRules(node: DirNode, same: boolean): Promise<void> {
    const { cached, name, noteworthy } = node
    const present: Present = {
      gitignore: (noteworthy & NOTEWORTHY.gitignore) !== 0,
      savepointignore: (noteworthy & NOTEWORTHY.savepointignore) !== 0,
    }
    if (noteworthy & NOTEWORTHY.git) {
      const git = await this.options.rules.gitFacts(node.path)
      node.rules = node.rules.enter(name, { ...present, git })
    } else if (same && cached?.rulesIn === node.rulesIn) {
      node.rules = node.rules.enterKnown(name, present, cached.rulesOut)
    } else node.rules = node.rules.enter(name, present)
  }

  private gitDirOf(path: Raw): { dirs: Raw[]; changed: boolean } {
    const git = this.gitDirs.get(path) ?? { dirs: [], changed: false }
    this.gitDirs.set(path, git)
    return git
  }

  /** Same records are the same tree only under the same rules, when nothing was left out that may be readable now. */
  private mayReuse(node: DirNode, cached: CachedDir): boolean {
    if (cached.rulesIn !== node.rulesIn || cached.rulesOut !== node.rules.key) return false
    // The pass before has looked at everything with the same eyes.
    if (this.options.only) return true
    if (cached.skipped > 0 || cached.overridden || node.overrideOnly) return false
    return cached.unknown === 0 || node.override.every(tree => tree === cached.tree)
  }

  private reuse(node: DirNode, cached: CachedDir): void {
    node.tree = cached.tree
    const names = cached.childDirs
    node.childDirs = [...names]
    this.state.dirs.set(node.path, cached)
    for (const name of names) {
      if (!this.prefixes || this.prefixes.has(joinRaw(node.path, name))) this.queueChild(node, name)
    }
  }

  private unlistable(node: DirNode, errno: number): void {
    const { parent } = node
    if (errno === EACCES && this.options.opened?.open(node.path)) {
      this.queue.push(node)
      return
    }
    this.state.requireDisk(node.path, errno)
    this.state.changed = true
    this.state.unsettled.add(parent?.path ?? '')
    this.state.listedAt(undefined)
    this.state.forgetDirs(node.path)
    if (!parent) {
      const code = getSystemErrorName(-errno)
      throw Object.assign(new Error(`${code}: the target cannot be listed`), { code, errno })
    }
    const entries = this.builder.entriesOf(parent)
    if (errno === ENOENT || errno === ENOTDIR || errno === ELOOP) entries.delete(node.name)
    else entries.set(node.name, unknownEntry(node.name, 'unreadable'))
    this.builder.settle(parent)
  }

  private descend(parent: DirNode, name: Raw): DirNode {
    parent.childDirs.push(name)
    return this.queueChild(parent, name)
  }

  private queueChild(parent: DirNode, name: Raw): DirNode {
    const child = createNode(parent, name, parent.rules, this.options.cache.dirs.get(joinRaw(parent.path, name)))
    child.override = overridesIn(this.options.store, parent, name)
    parent.pending++
    if (parent.gitDir === parent.path && name === 'objects') this.objects.push(child)
    else if (parent.gitDir !== undefined && parent.path === joinRaw(parent.gitDir, 'objects') && name === 'pack')
      this.packs.push(child)
    else this.queue.push(child)
    return child
  }
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
