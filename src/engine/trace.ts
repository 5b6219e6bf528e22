/** Reads what runs executed. */
import { SavepointError } from '../errors/errors.ts'
import type { Run } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import type { TraceResult } from './results.ts'
import { requireRun } from './rollback.ts'
import { isInterrupted } from './run-state.ts'

export function trace(ctx: Context, ref?: string): TraceResult {
  const run = ref === undefined ? newestRun(ctx) : requireRun(ctx, ref)
  return { run, isOver: run.endedAt !== undefined || isInterrupted(run), executions: ctx.db.trace.executions(run.id) }
}

export function newestRun(ctx: Context): Run {
  const run = ctx.db.runs().at(-1)
  if (run) return run
  throw new SavepointError('run.unknown', 'Cannot show a trace: nothing was run here yet', {
    hint: 'savepoint run -- COMMAND',
  })
}
