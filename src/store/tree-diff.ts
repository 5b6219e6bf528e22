/**
 * Compares two trees by descending only where their ids differ, so the cost is the change, not the tree. Yields pairs in
 * path order, parents before children. A pair may have an `unknown` side: what that means is the caller's business.
 */
import { descend } from '../model/deep-walk.ts'
import { blankEntry, type Change, type ChangeCounts, type Entry, type Id } from '../model/entry.ts'
import { isWithin, joinRaw, type Raw } from '../model/raw-path.ts'
import type { Store } from './store.ts'
import { EMPTY_TREE } from './tree-codec.ts'
import { differingPairs, orderOf, type Pair } from './tree-records.ts'

export interface EntryPair {
  path: Raw
  before: Entry | undefined
  after: Entry | undefined
}

/** `scope`: only these paths and what lies below them; undefined means everything. */
export function* differingEntries(
  store: Store,
  before: Id | undefined,
  after: Id | undefined,
  scope?: readonly Raw[],
): Generator<EntryPair> {
  for (const { isInside, path, before: old, after: now } of descend(pairsIn(store, '', before, after, scope), pair =>
    pairsBelow(store, pair, scope),
  )) {
    if (isInside && !(old && now && sameEntry(old, now))) yield { path, before: old, after: now }
  }
}

interface ScopedPair extends EntryPair {
  /** In scope itself, not only on the way to something that is. */
  isInside: boolean
}

/** Walks two sorted lists side by side, in the order of names. */
export function* pairByName(a: Iterable<Entry>, b: Iterable<Entry>): Generator<Pair> {
  const [lefts, rights] = [a[Symbol.iterator](), b[Symbol.iterator]()]
  let left: Entry | undefined = lefts.next().value
  let right: Entry | undefined = rights.next().value
  while (left || right) {
    const order = orderOf(left, right)
    yield [order <= 0 ? left : undefined, order >= 0 ? right : undefined]
    if (order <= 0) left = lefts.next().value
    if (order >= 0) right = rights.next().value
  }
}

function* pairsIn(
  store: Store,
  directory: Raw,
  oldTree: Id | undefined,
  newTree: Id | undefined,
  scope: readonly Raw[] | undefined,
): Generator<ScopedPair> {
  if (oldTree === newTree) return
  for (const [before, after] of unequalPairs(store, oldTree, newTree)) {
    const path = joinRaw(directory, (before ?? after)!.name)
    const isInside = !scope || scope.some(part => isWithin(path, part))
    if (isInside || scope.some(part => isWithin(part, path))) yield { path, before, after, isInside }
  }
}

/** What two directories have under each name, but for most of what is equal. */
export function unequalPairs(store: Store, oldTree: Id | undefined, newTree: Id | undefined): Iterable<Pair> {
  if (oldTree !== undefined && newTree !== undefined && !store.isAtHand(oldTree) && !store.isAtHand(newTree))
    return differingPairs(store.read(oldTree), store.read(newTree))
  const entries = (id: Id | undefined) => (id === undefined ? [] : store.entries(id))
  return pairByName(entries(oldTree), entries(newTree))
}

function pairsBelow(
  store: Store,
  { path, before, after, isInside }: ScopedPair,
  scope: readonly Raw[] | undefined,
): Iterable<ScopedPair> | undefined {
  // What is unknown on one side cannot be compared below.
  if (before?.kind === 'unknown' || after?.kind === 'unknown') return undefined
  const oldTree = before?.kind === 'dir' ? before.content : undefined
  const newTree = after?.kind === 'dir' ? after.content : undefined
  return oldTree === newTree ? undefined : pairsIn(store, path, oldTree, newTree, isInside ? undefined : scope)
}

/** Whether two entries are the same state. For directories: apart from what lies inside. */
export function sameEntry(a: Entry, b: Entry): boolean {
  if (a.kind !== b.kind) return false
  if (a.kind === 'unknown') return a.reason === b.reason
  return sameContent(a, b) && sameMetadata(a, b) && a.mtimeNs === b.mtimeNs
}

export const sameContent = (a: Entry, b: Entry): boolean =>
  a.kind === b.kind &&
  (a.kind !== 'file' || a.content === b.content) &&
  a.target === b.target &&
  a.rdevMajor === b.rdevMajor &&
  a.rdevMinor === b.rdevMinor

export const sameMetadata = (a: Entry, b: Entry): boolean =>
  a.mode === b.mode &&
  a.uid === b.uid &&
  a.gid === b.gid &&
  a.linkGroup === b.linkGroup &&
  sameBytes(a.xattrs, b.xattrs)

const sameBytes = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && a.equals(b))

/**
 * The changes a person means: what is unknown on either side is left out, unless it is another kind of thing, and directories count only when they are
 * empty or when their own metadata changed.
 */
export function* treeChanges(
  store: Store,
  before: Id | undefined,
  after: Id | undefined,
  scope?: readonly Raw[],
): Generator<Change> {
  let whole: Raw | undefined
  for (const pair of differingEntries(store, before, after, scope)) {
    if (whole !== undefined && !isWithin(pair.path, whole)) whole = undefined
    if (whole === undefined && isWholeDir(pair)) whole = pair.path
    const change = toChange(store, pair)
    if (change) yield whole === undefined ? change : { ...change, within: whole }
  }
}

const isWholeDir = ({ before, after }: EntryPair): boolean =>
  (before === undefined && after?.kind === 'dir') || (after === undefined && before?.kind === 'dir')

function toChange(store: Store, { path, before, after }: EntryPair): Change | undefined {
  if (before?.kind === 'unknown' || after?.kind === 'unknown') return toOtherKind(path, before, after)
  if (!before) return isFullDir(store, after!) ? undefined : { kind: 'added', path, after }
  if (!after) return isFullDir(store, before) ? undefined : { kind: 'deleted', path, before }
  if (before.kind !== after.kind) return { kind: 'type-changed', path, before, after }
  return { kind: sameContent(before, after) ? 'metadata' : 'modified', path, before, after }
}

/** Of what is captured on one side only, it is certain that it changed when the other is something else. */
export function toOtherKind(path: Raw, before: Entry | undefined, after: Entry | undefined): Change | undefined {
  if (!before || !after || before.kind === after.kind) return undefined
  // A socket is nothing that a state can hold.
  if (after.reason === 'socket') return { kind: 'deleted', path, before }
  const [old, now] = [standIn(before, after), standIn(after, before)]
  if (!old || !now) return undefined
  // What is mounted there, or the subvolume in its place, is never what was captured.
  const isOther = old.kind !== now.kind || isMount(before) || isMount(after)
  if (isOther) return { kind: 'type-changed', path, before: old, after: now }
  return isAcrossLimit(before, after) || isAcrossLimit(after, before)
    ? { kind: 'modified', path, before: old, after: now }
    : undefined
}

const isMount = ({ reason }: Entry): boolean => reason === 'mount'

/** Of a limit that was lowered, files remain what they were. */
const isAcrossLimit = ({ kind, size }: Entry, { limit }: Entry): boolean =>
  kind === 'file' && limit !== undefined && size <= limit

/** An uncaptured thing as an entry of its kind; that it is not captured, its `reason` says. Its size is at least that. */
function standIn(entry: Entry, other: Entry): Entry | undefined {
  if (entry.kind !== 'unknown') return entry
  const { name, reason, limit = 0 } = entry
  // Trees do not tell of what kind it is: nearly always a directory, but only a file can be mounted on a file.
  const found = isMount(entry) ? (other.kind === 'file' ? 'file' : 'dir') : entry.found
  if (!found) return undefined
  // Nobody knows its attributes: they are no difference.
  const { mode, uid, gid } = other
  return { ...blankEntry(name, found), mode, uid, gid, reason, size: limit, content: found === 'dir' ? EMPTY_TREE : '' }
}

const isFullDir = (store: Store, entry: Entry): boolean =>
  entry.kind === 'dir' && store.tree(entry.content).some(child => child.kind !== 'unknown')

export function countChanges(changes: Iterable<Change>): ChangeCounts {
  const counts: ChangeCounts = { added: 0, modified: 0, deleted: 0 }
  for (const change of changes) {
    if (change.kind === 'added') counts.added++
    else if (change.kind === 'deleted') counts.deleted++
    else counts.modified++
  }
  return counts
}
