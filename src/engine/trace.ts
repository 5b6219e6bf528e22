/** Reads what runs executed. */
import { SavepointError } from '../errors/errors.ts'
import type { Run } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { leftOf } from './left-trace.ts'
import type { TraceResult } from './results.ts'
import { requireRun } from './rollback.ts'
import { isInterrupted } from './run-state.ts'
import { executionsOfKilled } from './untold-executions.ts'

export function trace(ctx: Context, ref?: string): TraceResult {
  const run = ref === undefined ? newestRun(ctx) : requireRun(ctx, ref)
  const isKilled = isInterrupted(ctx, run)
  const executions = isKilled ? executionsOfKilled(ctx, run.id) : ctx.db.trace.executions(run.id)
  if (leftOf(ctx, run.id) === 'cut')
    ctx.notice(
      `what ${run.id} left running is not traced to its end, or not all of it: who recorded it was killed, could not write, or had no room`,
    )
  return { run, isOver: run.endedAt !== undefined || isKilled, executions }
}

export function newestRun(ctx: Context): Run {
  const run = ctx.db.runs().at(-1)
  if (run) return run
  throw new SavepointError('run.unknown', 'Cannot show a trace: nothing was run here yet', {
    hint: 'savepoint run -- COMMAND',
  })
}
