/**
 * Runs that went on at the same time as one that is taken back. Both of their pairs of snapshots show what changed while
 * both went on; whose it was, their traces tell, if they are complete.
 */
import type { Change, Id } from '../model/entry.ts'
import { isGitIndex, type Raw } from '../model/raw-path.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'
import type { Span } from '../targets/dir/others-paths.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Context } from './context.ts'
import { editsOf } from './edits-meanwhile.ts'
import { isStaged } from './index-writers.ts'
import type { NamesOverTime } from './names-over-time.ts'
import { recordedRoot, runOperations, undoneBy, withOuterRuns } from './operations.ts'
import { withOtherNames } from './other-names.ts'
import { inRepositoriesOf } from './own-repositories.ts'
import { isGoingOn } from './run-state.ts'
import { isBlind, isUntold, namesIn, touchedBy, touchedSoFar, touchedUntilKilled } from './touched-paths.ts'

/** What `operation` records when somebody else put another directory in the place of the target while the run went on. */
export const replacedByOthers = { replaced_by_others: true }

/** Of a run that goes on. */
interface Now {
  root: Id
  isTraced: boolean
  /** What others have edited meanwhile. */
  others: readonly Raw[]
}

/**
 * Root trees around those that have ended, or still go on; of one that is undone, what is known to be its alone. `now`: of
 * one that goes on itself.
 */
export function overlappingRuns(ctx: Context, id: string, now?: Now): Span[] {
  const operations = runOperations(ctx.db.operations())
  const runs = ctx.db.runs()
  const meant = runs.find(run => run.id === id)
  const own = orderOf(ctx, meant, now === undefined ? undefined : { root: now.root, seq: Infinity })
  if (!own) return []
  // What is there then is theirs; the work of the run is where they moved it.
  if (operations.get(id)?.detail.replaced_by_others)
    return [{ before: own.before.root, after: own.after.root, isOutside: true }]
  const isTraced = now === undefined ? touchedBy(ctx, id) : now.isTraced ? touchedSoFar(ctx, id) : undefined
  const changes = isTraced ? changesIn(ctx, own.before.root, own.after.root) : []
  const isOwn = isTraced && withOtherNames(isTraced, changes)
  const ended = now === undefined ? meant?.endedAt : undefined
  const names = namesIn(ctx, id, ended)
  const meanwhile = { since: meant!.startedAt, until: ended ?? Infinity }
  const overlapping = runs.flatMap((run): Span[] => {
    const isLive = run.endedAt === undefined && isGoingOn(ctx, run)
    const other = orderOf(ctx, run, isLive ? own.after : undefined)
    const state = isLive ? 'done' : operations.get(run.id)?.state
    if (run.id === id || !other || (state !== 'done' && state !== 'undone')) return []
    // Snapshots are taken one after another, so that their order tells it, whatever the clock did.
    const isApart = own.after.seq <= other.before.seq || other.after.seq <= own.before.seq
    if (isApart || isInside(operations, run.id, id) || isInside(operations, id, run.id)) return []
    const span = { before: other.before.root, after: other.after.root }
    if (isLive) return [isOwn ? { ...span, ...sharedWithLive(ctx, run.id, span, isOwn, meanwhile) } : span]
    const isOthersHere = touchedBy(ctx, run.id, meanwhile)
    const alone = isOwn && isOthersHere ? onlyTheirs(changes, isOthersHere, isOwn) : []
    if (state === 'undone')
      return [{ ...span, paths: alone, foreign: alone, takenBack: stepBack(ctx, operations.get(run.id)!) }]
    const isOthers = touchedBy(ctx, run.id, { since: meanwhile.since })
    if (!isOwn && !isOthers) return [span]
    const theirs = changesIn(ctx, span.before, span.after)
    const changed = theirs.map(({ path }) => path)
    // By the names that were when the other ended, or when the one did.
    const wasOwn = touchedSoFar(ctx, id, { until: run.endedAt })
    const isShared = isOwn && withOtherNames(path => isOwn(path) || wasOwn(path), theirs)
    // What is told of the one weighs more than what may not have been told of the other.
    const isPartlyTold = isShared && touchedUntilKilled(ctx, run.id, { since: meanwhile.since })
    const isOf = isOthers ?? (isPartlyTold && (path => !isShared(path) || isPartlyTold(path)))
    const paths = isOf ? changed.filter(withOtherNames(isOf, theirs)) : changed
    const foreign = isShared ? paths.filter(path => !isShared(path)) : []
    const moved = movedAmong(changes, paths, names, isOthersHere)
    const movedByOthers = isOwn ? moved.filter(path => !isOwn(path)) : []
    return [{ ...span, paths: [...paths, ...alone, ...moved], foreign: [...foreign, ...alone, ...movedByOthers] }]
  })
  const { others } = now ?? editsOf(operations.get(id))
  if (others.length > 0)
    overlapping.push({ before: own.after.root, after: own.after.root, paths: others, isOutside: true })
  return isOwn ? [...overlapping, ...outsiders(ctx, own, changes, isOwn, overlapping)] : overlapping
}

function stepBack(ctx: Context, operation: Operation): Span['takenBack'] {
  const { detail } = undoneBy(ctx.db, operation) ?? {}
  const [before, after] = [detail && recordedRoot(detail, 'before_root'), detail && recordedRoot(detail, 'after_root')]
  return before !== undefined && after !== undefined ? { before, after } : undefined
}

/**
 * What changed while it went on without any run's doing. Of a repository in which it has worked itself all goes back: the
 * parts must fit together.
 */
function outsiders(
  ctx: Context,
  own: Order,
  changes: readonly Change[],
  isOwn: (path: Raw) => boolean,
  known: Span[],
): Span[] {
  if (known.some(({ paths }) => paths === undefined)) return []
  const others = new Set(known.flatMap(({ paths = [] }) => paths))
  const isInOwnRepository = inRepositoriesOf(changes, isOwn)
  const goesBack = withOtherNames(path => isOwn(path) || isInOwnRepository(path), changes)
  const paths = changes
    .filter(change => !isUntold(change) && (!isGitIndex(change.path) || isStaged(ctx, change)))
    .map(({ path }) => path)
    .filter(path => path !== '' && !others.has(path) && !goesBack(path))
  return paths.length === 0 ? [] : [{ before: own.after.root, after: own.after.root, paths, isOutside: true }]
}

const changesIn = (ctx: Context, before: Id, after: Id): Change[] => Array.from(stateChanges(ctx.store, before, after))

/**
 * Of what changed while the one that is taken back went on: also what the other had made before, and removed again, which its
 * own snapshots do not show.
 */
function onlyTheirs(
  changes: readonly Change[],
  isOthers: (path: Raw) => boolean,
  isOwn: (path: Raw) => boolean,
): Raw[] {
  const isTheirs = withOtherNames(isOthers, changes)
  const isInOwnRepository = inRepositoriesOf(changes, isOwn)
  return changes.map(({ path }) => path).filter(path => isTheirs(path) && !isOwn(path) && !isInOwnRepository(path))
}

/** What the trace of a run that goes on shows until now is not all; what the one that is taken back has not touched is the other's. */
function sharedWithLive(
  ctx: Context,
  run: string,
  { before, after }: Span,
  isOwn: (path: Raw) => boolean,
  meanwhile: { since: number; until: number },
) {
  const changes = changesIn(ctx, before, after)
  const isOthers = isBlind(ctx, run) ? () => true : withOtherNames(touchedSoFar(ctx, run, meanwhile), changes)
  const isShared = withOtherNames(isOwn, changes)
  const changed = changes.map(({ path }) => path)
  return {
    paths: changed.filter(path => !isShared(path) || isOthers(path)),
    foreign: changed.filter(path => !isShared(path)),
  }
}

/**
 * What of `changes` had one of these names before. To remove it by the one, where it is left alone by the other, would leave
 * nothing of it. `isOthers`: by the names of now.
 */
function movedAmong(
  changes: readonly Change[],
  paths: readonly Raw[],
  names: NamesOverTime,
  isOthers: ((path: Raw) => boolean) | undefined,
): Raw[] {
  const known = new Set(paths)
  const isMeant = (path: Raw): boolean =>
    known.has(names.firstOf(path) ?? path) ||
    (names.namesOf(path).some(({ name }) => known.has(name)) && (isOthers?.(path) ?? true))
  return changes.flatMap(({ path }) => (!known.has(path) && isMeant(path) ? path : []))
}

type Moment = Pick<Snapshot, 'root' | 'seq'>
type Order = { before: Moment; after: Moment }

/** `end`: of a run that has none yet. */
function orderOf(ctx: Context, run: Run | undefined, end?: Moment): Order | undefined {
  const [before, after] = [run?.before, run?.after].map(id => (id === undefined ? undefined : ctx.db.snapshot(id)))
  const last = end ?? after
  return before && last && { before, after: last }
}

/** A run that a process of another one started is a part of that: taking the outer back means the inner, too. */
const isInside = (operations: ReadonlyMap<unknown, Operation>, inner: string, outer: string): boolean =>
  [...withOuterRuns(operations, inner)].includes(outer)
