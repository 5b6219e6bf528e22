/**
 * What existed before a run, is in no snapshot (ignored, too large) and is not as it was, by the run's trace: overwritten,
 * truncated, given other attributes, or moved. No undo brings it back, and diffs leave such paths out. Of a mount or a nested
 * subvolume also what came into being in it: rules leave out what nobody misses, but this is left out for where it lies.
 */
import type { Entry, Id } from '../model/entry.ts'
import { isWithin, joinRaw, parentOf, type Raw } from '../model/raw-path.ts'
import type { Run, Skipped } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import type { Store } from '../store/store.ts'
import { entryAt, findEntry } from '../store/tree-lookup.ts'
import { openDir } from '../targets/dir/dir-target.ts'
import type { Change } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { isPassing } from './gone-unprotected.ts'
import { keptCopies } from './kept-copies.ts'
import type { ChangedPath, Unprotected } from './results.ts'

/** How many are listed. */
const LISTED = 100
/** How many files are looked at. */
const MAX_LOOKS = 20_000
/** The clock of files runs a little behind the other one, and some filesystems (zfs-fuse, FAT) have a coarse one. */
const CLOCK_SLACK_MS = 50
const COARSE_SLACK_MS = 2000
const SECOND_NS = 1_000_000_000n

export const noneUnprotected: Unprotected = { count: 0, paths: [] }

/** Trees of the target before the run and now. `known`: what it did, as the trees tell: moved, or replaced by something else. */
export function changedUnprotected(
  ctx: Context,
  run: Run,
  trees: { before: Id; now: Id },
  known: readonly ChangedPath[],
): Unprotected {
  const found = new Map<Raw, ChangedPath>(known.map(path => [path.path, path]))
  const holders = new UncapturedEntries(ctx.store, trees.before)
  const made = new Set<Raw>()
  const root = openOrNone(ctx.targetPath)
  if (root === undefined) return toList(ctx, run, found)
  try {
    let looks = 0
    for (const { path, isNew } of touches(ctx.db.events.changesOf(run.id))) {
      if (isNew) made.add(path)
      const isMade = made.has(path)
      const holder = isMade ? holders.mountAround(path) : holders.of(path)
      if (!holder || found.has(holder.path) || isPassing(holder.reason)) continue
      if (++looks > MAX_LOOKS) break
      if (isChangedSince(root, path, run.startedAt, !isMade) && entryAt(ctx.store, trees.now, holder.path))
        found.set(holder.path, { ...holder, to: undefined })
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

/** Each path that a call was about, and whether it came into being by that: then nothing was lost. */
function* touches(changes: Iterable<Change>): Generator<{ path: Raw; isNew: boolean }> {
  for (const { op, path, to, existed } of changes) {
    // The shell opened it, for the whole command.
    if (op === 'inherited') continue
    const isMade = op === 'create' || (op === 'write' && !existed)
    if (path !== undefined && op !== 'link') yield { path, isNew: isMade }
    if (to !== undefined) yield { path: to, isNew: op === 'link' || (op === 'rename' && !existed) }
  }
}

/** A call is told before it is carried out, and may fail: then the file is as it was. `ifGone`: the answer where there is none. */
function isChangedSince(root: number, path: Raw, since: number, ifGone: boolean): boolean {
  try {
    const { ctimeNs } = addon.statAt(root, path)
    const slackMs = ctimeNs % SECOND_NS === 0n ? COARSE_SLACK_MS : CLOCK_SLACK_MS
    return Number(ctimeNs / 1_000_000n) >= since - slackMs
  } catch {
    return ifGone
  }
}

/** The entries of a state that were not captured, by any path at or below them. */
export class UncapturedEntries {
  private readonly store: Store
  private readonly known = new Map<Raw, Id | Skipped | undefined>()

  constructor(store: Store, tree: Id) {
    this.store = store
    this.known.set('', tree)
  }

  of(path: Raw): Skipped | undefined {
    const above = this.above(parentOf(path))
    if (above === undefined || typeof above !== 'string') return above
    const entry = findEntry(this.store.tree(above), path.slice(path.lastIndexOf('/') + 1))
    return entry && unprotected(path, entry)
  }

  /** The mount or nested subvolume that it lies in. */
  mountAround(path: Raw): Skipped | undefined {
    const above = this.above(parentOf(path))
    return typeof above === 'object' && above.reason === 'mount' ? above : undefined
  }

  /** Of a directory: its tree, or by what it is not captured. */
  private above(directory: Raw): Id | Skipped | undefined {
    if (this.known.has(directory)) return this.known.get(directory)
    const outer = this.above(parentOf(directory))
    const name = directory.slice(directory.lastIndexOf('/') + 1)
    const entry = typeof outer === 'string' ? findEntry(this.store.tree(outer), name) : undefined
    const found =
      typeof outer !== 'string'
        ? outer
        : entry && (unprotected(directory, entry) ?? (entry.kind === 'dir' ? entry.content : undefined))
    this.known.set(directory, found)
    return found
  }
}

const unprotected = (path: Raw, { kind, reason }: Entry): Skipped | undefined =>
  kind === 'unknown' && reason !== undefined ? { path, reason } : undefined

/** How many steps are taken to follow what was renamed. */
const MAX_STEPS = 2_000_000

/** Where `paths` are after all that the run renamed; without those of which that cannot be told, or that it deleted. */
export function followRenames(ctx: Context, run: string, paths: readonly Raw[]): Map<Raw, Raw> {
  const now = new Map(paths.map(path => [path, path]))
  let steps = 0
  for (const { op, path, to } of paths.length > 0 ? ctx.db.events.nameChangesOf([run]) : []) {
    if (path === undefined) continue
    for (const [first, at] of now) {
      if (++steps > MAX_STEPS) return new Map()
      if (op === 'exchange' && to !== undefined && isWithin(at, to)) now.set(first, renamed(at, to, path))
      else if (!isWithin(at, path)) continue
      else if (op === 'delete' || to === undefined) now.delete(first)
      else now.set(first, renamed(at, path, to))
    }
  }
  for (const [first, at] of now) if (first === at) now.delete(first)
  return now
}

const renamed = (path: Raw, from: Raw, to: Raw): Raw => (path === from ? to : joinRaw(to, path.slice(from.length + 1)))
