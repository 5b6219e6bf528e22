/**
 * Files that a run touched, and that somebody else may have edited while it still went on. The trace tells when the run
 * opened a file, not when it wrote: so of what changed later it is certain only sometimes whose the change is.
 */
import type { Change, Entry, Id } from '../model/entry.ts'
import { isGitIndex, isGitInternal, nearAny, parentOf, type Raw } from '../model/raw-path.ts'
import type { Operation, Run } from '../model/snapshot.ts'
import type { Stat } from '../native/addon.ts'
import { sameContent } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import { bootTime } from './boot-time.ts'
import type { Context } from './context.ts'
import { isStaged } from './index-writers.ts'
import type { LastTouches } from './last-touches.ts'
import { withOtherNames } from './other-names.ts'
import { inRepositoriesOf, repositoryOf } from './own-repositories.ts'
import { statLive } from './resolve-path.ts'
import { isBlind, isNode, isTimeOfNode, touchedSoFar } from './touched-paths.ts'

/** A call is told before it is carried out, and most programs write at once what they have opened. */
const WRITE_MS = 300
/** Where it must be certain: a call may take long on a machine that is busy. */
const CERTAIN_MS = 1000
/** What a run did in its last second, and a little more, is not in the trace when its supervisor was killed. */
const UNTOLD_MS = 2000
/** The time of the start is told in full seconds. */
const BOOT_MS = 1000
/** How many files are looked at, and so named at most. */
const MAX_LOOKS = 20_000

interface Edits {
  /** Somebody else made the last change. */
  others: Raw[]
  /** Perhaps. */
  mixed: Raw[]
}

interface LastTouch {
  last: number
  letGoAt: number | undefined
  endedAt: number
  isNode: boolean
}

export interface Touches {
  touches: LastTouches
  /** When all processes of the run had ended. */
  endedAt: number
}

/** The run has put another directory in the place of its target, which may be back by now. */
export interface KnownFormer {
  /** What it did in what is the target at the end, since that came. */
  touches: LastTouches
  came: number
  /** The first one, if it is another. undefined: the run has removed it. */
  tree: Id | undefined
  /** Whether it was there when the run did that: then each path was told. */
  wasIn(path: Raw): boolean
}

/** Root trees before the run, and of the live state. */
export function editsMeanwhile(ctx: Context, states: { before: Id; after: Id }, known: Touches | undefined): Edits {
  const edits: Edits = { others: [], mixed: [] }
  if (!known) return edits
  let looks = 0
  const changes = Array.from(stateChanges(ctx.store, states.before, states.after))
  const lastTouch = lastTouchIn(changes, known.touches)
  const tree = rootTreeOf(ctx.store, states.before)
  const wasEdited = editedBeforeMove(ctx, tree, known.touches)
  const wasMadeByOthers = madeByOthers(ctx, tree, known.touches)
  const isEdited = (path: Raw, after: Entry): boolean =>
    !isNode(after) &&
    (known.touches.isMixed(path) ||
      wasEdited(path, after) ||
      known.touches.wasEditedBeforeMove(path, milliseconds(after.mtimeNs)))
  // Who only looks writes the index anew; what others staged after the run has left the file of another one.
  const isStagedByTwo = (change: Change): boolean => {
    const last = known.touches.of(change.path)
    if (last === undefined || !isStaged(ctx, change)) return false
    const made = milliseconds(statLive(ctx, change.path)?.btimeNs ?? 0n)
    return known.touches.isMixed(change.path) || made > last + CERTAIN_MS
  }
  for (const change of changes) {
    const { path, before, after } = change
    if (isGitInternal(path)) {
      const isMixed = isGitIndex(path) ? isStagedByTwo(change) : known.touches.isMixed(path)
      if (isMixed) edits.mixed.push(repositoryOf(path)!)
      continue
    }
    if (wasPutInto(ctx, path, after, known.touches)) {
      edits.others.push(path)
      continue
    }
    if (!after && before?.kind !== 'dir' && known.touches.wasTakenByOthers(path)) edits.mixed.push(path)
    if (!after || after.kind === 'dir' || after.kind === 'unknown') continue
    const last = lastTouch(path, after)
    const changed = milliseconds(after.mtimeNs)
    const mayBeLater = last !== undefined && (changed > last + WRITE_MS || changed < last - CERTAIN_MS)
    const isLooked = mayBeLater && ++looks <= MAX_LOOKS
    const touch = { last: last!, letGoAt: known.touches.letGoAt(path), endedAt: known.endedAt, isNode: isNode(after) }
    const whose = isLooked ? whoseIs(statLive(ctx, path), touch) : 'own'
    if (whose === 'others') edits.others.push(path)
    // What came between two touches of the run has left no time of its own.
    else if (whose === 'mixed' || isEdited(path, after)) edits.mixed.push(path)
    // Its time may be that of another place; and another name of a file has none.
    else if (!before && last !== undefined && wasMadeByOthers(path)) edits.mixed.push(path)
  }
  edits.mixed.push(...sharedRepositories(changes, known.touches))
  const gone = editsGone(ctx, tree, known.touches)
  const others = new Set(edits.others)
  const named = gone.flatMap(path => (isGitIndex(path) || others.has(path) ? [] : (repositoryOf(path) ?? path)))
  const mixed = new Set([...edits.mixed, ...named])
  return { others: edits.others, mixed: [...mixed].sort() }
}

/** What came and went while the run went on is no change. `tree`: of the state before. */
export const editsGone = (ctx: Context, tree: Id, touches: LastTouches): Raw[] => [
  ...removedOf(ctx, tree, touches),
  ...foundUnsaved(ctx, tree, touches),
]

/** By the name that it had when the run came to it; and by that of something else which comes back there. */
function* removedOf({ store }: Context, tree: Id, touches: LastTouches): Generator<Raw> {
  const isCaptured = (path: Raw) => (entryAt(store, tree, path)?.kind ?? 'unknown') !== 'unknown'
  for (const [last, first] of touches.removedPaths) {
    const isFirst = isCaptured(first) || touches.isFound(first)
    if (isFirst) yield first
    if (!isFirst || isCaptured(last)) yield last
  }
}

/** What is not as in `tree`, and was in no snapshot when the run took or changed it without ever having named it. */
function* foundUnsaved({ store }: Context, tree: Id, touches: LastTouches): Generator<Raw> {
  for (const [path, mtimeNs] of touches.foundUnsaved) {
    const before = entryAt(store, tree, path)
    if (before?.kind !== 'unknown' && before?.mtimeNs !== mtimeNs) yield path
  }
}

/**
 * Of a run whose trace is not complete, because processes of it go on, or calls were lost; or ends too early, because its supervisor
 * was killed. All that has changed until it is closed counts as its. What the
 * trace does not have, or what has changed since it ends, may be the work of its last second, of what was left of it, or of whoever
 * went on by hand. Where not all of its changes are told, what is not counts from its last sign of life on: before that it is
 * as likely its own as anything. Nothing of it was left when the machine was started again: what has changed since is not its own.
 * `former`: it put another directory in the place of the target, and what others did in the old one is known otherwise.
 */
export function editsBesideTrace(
  ctx: Context,
  { id: run, startedAt }: Pick<Run, 'id' | 'startedAt'>,
  states: { before: Id; after: Id },
  former?: KnownFormer,
): Edits {
  const changes = Array.from(stateChanges(ctx.store, states.before, states.after))
  const isTouched = withOtherNames(touchedSoFar(ctx, run), changes)
  const isTold = !isBlind(ctx, run)
  const told = ctx.db.events.lastOf(run)
  const last = isTold ? told : Math.max(told, ctx.db.trace.lastOf(run))
  const booted = bootTime()
  const goneFrom = startedAt < booted && last < booted ? booted + BOOT_MS : Infinity
  let looks = 0
  const isLater = (path: Raw, ms: number): boolean =>
    ++looks <= MAX_LOOKS && milliseconds(statLive(ctx, path)?.ctimeNs ?? 0n) > ms
  const known = isTold ? former : undefined
  const isOwnPart = (path: Raw): boolean => isTouched(path) && isGitInternal(path) && !isGitIndex(path)
  const isUnseen = (path: Raw): boolean => {
    if (isOwnPart(path)) return false
    // What came with the new directory has not changed since; and of what the run touched it is known when it did so last.
    if (known)
      return known.touches.isMixed(path) || isLater(path, Math.max(known.touches.of(path) ?? 0, known.came) + WRITE_MS)
    return isTouched(path) ? isLater(path, last + UNTOLD_MS) : isTold || isLater(path, last)
  }
  const wasGone = (path: Raw): boolean =>
    known !== undefined && (known.tree === undefined ? !known.wasIn(path) : !entryAt(ctx.store, known.tree, path))
  // A removal leaves its time in what is left of the directories above; only of what the trace does not have is that another's.
  const isRemovedLater = ({ path, before }: Change): boolean =>
    before?.kind !== 'dir' &&
    !isGitInternal(path) &&
    !isTouched(path) &&
    (wasGone(path) || isLater(nearestLive(ctx, path), Math.max(last, startedAt) + UNTOLD_MS))
  const removed = changes.filter(change => !change.after && isRemovedLater(change)).map(({ path }) => path)
  const unseen = changes.filter(
    change =>
      change.after &&
      change.after.kind !== 'dir' &&
      (!isGitIndex(change.path) || isStaged(ctx, change)) &&
      !isTimeOfNode(change) &&
      isUnseen(change.path),
  )
  looks = 0
  const others = unseen.flatMap(({ path }) => (isGitInternal(path) || !isLater(path, goneFrom) ? [] : path))
  const isOthers = new Set(others)
  const edited = unseen.flatMap(({ path }) => (isOthers.has(path) ? [] : (repositoryOf(path) ?? path)))
  return { others, mixed: [...new Set([...edited, ...removed])].sort().slice(0, MAX_LOOKS) }
}

function nearestLive(ctx: Context, path: Raw): Raw {
  let above = parentOf(path)
  while (above !== '' && !statLive(ctx, above)) above = parentOf(above)
  return above
}

/** With what is only likely the run's work, directories included. */
export function withLikely(edits: Edits, likely: readonly Raw[]): Edits {
  const others = new Set(edits.others)
  return { ...edits, mixed: [...new Set([...edits.mixed, ...likely.filter(path => !others.has(path))])].sort() }
}

/** Whether it came later into a directory that the run brought in from outside: what came with that has not changed since. */
function wasPutInto(ctx: Context, path: Raw, after: Entry | undefined, touches: LastTouches): boolean {
  const at = after && after.kind !== 'dir' ? touches.broughtAt(path) : undefined
  return at !== undefined && milliseconds(statLive(ctx, path)?.ctimeNs ?? 0n) > at + WRITE_MS
}

/** Of what was not there before the run: it was there when that first named it, or it never did. */
function madeByOthers({ store }: Context, tree: Id, touches: LastTouches) {
  return (path: Raw): boolean => {
    const first = touches.foundAs(path)
    return first === undefined ? touches.of(path) === undefined : entryAt(store, tree, first) === undefined
  }
}

/** In which the run has worked, and somebody else: they go back as a whole. */
function sharedRepositories(changes: readonly Change[], touches: LastTouches): Set<Raw> {
  const isOwn = (path: Raw) => touches.of(path) !== undefined
  const isInOwn = inRepositoriesOf(changes, isOwn)
  const isOthers = inRepositoriesOf(changes, path => isInOwn(path) && !isOwn(path))
  return new Set(changes.flatMap(({ path }) => (isOthers(path) ? repositoryOf(path)! : [])))
}

/** The last change of a file that the run last touched at `last`, and that none of its processes could write from `letGoAt` on. */
function whoseIs(stat: Stat | undefined, { last, letGoAt, endedAt, isNode }: LastTouch): 'own' | 'others' | 'mixed' {
  // The time of the content can be set to anything, that of the change cannot.
  // It moves also when another name comes or goes.
  const isLinked = stat !== undefined && stat.nlink > 1 && milliseconds(stat.mtimeNs) <= last
  const changedAt = stat && !isLinked ? milliseconds(stat.ctimeNs) : 0
  if (changedAt <= last + WRITE_MS) return 'own'
  // To come to a new file, the run would have had to open or rename it by this name.
  const isNew = milliseconds(stat!.btimeNs) > last + CERTAIN_MS
  // What goes through a pipe moves both times.
  if (isNode && !isNew) return 'own'
  // By another name it may be held still. With older times it may have got another mode only.
  const isFree = stat!.nlink === 1 && letGoAt !== undefined && milliseconds(stat!.mtimeNs) > letGoAt
  return isNew || isFree || changedAt > endedAt ? 'others' : 'mixed'
}

/** Of a file with several names, by any of them. */
function lastTouchIn(changes: readonly Change[], touches: LastTouches) {
  const linked = new Map<bigint, number>()
  for (const { path, after } of changes) {
    const last = after?.linkGroup ? touches.of(path) : undefined
    if (last !== undefined) linked.set(after!.linkGroup, Math.max(last, linked.get(after!.linkGroup) ?? 0))
  }
  return (path: Raw, { linkGroup }: Entry): number | undefined => (linkGroup ? linked.get(linkGroup) : touches.of(path))
}

/** Whether a file that the run has only moved, with the directory that it is in, is another than in `tree`. */
function editedBeforeMove({ store }: Context, tree: Id, touches: LastTouches) {
  return (path: Raw, after: Entry): boolean => {
    const first = after.linkGroup ? undefined : touches.movedOnlyWithin(path)
    if (first === undefined) return false
    const before = entryAt(store, tree, first)
    return before !== undefined && before.kind !== 'unknown' && !sameContent(before, after)
  }
}

const milliseconds = (ns: bigint): number => Number(ns / 1_000_000n)

/** What `operation` records of it. */
export const editsDetail = ({ others, mixed }: Edits): Record<string, unknown> => ({
  ...(others.length > 0 && { others }),
  ...(mixed.length > 0 && { mixed }),
})

export const editsOf = (operation: Operation | undefined): Edits => ({
  others: (operation?.detail.others as Raw[] | undefined) ?? [],
  mixed: (operation?.detail.mixed as Raw[] | undefined) ?? [],
})

/** Which of `mixed` a plan overwrites or removes, and which are gone, and do not come back by it. */
export function mixedIn(
  { store }: Context,
  actions: readonly { path: Raw }[],
  trees: { wanted: Id; now: Id },
  mixed: readonly Raw[],
): Raw[] {
  if (mixed.length === 0) return []
  const isConcerned = nearAny(actions.map(({ path }) => path))
  const isGone = (path: Raw) => [trees.wanted, trees.now].every(tree => entryAt(store, tree, path) === undefined)
  return mixed.filter(path => isConcerned(path) || isGone(path))
}
