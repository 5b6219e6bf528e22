/** Runs whose end is not captured, because Savepoint was killed or found no room: the next command that changes something does it. */
import { errnoOf, SavepointError, wordsOf } from '../errors/errors.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { isUnprotected, nextToUndo, reachableOperations } from './operations.ts'
import { closeKilledRuns, finishLocked } from './run-end.ts'
import { isInterrupted } from './run-state.ts'

export const hasOpenEnds = (ctx: Context): boolean =>
  ctx.db.unendedRuns().some(run => isInterrupted(ctx, run)) || uncapturedEnd(ctx) !== undefined

/** Called under the timeline's lock. */
export async function closeOpenEnds(ctx: Context): Promise<void> {
  await closeKilledRuns(ctx)
  await endUncaptured(ctx)
}

/**
 * What is there now counts as the end of the run that `undo` comes to first, if that was not captured. Where it still cannot be,
 * that is said, and left to the next command. Called under the timeline's lock.
 */
export async function endUncaptured(ctx: Context): Promise<void> {
  const found = ctx.unwritable ? undefined : uncapturedEnd(ctx)
  if (!found) return
  const { run, before, operation } = found
  const { exitCode, signal } = run
  try {
    await finishLocked(ctx, run, before, { exitCode, signal }, { noted: operation.id })
  } catch (error) {
    const isOurs = error instanceof SavepointError && error.code !== 'cancelled' && error.code !== 'bug'
    if (!isOurs && !errnoOf(error)) throw error
    ctx.notice(`the state after ${run.id} can still not be captured: ${wordsOf(error)}`)
    return
  }
  const instead = 'what is there now counts as its end, with what others have changed since'
  ctx.notice(`${run.id}: the state after it was not captured when it ended: ${instead}`)
}

/** Nothing that was done since stands between it and now, and the state before it is there. */
function uncapturedEnd({ db }: Context): { run: Run; before: Snapshot; operation: Operation } | undefined {
  const open = db.runs().filter(run => run.endedAt !== undefined && run.before !== undefined && run.after === undefined)
  const operation = open.length === 0 ? undefined : nextToUndo(reachableOperations(db))
  const run = operation && isUnprotected(operation) ? open.find(({ id }) => id === operation.detail.run) : undefined
  const before = run && db.snapshot(run.before!)
  return before && before.deletedAt === undefined ? { run, before, operation: operation! } : undefined
}
