/**
 * What existed before a run, is in no snapshot (ignored, too large) and is not as it was, by the run's trace: overwritten,
 * truncated, given other attributes, moved, or replaced together with a directory above it. No undo brings it back, and diffs
 * leave such paths out. Of a mount or a nested subvolume also what came into being in it: rules leave out what nobody misses, but
 * this is left out for where it lies.
 */
import { answeringMountsBelow } from '../backends/mounts-below.ts'
import { descend } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
import { joinRaw, parentOf, type Raw } from '../model/raw-path.ts'
import type { Run, Skipped } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import type { Store } from '../store/store.ts'
import { entryAt, findEntry } from '../store/tree-lookup.ts'
import { openDir } from '../targets/dir/dir-target.ts'
import type { Change } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { isPassing } from './gone-unprotected.ts'
import { keptCopies } from './kept-copies.ts'
import { NamesOverTime } from './names-over-time.ts'
import type { OwnMoves } from './own-moves.ts'
import type { ChangedPath, Unprotected } from './results.ts'

/** How many are listed. */
const LISTED = 100
/** How many files are looked at. */
const MAX_LOOKS = 20_000
/** How many entries of the directories that were moved, in trees: these cost less. */
const MAX_WALKED = 200_000
/** The clock of files runs a little behind the other one, and some filesystems (zfs-fuse, FAT) have a coarse one. */
const CLOCK_SLACK_MS = 50
const COARSE_SLACK_MS = 2000
const SECOND_NS = 1_000_000_000n

export const noneUnprotected: Unprotected = { count: 0, paths: [] }

/** Trees of the target before the run and now. `known`: what it did, as the trees tell: moved, or replaced by something else. */
export function changedUnprotected(
  ctx: Context,
  run: Run,
  moves: OwnMoves,
  trees: { before: Id; now: Id },
  known: readonly ChangedPath[],
): Unprotected {
  const found = new Map<Raw, ChangedPath>(known.map(path => [path.path, path]))
  const root = openOrNone(ctx.targetPath)
  if (root === undefined) return toList(ctx, run, found)
  const isOther = (path: Raw): boolean => {
    const answer = moves.isOther(path)
    return answer === 'perhaps' ? isChangedSince(root, path, run.startedAt, false) : answer
  }
  const add = (skipped: Skipped, wasReplaced: boolean) =>
    found.set(skipped.path, { ...skipped, to: wasReplaced ? moves.placeOf(skipped.path, trees.now) : undefined })
  try {
    let looks = 0
    for (const { path, first, isNew, isMade, isMove } of touches(ctx, run.id)) {
      // Made again, it is another one, whatever its times: a snapshot of a subvolume has those of that.
      const former = isNew && first !== undefined ? mountAt(moves, first) : undefined
      if (former && entryAt(ctx.store, trees.now, former.path)) add(former, false)
      const holder = isMade ? moves.uncaptured.mountAround(first ?? path) : moves.uncaptured.of(first!)
      if (!holder || found.has(holder.path) || isPassing(holder.reason)) continue
      if (++looks > MAX_LOOKS) break
      if (!entryAt(ctx.store, trees.now, holder.path)) continue
      const wasReplaced = isOther(holder.path)
      const at = first === undefined ? path : moves.nowOf(first)
      // It has its name again, and to be moved is no other change of it.
      const isHome = isMove && first === holder.path
      if (wasReplaced || (!isHome && isChangedSince(root, at, run.startedAt, !isMade))) add(holder, wasReplaced)
    }
    for (const holder of inMovedDirectories(ctx.store, moves.directories, trees))
      if (!found.has(holder.path) && isOther(holder.path)) add(holder, true)
    for (const path of answeringMountsBelow(ctx.targetPath).slice(0, MAX_LOOKS)) {
      const mount = mountAt(moves, path)
      if (mount && !found.has(path) && isBornIn(root, path, run) && entryAt(ctx.store, trees.now, path))
        add(mount, false)
    }
  } finally {
    addon.close(root)
  }
  return toList(ctx, run, found)
}

function openOrNone(target: Buffer): number | undefined {
  try {
    return openDir(target)
  } catch {
    return undefined
  }
}

function toList(ctx: Context, run: Run, found: ReadonlyMap<Raw, ChangedPath>): Unprotected {
  const all = [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
  const listed = all.slice(0, LISTED)
  const changed = listed.flatMap(({ path, to }) => (to === undefined ? [path] : []))
  const before = run.before === undefined ? undefined : ctx.db.snapshot(run.before)
  const kept = keptCopies(ctx, changed, before?.createdAt ?? run.startedAt)
  return { count: all.length, paths: listed.map(path => ({ ...path, kept: kept.get(path.path) })) }
}

interface Touch {
  path: Raw
  /** Its name before the run; undefined: it came later. */
  first: Raw | undefined
  /** By this call, unless that fails. */
  isNew: boolean
  /** It came into being by the run: then nothing was lost. */
  isMade: boolean
  isMove: boolean
}

/** Each path that a call was about. */
function* touches(ctx: Context, run: string): Generator<Touch> {
  const names = new NamesOverTime()
  const made = new Set<Raw>()
  for (const change of ctx.db.events.changesOf(run)) {
    for (const { path, isNew } of pathsOf(change)) {
      const first = names.firstOf(path)
      if (isNew && first !== undefined) made.add(first)
      const isMove = change.op === 'rename' || change.op === 'exchange'
      yield { path, first, isNew, isMade: first === undefined || made.has(first), isMove }
    }
    names.note({ ...change, by: run })
  }
}

function* pathsOf({ op, path, to, existed }: Change): Generator<{ path: Raw; isNew: boolean }> {
  // The shell opened it, for the whole command.
  if (op === 'inherited') return
  const isMade = op === 'create' || (op === 'write' && !existed)
  if (path !== undefined && op !== 'link') yield { path, isNew: isMade }
  if (to !== undefined) yield { path: to, isNew: op === 'link' || (op === 'rename' && !existed) }
}

/** A call is told before it is carried out, and may fail: then the file is as it was. `ifGone`: the answer where there is none. */
function isChangedSince(root: number, path: Raw | undefined, since: number, ifGone: boolean): boolean {
  if (path === undefined) return ifGone
  try {
    const { ctimeNs } = addon.statAt(root, path)
    const slackMs = ctimeNs % SECOND_NS === 0n ? COARSE_SLACK_MS : CLOCK_SLACK_MS
    return Number(ctimeNs / 1_000_000n) >= since - slackMs
  } catch {
    return ifGone
  }
}

/** The mount or nested subvolume that had exactly this name before the run. */
function mountAt({ uncaptured }: OwnMoves, path: Raw): Skipped | undefined {
  const holder = uncaptured.of(path)
  return holder?.path === path && holder.reason === 'mount' ? holder : undefined
}

/** What is mounted there was made meanwhile, and no call that is told says so. Where no time of birth is known, it is passed over. */
function isBornIn(root: number, path: Raw, { startedAt, endedAt }: Run): boolean {
  try {
    const born = Number(addon.statAt(root, path).btimeNs / 1_000_000n)
    return born >= startedAt && born <= (endedAt ?? Infinity)
  } catch {
    return false
  }
}

/** What lay in a directory that was moved, and has something in its place now. '' is the target itself. */
export function* inMovedDirectories(
  store: Store,
  directories: ReadonlySet<Raw>,
  trees: { before: Id; now: Id },
): Generator<Skipped> {
  let walked = 0
  const below = (path: Raw, before: Entry | undefined, now: Entry | undefined) =>
    before?.kind === 'dir' && now?.kind === 'dir' ? pairsIn(store, path, before.content, now.content) : undefined
  for (const directory of directories) {
    if (++walked > MAX_WALKED) return
    if (isBelowAny(directory, directories)) continue
    const [before, now] = [trees.before, trees.now].map(tree => entryAt(store, tree, directory))
    const start = directory === '' ? pairsIn(store, '', trees.before, trees.now) : below(directory, before, now)
    for (const pair of start ? descend(start, ({ path, before, now }) => below(path, before, now)) : []) {
      if (++walked > MAX_WALKED) return
      const { path, before } = pair
      if (before.reason !== undefined && !isPassing(before.reason)) yield { path, reason: before.reason }
    }
  }
}

function* pairsIn(
  store: Store,
  directory: Raw,
  before: Id,
  now: Id,
): Generator<{ path: Raw; before: Entry; now: Entry }> {
  const present = store.tree(now)
  for (const entry of store.tree(before)) {
    const other = findEntry(present, entry.name)
    if (other) yield { path: joinRaw(directory, entry.name), before: entry, now: other }
  }
}

function isBelowAny(path: Raw, directories: ReadonlySet<Raw>): boolean {
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) if (directories.has(at)) return true
  return false
}
