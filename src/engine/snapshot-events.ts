/**
 * Which events led to a snapshot: those since the one before. What differs from the parent although no event tells of it
 * (done outside of a run, or through a descriptor that was open before) gets an event of its own, without a process.
 */
import type { Change, ChangeCounts } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { countChanges } from '../store/tree-diff.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { NewEvent } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { readAncestor } from './shown-snapshot.ts'
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
  // Of one that is read late, the next one may be there already.
  const known = Math.max(capturedFrom, startEvent)
  const isQuiet = ctx.db.events.newest() === known
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
  ctx.db.events.setNextStart(isQuiet ? ctx.db.events.newest() : known)
  return snapshot
}

/**
 * Of one that was compared with an older state, because its parent was not read then: what the parent turns out to have is not its
 * own, and what came since may be told as something else. May be called again. In the caller's transaction.
 */
export function retellEvents(ctx: Context, id: string): void {
  const { db, store } = ctx
  const [snapshot, range] = [db.snapshot(id)!, db.events.ofSnapshot(id)]
  if (snapshot.root === UNREAD_ROOT || !range) return
  const old = db.native.untold.ofSnapshot(id)
  const isTold = isTouchedIn(db.events.touchedSince(range.startEvent, range.stopEvent))
  const room = Math.max(0, MAX_UNTOLD - old.size)
  const [kept, added] = [new Set<Raw>(), new Map<Raw, NewEvent>()]
  let unlisted = 0
  for (const change of stateChanges(store, readAncestor(ctx, snapshot.parent)?.root, snapshot.root)) {
    const event = eventOf(change, snapshot.createdAt)
    const known = old.get(event.path!)
    if (known !== undefined) {
      db.native.untold.set(known, event)
      old.delete(event.path!)
      kept.add(event.path!)
    } else if (kept.has(event.path!) || added.has(event.path!) || isTold(change.path)) continue
    else if (added.size < room) added.set(event.path!, event)
    else unlisted++
  }
  const isQuiet = db.events.nextStart === db.events.newest()
  db.native.untold.forget(old.values())
  db.events.add(added.values())
  if (isQuiet) db.events.setNextStart(db.events.newest())
  db.native.untold.setUnlisted(id, unlisted)
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
