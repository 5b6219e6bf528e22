/**
 * `events`: everything that happened in the timeline as one ordered log: what happened to files, snapshots, operations, runs
 * and, when they are asked for, commands. The order is that in which it was written down, and does not depend on the clock.
 */
import { SavepointError } from '../errors/errors.ts'
import { nearest } from '../model/suggest.ts'
import { type LogEventKind, logEventKinds } from '../model/trace.ts'
import { comparePositions, type LogRow, type Position, type Reading } from '../timeline/log-rows.ts'
import type { Context } from './context.ts'
import { positionOf } from './event-cursor.ts'
import { parseSince } from './events-since.ts'
import type { EventsResult, LogEvent } from './results.ts'
import { requireRun } from './rollback.ts'
import type { EventsOptions } from './savepoint.ts'
import { type Item, ShownEvents } from './shown-events.ts'

const LIMIT = 100
/** What is written down a little later than it happened may stand behind what is younger. */
const LATE_MS = 10_000

/** Commands are many, and `trace` shows them better. */
const usualKinds: readonly LogEventKind[] = logEventKinds.filter(kind => kind !== 'command')

/** Newest first, unless `reverse`. Pages go on where the one before ended, whatever has come or gone meanwhile. */
export const events = (ctx: Context, options: EventsOptions = {}): EventsResult =>
  ctx.db.atOneMoment(() => read(ctx, options))

function read(ctx: Context, options: EventsOptions): EventsResult {
  const limit = options.limit ?? LIMIT
  const { log } = ctx.db
  const direction = options.reverse ? 'forward' : 'backward'
  const since = options.since === undefined ? undefined : parseSince(ctx, options.since)
  const oldest = since && 'at' in since ? since.at : Number.NEGATIVE_INFINITY
  const run = options.run === undefined ? undefined : requireRun(ctx, options.run).id
  const cursor = options.cursor === undefined ? undefined : positionOf(log.id, options.cursor)
  const edge = since && ('after' in since ? since.after : undefined)
  const begin =
    direction === 'forward'
      ? later(cursor, edge ?? (cursor || !since ? undefined : log.lastOlder(oldest - LATE_MS)))
      : cursor
  const shown = new ShownEvents(ctx)
  const found: LogEvent[] = []
  for (const item of merged(ctx, chosenKinds(options.kind), { run, direction, from: begin })) {
    const { position, at } = item
    if (direction === 'backward' && ((edge && comparePositions(position, edge) <= 0) || at < oldest - LATE_MS)) break
    const event = at < oldest ? undefined : shown.event(item)
    if (!event) continue
    // One more than was asked for tells that there is more.
    if (found.length === limit) return { events: found, next: found.at(-1)!.cursor }
    found.push(event)
  }
  return { events: found, next: undefined }
}

function later(a: Position | undefined, b: Position | undefined): Position | undefined {
  if (!a || !b) return a ?? b
  return comparePositions(a, b) < 0 ? b : a
}

export function chosenKinds(kinds: readonly string[] | undefined): readonly LogEventKind[] {
  if (kinds === undefined || kinds.length === 0) return usualKinds
  const wrong = kinds.find(kind => kind !== 'all' && !logEventKinds.includes(kind as LogEventKind))
  if (wrong !== undefined) {
    const meant = nearest(wrong, [...logEventKinds, 'all'])
    throw new SavepointError('usage', `There is no kind of events "${wrong}"`, {
      hint: meant ? `Did you mean ${meant}?` : `There are: ${logEventKinds.join(', ')}, all`,
    })
  }
  return kinds.includes('all') ? logEventKinds : logEventKinds.filter(kind => kinds.includes(kind))
}

function* merged(ctx: Context, kinds: readonly LogEventKind[], reading: Reading): Generator<Item> {
  const sources = kinds.map(kind => (kind === 'file' ? files(ctx, reading) : rows(ctx, kind, reading)))
  const sign = reading.direction === 'forward' ? 1 : -1
  try {
    const heads = sources.map(source => source.next().value as Item | undefined)
    for (;;) {
      let first = -1
      for (const [i, head] of heads.entries())
        if (head && (first < 0 || sign * comparePositions(head.position, heads[first]!.position) < 0)) first = i
      if (first < 0) return
      yield heads[first]!
      heads[first] = sources[first]!.next().value as Item | undefined
    }
  } finally {
    // A reading that is not brought to its end would keep the database from tidying up.
    for (const source of sources) source.return(undefined)
  }
}

function* files(ctx: Context, reading: Reading): Generator<Item, undefined> {
  for (const file of ctx.db.events.read(reading)) yield { position: { file: file.id, seq: 0 }, at: file.at, file }
}

function* rows(ctx: Context, kind: LogRow['kind'], reading: Reading): Generator<Item, undefined> {
  for (const row of ctx.db.log.read(kind, reading)) yield { position: row.position, at: row.at, row }
}
