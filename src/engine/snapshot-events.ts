/**
 * Which events led to a snapshot: those since the one before. What differs from the parent although no event tells of it
 * (done outside of a run, or through a descriptor that was open before) gets an event of its own, without a process.
 */
import type { Change, ChangeCounts } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { countChanges } from '../store/tree-diff.ts'
import type { NewEvent } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { isTouchedIn } from './touched-paths.ts'

/** Further differences are only counted; a directory that came or went as a whole is one. */
const MAX_UNTOLD = 10_000

/** What was found out about the differences of a state from its parent, in one pass over them. */
export interface Differences {
  counts: ChangeCounts
  events: NewEvent[]
  unlisted: number
}

/** `from`: the events after this one may tell of a change. */
export function differencesOf(ctx: Context, changes: Iterable<Change>, from: number): Differences {
  const isTold = isTouchedIn(ctx.db.events.touchedSince(from))
  const untold = new Map<Raw, NewEvent>()
  let unlisted = 0
  const counts = countChanges(
    each(changes, change => {
      const path = change.within ?? change.path
      if (untold.has(path) || isTold(change.path)) return
      if (untold.size < MAX_UNTOLD) untold.set(path, eventOf(change, ctx.now()))
      else unlisted++
    }),
  )
  return { counts, events: [...untold.values()], unlisted }
}

/** Where its events begin. In a timeline that is older than this table, nothing is known of what came before. */
export const startOf = (ctx: Context, capturedFrom: number): number => ctx.db.events.nextStart ?? capturedFrom

/**
 * `capturedFrom`: the newest event when its capture began. `add` adds the row: what differs comes before it in the log. In the
 * caller's transaction.
 */
export function withSnapshotEvents(
  ctx: Context,
  { counts, events, unlisted }: Differences,
  capturedFrom: number,
  add: () => Snapshot,
): Snapshot {
  const startEvent = startOf(ctx, capturedFrom)
  const isQuiet = ctx.db.events.newest() === capturedFrom
  ctx.db.events.add(events)
  const snapshot = add()
  ctx.db.events.addSnapshot({
    snapshot: snapshot.id,
    origin: snapshot.type,
    files: counts.added + counts.modified + counts.deleted,
    startEvent,
    stopEvent: ctx.db.events.newest(),
    unlisted,
  })
  // What came in meanwhile may have come too late for this one: it counts for the next one as well.
  ctx.db.events.setNextStart(isQuiet ? ctx.db.events.newest() : capturedFrom)
  return snapshot
}

function* each<T>(items: Iterable<T>, look: (item: T) => void): Generator<T> {
  for (const item of items) {
    look(item)
    yield item
  }
}

const calls = { added: 'create', deleted: 'delete', metadata: 'attributes' } as const

function eventOf({ kind, path, within, before, after }: Change, at: number): NewEvent {
  return {
    run: '',
    at,
    op: kind in calls ? calls[kind as keyof typeof calls] : 'write',
    path: within ?? path,
    to: undefined,
    exec: 0,
    pid: 0,
    existed: before !== undefined,
    directory: within !== undefined || (after ?? before)?.kind === 'dir',
    size: within === undefined && after?.kind === 'file' ? after.size : undefined,
  }
}
