/**
 * Tells what happens in a timeline as it happens, whoever does it: every process that works on it writes to its database, so
 * a change of the files of that is the sign to look for what is new. A look from time to time covers a filesystem that gives
 * no signs.
 */
import { watch } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from './context.ts'
import { Executions } from './executions.ts'
import type { TimelineEvent } from './results.ts'
import { asShown } from './shown-snapshot.ts'

/** What comes at once is told at once. */
const GATHER_MS = 50
const LOOK_MS = 2000
/** File events beyond this, of one look, are only counted. */
const MAX_FILE_EVENTS = 1000

/** Returns when `signal` is aborted. */
export async function subscribe(
  ctx: Context,
  onEvent: (event: TimelineEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return
  const ear = new Ear(ctx)
  let sign = Promise.withResolvers<void>()
  const wake = () => sign.resolve()
  const watcher = watch(ctx.timelineDir, wake)
  watcher.on('error', wake)
  signal.addEventListener('abort', wake)
  // From here on: what happened before the watch began is known, or is found by the first look.
  onEvent({ type: 'following' })
  try {
    while (!signal.aborted) {
      for (const event of ear.news()) onEvent(event)
      const timer = setTimeout(wake, LOOK_MS)
      await sign.promise
      clearTimeout(timer)
      sign = Promise.withResolvers<void>()
      if (!signal.aborted) await pause(GATHER_MS)
    }
  } finally {
    watcher.close()
    signal.removeEventListener('abort', wake)
  }
}

/** What was heard of until now. */
class Ear {
  private readonly ctx: Context
  private seq = 0
  private head: string | undefined
  private fileEvent = 0
  /** Whether it has ended. */
  private readonly runs = new Map<string, boolean>()
  private readonly operations = new Map<string, string>()

  constructor(ctx: Context) {
    this.ctx = ctx
    ctx.db.atOneMoment(() => this.hear())
  }

  private hear(): void {
    const { db } = this.ctx
    this.seq = Math.max(0, ...db.snapshots(true).map(({ seq }) => seq))
    this.head = db.head
    this.fileEvent = db.events.newest()
    for (const { id, endedAt } of db.runs()) this.runs.set(id, endedAt !== undefined)
    for (const { id, state } of db.operations()) this.operations.set(id, state)
  }

  /**
   * In the order in which they are read: beginnings, files, snapshots, ends. All of one moment: else what is written between
   * two of these looks would be told before what it follows from, HEAD before its snapshot, say.
   */
  news(): TimelineEvent[] {
    return this.ctx.db.atOneMoment(() => [
      ...this.begun(),
      ...this.files(),
      ...this.snapshots(),
      ...this.ended(),
      ...this.done(),
      ...this.moved(),
    ])
  }

  private begun(): TimelineEvent[] {
    const fresh = this.ctx.db.runs().filter(({ id }) => !this.runs.has(id))
    for (const { id } of fresh) this.runs.set(id, false)
    return fresh.map(run => ({ type: 'run-started', run }))
  }

  private ended(): TimelineEvent[] {
    const over = this.ctx.db.runs().filter(({ id, endedAt }) => endedAt !== undefined && this.runs.get(id) === false)
    for (const { id } of over) this.runs.set(id, true)
    return over.map(run => ({ type: 'run-ended', run }))
  }

  private files(): TimelineEvent[] {
    const { db } = this.ctx
    const newest = db.events.newest()
    const count = newest - this.fileEvent
    if (count <= 0) return []
    const fresh = db.events
      .list({ run: undefined, limit: Math.min(count, MAX_FILE_EVENTS) })
      .filter(({ id }) => id > this.fileEvent && id <= newest)
      .reverse()
    this.fileEvent = newest
    const executions = new Executions(this.ctx)
    const lost: TimelineEvent[] = count > MAX_FILE_EVENTS ? [{ type: 'lost', count: count - MAX_FILE_EVENTS }] : []
    return [...lost, ...fresh.map(event => ({ type: 'file' as const, event, execution: executions.of(event) }))]
  }

  private snapshots(): TimelineEvent[] {
    const fresh = this.ctx.db.snapshots().filter(({ seq }) => seq > this.seq)
    this.seq = Math.max(this.seq, ...fresh.map(({ seq }) => seq))
    return fresh.map(snapshot => ({ type: 'snapshot', snapshot: asShown(this.ctx, snapshot) }))
  }

  private done(): TimelineEvent[] {
    const fresh = this.ctx.db.operations().filter(({ id, state }) => this.operations.get(id) !== state)
    for (const { id, state } of fresh) this.operations.set(id, state)
    return fresh.map(operation => ({ type: 'operation', operation }))
  }

  private moved(): TimelineEvent[] {
    const { head } = this.ctx.db
    if (head === this.head) return []
    this.head = head
    return [{ type: 'head', head }]
  }
}
