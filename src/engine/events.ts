/** `events`: what happened to files, and the snapshots that it led to, as one list. */
import type { FileEvent, SnapshotEvents } from '../model/trace.ts'
import type { Context } from './context.ts'
import { Executions } from './executions.ts'
import type { EventsResult, ListedEvent } from './results.ts'
import { requireRun } from './rollback.ts'

const LIMIT = 100

/** Newest first. Of a run: what it did, and the snapshots of it. */
export function events(ctx: Context, options: { run?: string; limit?: number } = {}): EventsResult {
  const limit = options.limit ?? LIMIT
  const run = options.run === undefined ? undefined : requireRun(ctx, options.run).id
  const files = ctx.db.events.list({ run, limit })
  const snapshots = new Map(ctx.db.snapshots(true).map(snapshot => [snapshot.id, snapshot]))
  const oldest = files.length < limit ? 0 : files.at(-1)!.id
  const taken = ctx.db.events
    .snapshots()
    .filter(({ snapshot, stopEvent }) => stopEvent >= oldest && (!run || snapshots.get(snapshot)?.run === run))
  const executions = new Executions(ctx)
  const listed: ListedEvent[] = merge(files, taken).map(item =>
    'snapshot' in item
      ? { type: 'snapshot', events: item, snapshot: snapshots.get(item.snapshot) }
      : { type: 'file', event: item, execution: executions.of(item) },
  )
  return { run, events: listed.slice(0, limit) }
}

/** A snapshot comes after the last event that led to it. Both lists have their newest first. */
function merge(files: FileEvent[], taken: SnapshotEvents[]): (FileEvent | SnapshotEvents)[] {
  const at = (item: FileEvent | SnapshotEvents) => ('snapshot' in item ? item.stopEvent + 0.5 : item.id)
  return [...files, ...taken].sort((a, b) => at(b) - at(a))
}
