/**
 * What became of a path in runs of which not every change is told, by the snapshots alone: their trace has holes, or sees no changes
 * (`--allow-io-uring`), or ends where we were killed. It may have been somebody else; commands that change files by calls which are not
 * told are the likeliest, and then those that ran at that time.
 */
import type { Raw } from '../model/raw-path.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import type { Execution, SnapshotEvents } from '../model/trace.ts'
import { FOREIGN_CALLS } from '../model/trace.ts'
import type { Context } from './context.ts'
import { namingFirst } from './executions.ts'
import type { WhyCause } from './results.ts'
import { isGoingOn } from './run-state.ts'
import { hasHoles, isBlind, wasKilled } from './touched-paths.ts'
import { executionsOfKilled } from './untold-executions.ts'

interface Span extends SnapshotEvents {
  run: string
  before: Snapshot | undefined
  after: Snapshot
}

/** Newest first, at most `limit`. `mostLikely`: how many commands are named for each. */
export function unseenChanges(ctx: Context, path: Raw, limit: number, mostLikely: number): WhyCause[] {
  const spans = spansWithHoles(ctx)
  if (spans.length === 0) return []
  return ctx.db.events.untold(path, limit).flatMap(event => {
    const span = spans.find(({ startEvent, stopEvent }) => startEvent < event.id && event.id <= stopEvent)
    if (!span) return []
    const { run, before, after } = span
    const noted = ctx.db.trace.noted(run, FOREIGN_CALLS, event.at, mostLikely)
    const likely = noted.length > 0 ? noted : during(ctx, span, path).slice(0, mostLikely)
    // Not by which call.
    const op = event.op === 'write' ? 'changed' : event.op
    return [
      { event: { ...event, run, op }, name: path, outcome: 'changed', execution: undefined, likely, before, after },
    ]
  })
}

/** The innermost first: what started them waits for them, mostly. */
function during(ctx: Context, { run, before, after }: Span, path: Raw): Execution[] {
  const byName = namingFirst(ctx, path)
  return executionsOfKilled(ctx, run)
    .filter(({ at, endedAt = Infinity }) => at <= after.createdAt && endedAt >= (before?.createdAt ?? 0))
    .sort((a, b) => byName(a, b) || b.depth - a.depth || b.at - a.at)
}

/** What the first snapshot of a run found is older than the run; what was kept beside the others is no state that ever was. */
const others: ReadonlySet<Snapshot['type']> = new Set(['pre-run', 'kept'])

/** Which events led to the snapshots of such runs; after one that was cut short also to the next of anybody. */
function spansWithHoles(ctx: Context): Span[] {
  const runs = ctx.db.runs()
  const isCut = (run: Run) => wasKilled(ctx, run.id) && !(run.endedAt === undefined && isGoingOn(ctx, run))
  const cut = runs.filter(isCut)
  const holes = new Set([...cut, ...runs.filter(({ id }) => hasHoles(ctx, id) || isBlind(ctx, id))].map(({ id }) => id))
  if (holes.size === 0) return []
  return ctx.db.snapshots().flatMap(after => {
    const { type, createdAt } = after
    const before = after.parent === undefined ? undefined : ctx.db.snapshot(after.parent)
    const wentOn = ({ startedAt, endedAt = Infinity }: Run) =>
      startedAt <= createdAt && endedAt >= (before?.createdAt ?? 0)
    const run = after.run ?? cut.findLast(wentOn)?.id
    if (run === undefined || others.has(type) || !holes.has(run)) return []
    const events = ctx.db.events.ofSnapshot(after.id)
    return events ? [{ ...events, run, before, after }] : []
  })
}
