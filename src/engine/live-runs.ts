/** The runs of a timeline that go on, and which of them is to be asked for what. */
import type { Run } from '../model/snapshot.ts'
import { findRun } from '../timeline/resolve-ref.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { type Context, ownRun } from './context.ts'
import { announcedSocket } from './control-place.ts'
import { ancestorsOf, startedIn } from './process-tree.ts'
import { isGoingOn, supervisorOf } from './run-state.ts'

export interface LiveRunEntry extends Run {
  /** Undefined: it cannot be asked. */
  socket: string | undefined
  /** Its process, as it is called here. Undefined: it has no number here, and another one may have that which it has. */
  supervisor: number | undefined
}

/** In the order of their beginning. */
export const liveRuns = (ctx: Context): LiveRunEntry[] => liveRunsIn(ctx.db, ctx.timelineDir)

export const liveRunsIn = (db: TimelineDb, timelineDir: string): LiveRunEntry[] =>
  db
    .unendedRuns()
    .filter(run => isGoingOn({ timelineDir }, run))
    .map(run => ({
      ...run,
      socket: announcedSocket({ timelineDir }, run.id),
      supervisor: supervisorOf({ timelineDir }, run),
    }))

/**
 * Who carries out what a command asks for: the run that it belongs to, or that it is about; else the first, which has the
 * role of the writer until it ends. Undo is about the last, as it is the newest thing that was done.
 */
export function whomToAsk(ctx: Context, ref: string | undefined, isUndo: boolean): LiveRunEntry | undefined {
  const runs = liveRuns(ctx)
  if (runs.length === 0) return undefined
  const own = runs.find(({ id }) => id === ownRun(ctx))
  if (own) return own
  const meant = ref === undefined ? undefined : findRun(ctx.db, ref)
  const about = meant && runs.find(({ id }) => id === meant.id)
  if (about) return about
  return isUndo ? (runs.findLast(run => !isInsideOf(run, runs)) ?? runs[0]) : runs[0]
}

/** A run that a process of another one started is a part of that. */
const isInsideOf = ({ id, supervisor }: LiveRunEntry, runs: readonly Run[]): boolean => {
  const outer = supervisor === undefined ? undefined : startedIn(supervisor)
  return outer !== undefined && runs.some(run => run.id === outer && run.id !== id)
}

/**
 * Whether a rollback takes back one run that is over. It goes path by path, and leaves what others did since: those that go on need
 * not be stopped for it, unless they are to be started again.
 */
export function takesBackEnded(ctx: Context, asked: Record<string, unknown>): boolean {
  const ref = asked.run ?? asked.ref
  const meant = asked.restart || typeof ref !== 'string' ? undefined : findRun(ctx.db, ref)
  return meant !== undefined && (meant.endedAt !== undefined || !isGoingOn(ctx, meant))
}

/** Whether `undo` is about a run that goes on, which it stops: not if it is asked from inside of that. */
export function undoStops(ctx: Context): boolean {
  const own = ownRun(ctx) ?? runAbove(ctx)
  const runs = liveRuns(ctx)
  return runs.length > 0 && !runs.some(({ id }) => id === own)
}

/** What takes back the last operation, as a command of a hint: a run that goes on is not meant. */
export const undoCommand = (ctx: Context): string =>
  undoStops(ctx) ? '`savepoint undo --keep-running`' : '`savepoint undo`'

/** A run that whoever started this process belongs to, live or not. */
export const anyRunAbove = (): string | undefined =>
  ancestorsOf(process.pid)
    .map(startedIn)
    .find(run => run !== undefined)

/** The live run that this process belongs to, although its own environment does not say so: that of who started it does. */
export function runAbove(ctx: Context): string | undefined {
  const live = new Set(liveRuns(ctx).map(({ id }) => id))
  if (live.size === 0) return undefined
  return ancestorsOf(process.pid)
    .map(startedIn)
    .find(run => run !== undefined && live.has(run))
}
