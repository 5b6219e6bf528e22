/**
 * Decides what a restore does, from three-valued trees: what is captured is made so, what is known absent is removed,
 * what is unknown is left alone. Pure: reads trees, touches no file. Only paths that differ are in the plan.
 */
import { isDamage } from '../../errors/errors.ts'
import { call, type Deep, runDeep } from '../../model/deep-walk.ts'
import type { Entry, Id } from '../../model/entry.ts'
import { isWithin, joinRaw, parentOf, type Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { EMPTY_TREE } from '../../store/tree-codec.ts'
import { pairByName, sameContent, sameEntry } from '../../store/tree-diff.ts'
import { EntryCursor } from '../../store/tree-lookup.ts'
import { isEmptied } from './emptied-dir.ts'
import { Hidden, isSaidToStay, type LeftAlone, noteStaying, noteUnstored, type Uncaptured } from './hidden.ts'
import { mayChangeDir } from './may-change.ts'
import { OthersPaths, type Span } from './others-paths.ts'
import { isKnown, isOutOfTheWay, lostDirectory, sameAside, sameDeep, treeOf } from './plan-entries.ts'
import { isRefreshedIndex, type ReadLive } from './refreshed-index.ts'
import { missingBelow, Repositories } from './repository-since.ts'
import { wholeDatabases } from './whole-databases.ts'

export type PlanAction =
  /** Nothing is there: make the entry (a directory with everything in it). */
  | { action: 'create'; path: Raw; entry: Entry }
  /** Something is there and goes: a directory with everything in it, all of which is captured. */
  | { action: 'delete'; path: Raw; live: Entry }
  /** Another content or kind takes its place. */
  | { action: 'replace'; path: Raw; live: Entry; entry: Entry }
  /** The content stays; mode, owner, times or xattrs change. */
  | { action: 'metadata'; path: Raw; live: Entry; entry: Entry }

export interface RestorePlan {
  actions: PlanAction[]
  /** Conflicts: the result is incomplete. */
  leftAlone: LeftAlone[]
  /** Directories that stay because excluded files live in them; not a conflict. */
  keptDirs: Raw[]
  /** What rules hid from `wanted` but is captured now; not a conflict. */
  hidden: Hidden
  /** The same of what was not captured for another reason. */
  uncaptured: Uncaptured[]
}

export interface PlanOptions {
  store: Store
  /** Trees of the target directory: as it is, and as it shall be. */
  live: Id
  wanted: Id
  /** Undo: what the operation left behind. Only what differs from `wanted` there is touched, while it still is as it left it. */
  base?: Id
  /** Undo: what others did meanwhile. */
  others?: readonly Span[]
  scope?: readonly Raw[]
  /** Leaves `.git` at any depth alone. */
  withoutGit?: boolean
  readLive?: ReadLive | undefined
}

export function planRestore(options: PlanOptions): RestorePlan {
  return wholeDatabases(new Planner(options).run())
}

class Planner {
  private readonly options: PlanOptions
  private readonly plan: RestorePlan = {
    actions: [],
    leftAlone: [],
    keptDirs: [],
    hidden: new Hidden(),
    uncaptured: [],
  }
  private readonly pure = new Map<Id, boolean>()
  /** Live directories in which this user may change nothing. */
  private readonly closed = new Set<Raw>()
  private readonly others: OthersPaths
  private readonly repositories: Repositories

  constructor(options: PlanOptions) {
    this.options = options
    this.others = new OthersPaths(options.store, options.others ?? [])
    this.repositories = new Repositories(options.store, options.readLive)
  }

  run(): RestorePlan {
    const { live, wanted, base } = this.options
    if (base !== undefined) this.repositories.begin({ live, wanted, base })
    runDeep(this.compareTrees('', live, wanted, base))
    return this.plan
  }

  private *compareTrees(
    directory: Raw,
    live: Id | undefined,
    wanted: Id | undefined,
    base: Id | undefined,
  ): Deep<void> {
    if (live === wanted || (this.options.base !== undefined && base === wanted)) return
    const [liveEntries, wantedEntries, baseEntries] = [live, wanted, base].map(id => this.entries(id, directory))
    const bases = new EntryCursor(baseEntries!)
    for (const [now, then] of pairByName(liveEntries!, wantedEntries!)) {
      const { name } = (now ?? then)!
      if (this.options.withoutGit && name === '.git') continue
      const path = joinRaw(directory, name)
      if (this.inScope(path)) yield* this.compare(path, now, then, bases.find(name))
    }
  }

  private entries(tree: Id | undefined, directory: Raw): Iterable<Entry> {
    try {
      return tree === undefined ? [] : this.options.store.entries(tree)
    } catch (error) {
      throw isDamage(error) ? lostDirectory(directory, error) : error
    }
  }

  /** In scope, or on the way to something that is. */
  private inScope(path: Raw): boolean {
    const { scope } = this.options
    return !scope || scope.some(part => isWithin(path, part) || isWithin(part, path))
  }

  private isInside(path: Raw): boolean {
    const { scope } = this.options
    return !scope || scope.some(part => isWithin(path, part))
  }

  private *compare(path: Raw, live: Entry | undefined, wanted: Entry | undefined, base: Entry | undefined): Deep<void> {
    const isUndo = this.options.base !== undefined
    if (wanted?.kind === 'unknown') {
      // An undo is about what the operation changed, and this it left alone.
      if (live && live.kind !== 'unknown' && !isUndo && this.isInside(path)) noteStaying(this.plan, path, wanted)
      return
    }
    if (live?.kind === 'unknown') {
      const isTouched = wanted ? !(isUndo && base && sameAside(base, wanted)) : !isUndo || isKnown(base)
      if (isTouched && (wanted || this.isInside(path))) noteUnstored(this.plan, path, live, wanted !== undefined)
      // Asked for by name, it stays all the same.
      const isNamed = this.options.scope?.includes(path) && !isSaidToStay(live.reason)
      if (!wanted && !isUndo && isNamed) noteStaying(this.plan, path, live)
      return
    }
    if (this.others.isRepository(path)) {
      if (!sameDeep(base, wanted) && !sameDeep(live, wanted)) this.noteOverlapped(path)
      return
    }
    const stays = isUndo ? this.repositories.whatStays({ path, live, wanted, base }) : 'nothing'
    if (stays === 'repository') this.plan.leftAlone.push({ path, why: 'edited' })
    if (stays === 'objects')
      for (const missing of missingBelow(this.options.store, path, live, wanted))
        this.plan.actions.push({ action: 'create', ...missing })
    if (stays !== 'nothing') return
    if (live?.kind === 'dir' && wanted?.kind === 'dir') {
      yield* this.compareDirs(path, live, wanted, base)
      return
    }
    if (!this.isInside(path)) {
      // Only something below is wanted here: descend as far as directories go.
      if (wanted?.kind === 'dir') yield* this.makeWayTo(path, live, wanted, base)
      else if (live?.kind === 'dir') yield* call(this.compareTrees(path, live.content, undefined, treeOf(base)))
      return
    }
    // A directory that somebody removed since is made again only for what the operation took from it.
    if (!live && wanted?.kind === 'dir' && (base?.kind === 'dir' || this.others.hasBelow(path))) {
      yield* this.makeWayTo(path, live, wanted, base)
      return
    }
    if (isUndo && !(yield* this.mayUndo(path, live, wanted, base))) return
    yield* this.decide(path, live, wanted)
  }

  /** A directory above the scope that is gone is made again, but only for what is wanted in it. */
  private *makeWayTo(path: Raw, live: Entry | undefined, wanted: Entry, base: Entry | undefined): Deep<void> {
    const { actions } = this.plan
    const start = actions.push({ action: 'create', path, entry: { ...wanted, content: EMPTY_TREE } })
    yield* call(this.compareTrees(path, undefined, wanted.content, treeOf(base)))
    const isNeeded = actions.length > start
    if (isNeeded && !live) return
    actions.length = start - 1
    // Something else has taken the directory's place, and nobody asked for that to go.
    if (isNeeded) this.plan.leftAlone.push({ path, why: 'in-the-way' })
  }

  private *compareDirs(path: Raw, live: Entry, wanted: Entry, base: Entry | undefined): Deep<void> {
    if (!mayChangeDir(live)) this.closed.add(path)
    if (this.isInside(path) && !sameEntry(live, wanted)) {
      const isUndo = this.options.base !== undefined
      if (this.others.has(path)) {
        if (base && !sameEntry(base, wanted)) this.noteOverlapped(path)
      } else if (!isUndo || (base && sameEntry(live, base)))
        this.plan.actions.push({ action: 'metadata', path, live, entry: wanted })
      else if (base && !sameEntry(base, wanted)) this.plan.leftAlone.push({ path, why: 'edited' })
    }
    yield* call(this.compareTrees(path, live.content, wanted.content, treeOf(base)))
  }

  private noteOverlapped(path: Raw): void {
    if (!this.others.isForeign(path)) this.plan.leftAlone.push({ path, why: this.others.whyOf(path) })
  }

  /** Whether the operation changed this path and nobody else has since. */
  private *mayUndo(
    path: Raw,
    live: Entry | undefined,
    wanted: Entry | undefined,
    base: Entry | undefined,
  ): Deep<boolean> {
    if (base?.kind === 'unknown') {
      const isFree = isOutOfTheWay(base, live)
      const why = base.reason === 'purged' ? 'purged' : 'edited'
      if (!isFree && base.reason !== 'excluded' && !sameDeep(live, wanted)) this.plan.leftAlone.push({ path, why })
      return isFree
    }
    if (sameDeep(base, wanted)) return false
    if (this.others.has(path)) {
      if (!sameDeep(live, wanted)) this.noteOverlapped(path)
      return false
    }
    const isShared = this.others.hasBelow(path)
    // Only the times differ: they are put back as long as nobody has touched it since.
    if (sameAside(live, wanted) && live?.kind !== 'dir')
      return live !== undefined && base !== undefined && sameEntry(live, base)
    if (!isShared && sameAside(live, base) && (live?.kind !== 'dir' || live.content === base?.content)) return true
    if (isRefreshedIndex(this.options.store, path, live, base, this.options.readLive)) return true
    if (this.others.isAsTakenBack(path, live, base)) return true
    if (live?.kind === 'dir' && base?.kind === 'dir' && wanted?.kind !== 'dir') {
      // Somebody worked in a directory that is to go: take back what is the operation's, keep the rest.
      const start = this.plan.actions.length
      const keptBefore = this.plan.keptDirs.length
      yield* call(this.compareTrees(path, live.content, undefined, base.content))
      if (isEmptied(this.options.store, this.plan.actions.slice(start), path, live.content)) {
        this.plan.actions.length = start
        this.plan.keptDirs.length = keptBefore
        return true
      }
      if (wanted) this.plan.leftAlone.push({ path, why: 'in-the-way' })
      else this.plan.keptDirs.push(path)
      return false
    }
    // Who has only looked has done nothing that could be taken back.
    if (!isRefreshedIndex(this.options.store, path, wanted, base, undefined))
      this.plan.leftAlone.push({ path, why: 'edited' })
    return false
  }

  private *decide(path: Raw, live: Entry | undefined, wanted: Entry | undefined): Deep<void> {
    const { actions } = this.plan
    if (this.isRefused(path, live, wanted)) {
      this.plan.leftAlone.push({ path, why: 'refused' })
      return
    }
    if (!live) {
      if (wanted) actions.push({ action: 'create', path, entry: wanted })
      return
    }
    if (live.kind === 'dir' && !(yield* call(this.isPure(live.content)))) {
      yield* this.emptyDir(path, live, wanted)
      return
    }
    if (!wanted) actions.push({ action: 'delete', path, live })
    else if (!sameContent(live, wanted) || live.linkGroup !== wanted.linkGroup)
      actions.push({ action: 'replace', path, live, entry: wanted })
    else if (!sameEntry(live, wanted)) actions.push({ action: 'metadata', path, live, entry: wanted })
  }

  /** Entries of such a directory can only be given other metadata; the directory itself cannot be emptied or moved. */
  private isRefused(path: Raw, live: Entry | undefined, wanted: Entry | undefined): boolean {
    if (live?.kind === 'dir' && wanted?.kind !== 'dir' && !mayChangeDir(live)) return true
    if (!this.closed.has(parentOf(path))) return false
    return !live || !wanted || !sameContent(live, wanted) || live.linkGroup !== wanted.linkGroup
  }

  /** A directory that is to go but holds what was not captured: it stays with that, and loses the rest. */
  private *emptyDir(path: Raw, live: Entry, wanted: Entry | undefined): Deep<void> {
    if (wanted) {
      this.plan.leftAlone.push({ path, why: 'holds-uncaptured' })
      return
    }
    this.plan.keptDirs.push(path)
    for (const child of this.options.store.tree(live.content)) {
      const below = joinRaw(path, child.name)
      if (child.kind === 'unknown') noteUnstored(this.plan, below, child, false)
      else yield* call(this.decide(below, child, undefined))
    }
  }

  /** Whether everything below is captured. */
  private *isPure(tree: Id): Deep<boolean> {
    const known = this.pure.get(tree)
    if (known !== undefined) return known
    let pure = true
    for (const entry of this.options.store.tree(tree)) {
      pure = entry.kind !== 'unknown'
      if (entry.kind === 'dir') pure = mayChangeDir(entry) && (yield* call(this.isPure(entry.content)))
      if (!pure) break
    }
    this.pure.set(tree, pure)
    return pure
  }
}
