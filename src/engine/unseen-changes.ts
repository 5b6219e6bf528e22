/**
 * What became of a path in runs whose trace has holes, by the snapshots alone. It may have been somebody else; commands that
 * change files by calls which are not told are the likeliest.
 */
import type { Raw } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { SnapshotEvents } from '../model/trace.ts'
import { FOREIGN_CALLS } from '../model/trace.ts'
import type { Context } from './context.ts'
import type { WhyCause } from './results.ts'
import { hasHoles } from './touched-paths.ts'

interface Span extends SnapshotEvents {
  run: string
  after: Snapshot
}

/** Newest first, at most `limit`. `mostLikely`: how many commands are named for each. */
export function unseenChanges(ctx: Context, path: Raw, limit: number, mostLikely: number): WhyCause[] {
  const spans = spansWithHoles(ctx)
  if (spans.length === 0) return []
  return ctx.db.events.untold(path, limit).flatMap(event => {
    const span = spans.find(({ startEvent, stopEvent }) => startEvent < event.id && event.id <= stopEvent)
    if (!span) return []
    const { run, after } = span
    const before = after.parent === undefined ? undefined : ctx.db.snapshot(after.parent)
    const likely = ctx.db.trace.noted(run, FOREIGN_CALLS, event.at, mostLikely)
    return [{ event: { ...event, run }, name: path, outcome: 'changed', execution: undefined, likely, before, after }]
  })
}

/** What the first snapshot of a run found is older than the run; what was kept beside the others is no state that ever was. */
const others: ReadonlySet<Snapshot['type']> = new Set(['pre-run', 'kept'])

/** Which events led to the snapshots of such runs. */
function spansWithHoles(ctx: Context): Span[] {
  const holes = new Set(ctx.db.runs().flatMap(({ id }) => (hasHoles(ctx, id) ? [id] : [])))
  return ctx.db.snapshots().flatMap(after => {
    const { run, type } = after
    if (run === undefined || others.has(type) || !holes.has(run)) return []
    const events = ctx.db.events.ofSnapshot(after.id)
    return events ? [{ ...events, run, after }] : []
  })
}
