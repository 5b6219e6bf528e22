/**
 * Traces grow with every run. Those of runs that ended long ago, and of which no snapshot is left, nobody can ask anything
 * any more: `gc` removes them. That the run was stays in the list of runs.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenTimeline } from './all-timelines.ts'
import type { Context } from './context.ts'
import { leftSpools } from './left-spools.ts'
import { leftOf } from './left-trace.ts'
import { forgetTraceSummary } from './touched-paths.ts'

const TRACE_KEPT_MS = 30 * 24 * 60 * 60 * 1000

/** Returns of how many runs. Called with the timeline locked. */
export function forgetOldTraces(ctx: Context, { target, db }: OpenTimeline): number {
  const limit = ctx.now() - TRACE_KEPT_MS
  const snapshots = db.snapshots(true)
  const needed = new Set(snapshots.flatMap(({ run }) => run ?? []))
  const kept = new Set(snapshots.map(({ id }) => id))
  const isOver = ({ id, endedAt, before, after }: ReturnType<typeof db.runs>[number]) =>
    endedAt !== undefined && endedAt < limit && !needed.has(id) && ![before, after].some(each => each && kept.has(each))
  // Nobody else has what such a run destroyed.
  const left = new Set(leftSpools(target.directory, db).flatMap(({ run, files }) => (files > 0 ? run.id : [])))
  let forgotten = 0
  const goesOn = (run: string) => leftOf({ timelineDir: target.directory }, run) === 'going'
  for (const run of db.runs().filter(run => isOver(run) && !left.has(run.id) && !goesOn(run.id))) {
    const hadRows = db.transaction(() => {
      forgetTraceSummary(db, run.id)
      return db.trace.forgetRun(run.id) + db.events.forgetRun(run.id) > 0
    })
    const directory = join(target.directory, 'runs', run.id)
    const hadFile = statSync(directory, { throwIfNoEntry: false }) !== undefined
    rmSync(directory, { recursive: true, force: true })
    if (hadRows || hadFile) forgotten++
  }
  db.events.forgetUnneeded(limit)
  return forgotten
}

export interface TraceRoom {
  runs: number
  /** Of all exec.jsonl. */
  fileBytes: number
  /** Of the databases, which have the same as rows, beside the history. */
  databaseBytes: number
}

/** Over all timelines. What cannot be read counts as nothing. */
export function roomOfTraces(home: string): TraceRoom {
  const room: TraceRoom = { runs: 0, fileBytes: 0, databaseBytes: 0 }
  const timelines = join(home, 'timelines')
  for (const timeline of list(timelines)) {
    room.databaseBytes += sizeOf(join(timelines, timeline, 'timeline.sqlite'))
    const runs = join(timelines, timeline, 'runs')
    for (const run of list(runs)) {
      room.runs++
      room.fileBytes += sizeOf(join(runs, run, 'exec.jsonl'))
    }
  }
  return room
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size
  } catch {
    return 0
  }
}
