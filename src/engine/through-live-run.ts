/**
 * A verb that changes something goes to the run that is at work in the timeline, if there is one: it is the writer, and it
 * can stop its processes or hold them still. Where none answers, the command does it itself, under the timeline's lock.
 */
import { rawFromBytes } from '../model/raw-path.ts'
import { nameCommand } from '../model/shell-quote.ts'
import type { Run } from '../model/snapshot.ts'
import { findRun } from '../timeline/resolve-ref.ts'
import { type Context, ownRun } from './context.ts'
import { askRun, type Request, Unreachable } from './control-client.ts'
import { liveRuns, runAbove, whomToAsk } from './live-runs.ts'
import { isAlive } from './run-state.ts'

/** A run may end while it is asked, and another one be the writer then. */
const MAX_TRIES = 5

/** `direct` does the same without a run. Results are plain data, and cross the socket as they are. */
export async function throughLiveRun<T>(ctx: Context, request: Request, direct: () => Promise<T>): Promise<T> {
  if (ctx.scratch !== undefined) return direct()
  const ref = (request.run ?? request.ref) as string | undefined
  for (let i = 0; i < MAX_TRIES; i++) {
    const run = whomToAsk(ctx, ref, request.op === 'undo')
    if (!run) break
    try {
      return (await askRun(run, { ...request, cwd: rawFromBytes(ctx.cwd), force: ctx.force }, ctx)) as T
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      if (error.isGone) continue
      if (request.op !== 'snapshot' && !request.dryRun)
        ctx.notice(`${run.id} (${nameCommand(run.command)}) goes on: ${error.message}`)
      break
    }
  }
  return direct()
}

/**
 * The same for what changes files. What writes elsewhere needs no run; what only looks needs one that it is about, which
 * alone knows all that it has done until now.
 */
export function restoring<T>(ctx: Context, request: Request, direct: () => Promise<T>): Promise<T> {
  const { to, dryRun, ...asked } = request
  if (to !== undefined) return direct()
  if (!dryRun) return throughLiveRun(ctx, asked as Request, direct)
  if (isAboutLive(ctx, request)) return throughLiveRun(ctx, { ...asked, dryRun } as Request, direct)
  return request.op === 'rollback' && !request.keepRunning ? sayingWhatStops(ctx, direct) : direct()
}

/** A rollback to a snapshot stops all runs, unless it comes from one of them. */
async function sayingWhatStops<T>(ctx: Context, direct: () => Promise<T>): Promise<T> {
  const runs = ownRun(ctx) === undefined && runAbove(ctx) === undefined ? liveRuns(ctx) : []
  for (const run of runs) ctx.notice(wouldStop(run))
  return { ...(await direct()), wouldStop: runs.map(({ id }) => id) }
}

export const wouldStop = ({ id, command }: Run): string => `${id} (${nameCommand(command)}) would be stopped first`

function isAboutLive(ctx: Context, { op, run, ref }: Request): boolean {
  if (op === 'undo') return true
  const meant = op === 'rollback' ? findRun(ctx.db, (run ?? ref) as string) : undefined
  return meant !== undefined && meant.endedAt === undefined && isAlive(meant.pid)
}
