/**
 * Runs that went on at the same time as one that is taken back. Both of their pairs of snapshots show what changed while
 * both went on; whose it was, their traces tell, if they are complete.
 */
import type { Id } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'
import { changedPaths, type Span } from '../targets/dir/others-paths.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Context } from './context.ts'
import { editsOf } from './edits-meanwhile.ts'
import { isAlive } from './run-state.ts'
import { isTouchedIn, touchedBy, touchedSoFar } from './touched-paths.ts'

/** Root trees around those that have ended and are not undone, or still go on. `now`: of one that goes on itself. */
export function overlappingRuns(ctx: Context, id: string, now?: { root: Id; isTraced: boolean }): Span[] {
  const operations = new Map(
    ctx.db.operations().flatMap(operation => (operation.kind === 'run' ? [[operation.detail.run, operation]] : [])),
  ) as Map<string, Operation>
  const runs = ctx.db.runs()
  const meant = runs.find(run => run.id === id)
  const own = orderOf(
    ctx,
    meant,
    now === undefined ? undefined : { root: now.root, seq: Infinity, createdAt: ctx.now() },
  )
  if (!own) return []
  const isOwn = now === undefined ? touchedBy(ctx, id) : now.isTraced ? touchedSoFar(ctx, id) : undefined
  const overlapping = runs.flatMap((run): Span[] => {
    const isLive = run.endedAt === undefined && isAlive(run.pid)
    const other = orderOf(ctx, run, isLive ? own.after : undefined)
    if (run.id === id || !other || (!isLive && operations.get(run.id)?.state !== 'done')) return []
    // Snapshots are taken one after another, so that their order tells it, whatever the clock did.
    const isApart = own.after.seq <= other.before.seq || other.after.seq <= own.before.seq
    if (isApart || isInside(operations, run.id, id) || isInside(operations, id, run.id)) return []
    const span = { before: other.before.root, after: other.after.root }
    if (isLive) return [isOwn ? { ...span, ...sharedWithLive(ctx, run.id, span, isOwn) } : span]
    const isOthers = touchedBy(ctx, run.id)
    if (!isOwn && !isOthers) return [span]
    const changed = changedPaths(ctx.store, span.before, span.after)
    const paths = isOthers ? changed.filter(isOthers) : changed
    return [{ ...span, paths, foreign: isOwn ? paths.filter(path => !isOwn(path)) : [] }]
  })
  const { others } = editsOf(operations.get(id))
  if (others.length > 0)
    overlapping.push({ before: own.after.root, after: own.after.root, paths: others, isOutside: true })
  return isOwn ? [...overlapping, ...outsiders(ctx, own, isOwn, overlapping)] : overlapping
}

/** What changed while it went on without any run's doing. Of a repository all goes back: its parts must fit together. */
function outsiders(ctx: Context, own: Order, isOwn: (path: Raw) => boolean, known: Span[]): Span[] {
  const others = new Set(known.flatMap(({ paths = [] }) => paths))
  // Whoever went back to a snapshot meanwhile did that to the work of the run.
  const isRestored = isTouchedIn(ctx.db.events.restoredBetween(own.before.createdAt, own.after.createdAt))
  const isUnknown = known.some(({ paths }) => paths === undefined)
  const paths = Array.from(stateChanges(ctx.store, own.before.root, own.after.root))
    // Under another name of the same file it was the run all the same.
    .filter(({ before, after }) => !before?.linkGroup && !after?.linkGroup)
    .map(({ path }) => path)
    .filter(
      path => path !== '' && !isOwn(path) && !isRestored(path) && !others.has(path) && !/(^|\/)\.git(\/|$)/.test(path),
    )
  if (isUnknown || paths.length === 0) return []
  return [{ before: own.after.root, after: own.after.root, paths, isOutside: true }]
}

/** What the trace of a run that goes on shows until now is not all; what the one that is taken back has not touched is the other's. */
function sharedWithLive(ctx: Context, run: string, { before, after }: Span, isOwn: (path: Raw) => boolean) {
  const isOthers = touchedSoFar(ctx, run)
  const changed = changedPaths(ctx.store, before, after)
  return {
    paths: changed.filter(path => !isOwn(path) || isOthers(path)),
    foreign: changed.filter(path => !isOwn(path)),
  }
}

type Moment = Pick<Snapshot, 'root' | 'seq' | 'createdAt'>
type Order = { before: Moment; after: Moment }

/** `end`: of a run that has none yet. */
function orderOf(ctx: Context, run: Run | undefined, end?: Moment): Order | undefined {
  const [before, after] = [run?.before, run?.after].map(id => (id === undefined ? undefined : ctx.db.snapshot(id)))
  const last = end ?? after
  return before && last && { before, after: last }
}

/** A run that a process of another one started is a part of that: taking the outer back means the inner, too. */
function isInside(operations: Map<string, Operation>, inner: string, outer: string): boolean {
  const seen = new Set<string>()
  for (let at: unknown = inner; typeof at === 'string' && !seen.has(at); at = operations.get(at)?.detail.inside) {
    if (at === outer) return true
    seen.add(at)
  }
  return false
}
