/**
 * Runs that went on at the same time as one that is taken back. Both of their pairs of snapshots show what changed while
 * both went on; whose it was, their traces tell, if they are complete.
 */
import type { Operation, Run } from '../model/snapshot.ts'
import { changedPaths, type Span } from '../targets/dir/others-paths.ts'
import type { Context } from './context.ts'
import { touchedBy } from './touched-paths.ts'

/** Root trees around those that have ended and are not undone. */
export function overlappingRuns(ctx: Context, id: string): Span[] {
  const operations = new Map(
    ctx.db.operations().flatMap(operation => (operation.kind === 'run' ? [[operation.detail.run, operation]] : [])),
  ) as Map<string, Operation>
  const runs = ctx.db.runs()
  const own = orderOf(
    ctx,
    runs.find(run => run.id === id),
  )
  if (!own) return []
  const isOwn = touchedBy(ctx, id)
  return runs.flatMap(run => {
    const other = orderOf(ctx, run)
    if (run.id === id || !other || operations.get(run.id)?.state !== 'done') return []
    // Snapshots are taken one after another, so that their order tells it, whatever the clock did.
    const isApart = own.after.seq <= other.before.seq || other.after.seq <= own.before.seq
    if (isApart || isInside(operations, run.id, id) || isInside(operations, id, run.id)) return []
    const span = { before: other.before.root, after: other.after.root }
    const isOthers = touchedBy(ctx, run.id)
    if (!isOwn && !isOthers) return [span]
    const changed = changedPaths(ctx.store, span.before, span.after)
    const paths = isOthers ? changed.filter(isOthers) : changed
    return [{ ...span, paths, foreign: isOwn ? paths.filter(path => !isOwn(path)) : [] }]
  })
}

function orderOf(ctx: Context, run: Run | undefined) {
  const [before, after] = [run?.before, run?.after].map(id => (id === undefined ? undefined : ctx.db.snapshot(id)))
  return before && after && { before, after }
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
