/**
 * A verb that changes something goes to the run that is at work in the timeline, if there is one: it is the writer, and it
 * can stop its processes or hold them still. Where none answers, the command does it itself, under the timeline's lock.
 */
import { type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { nameCommand, quoteWord } from '../model/shell-quote.ts'
import type { Run } from '../model/snapshot.ts'
import { findRun } from '../timeline/resolve-ref.ts'
import { type Context, ownRun } from './context.ts'
import { askRun, type Request, Unreachable } from './control-client.ts'
import { liveRuns, runAbove, takesBackEnded, whomToAsk } from './live-runs.ts'
import { holdingNeighbours, neighbouringRuns, stopNeighbours } from './neighbouring-runs.ts'
import { rollback, scopeOf } from './rollback.ts'
import { isGoingOn } from './run-state.ts'
import type { RestoreOptions } from './savepoint.ts'

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
export async function restoring<T>(ctx: Context, request: Request, direct: () => Promise<T>): Promise<T> {
  const { to, dryRun, ...asked } = request
  if (to !== undefined) return direct()
  const neighbours = ctx.scratch === undefined ? neighbouringRuns(ctx, scopeOfRequest(ctx, request)) : []
  const stops =
    request.op === 'rollback' && !request.keepRunning && !isInside(ctx) && !takesBackEnded(ctx, { ...request })
  if (dryRun) {
    if (isAboutLive(ctx, request)) {
      const work = () => throughLiveRun(ctx, { ...asked, dryRun } as Request, direct)
      return stops ? sayingWhatStops(ctx, neighbours, work) : work()
    }
    return stops ? sayingWhatStops(ctx, [...neighbours, ...liveRuns(ctx)], direct) : direct()
  }
  const work = () => throughLiveRun(ctx, asked as Request, direct)
  if (neighbours.length === 0) return work()
  if (!stops) return holdingNeighbours(ctx, neighbours, work)
  // Nothing is stopped for something that cannot be done.
  const quiet = { ...ctx, notice: () => {}, alarm: () => {}, warn: () => {} }
  const planned = { ...request, dryRun: true }
  await restoring<unknown>(quiet, planned, () => rollback(quiet, request.ref as string, planned as RestoreOptions))
  await stopNeighbours(
    ctx,
    neighbours,
    `rollback ${request.ref} -t ${quoteWord(showPath(rawFromBytes(ctx.targetPath)))}`,
  )
  return work()
}

/** What is asked for from inside of a run of this timeline leaves that one going, and so all others. */
const isInside = (ctx: Context): boolean => ownRun(ctx) !== undefined || runAbove(ctx) !== undefined

const scopeOfRequest = (ctx: Context, request: Request): Raw[] | undefined =>
  request.op === 'rollback' ? scopeOf(ctx, request as RestoreOptions) : undefined

/** A rollback to a snapshot stops all runs, unless it comes from one of them. */
async function sayingWhatStops<T>(ctx: Context, runs: readonly Run[], look: () => Promise<T>): Promise<T> {
  for (const run of runs) ctx.notice(wouldStop(run))
  const result = (await look()) as T & { wouldStop?: string[] }
  return { ...result, wouldStop: [...runs.map(({ id }) => id), ...(result.wouldStop ?? [])] }
}

export const wouldStop = ({ id, command }: Run): string => `${id} (${nameCommand(command)}) would be stopped first`

function isAboutLive(ctx: Context, { op, run, ref }: Request): boolean {
  if (op === 'undo') return true
  const meant = op === 'rollback' ? findRun(ctx.db, (run ?? ref) as string) : undefined
  return meant !== undefined && meant.endedAt === undefined && isGoingOn(ctx, meant)
}
