/** Reads what runs executed, and why a path is as it is. */
import { SavepointError } from '../errors/errors.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { resolvePath } from './resolve-path.ts'
import type { TraceResult, WhyResult } from './results.ts'
import { requireRun } from './rollback.ts'
import { isInterrupted } from './run-state.ts'

const WHY_LIMIT = 50

export function trace(ctx: Context, ref?: string): TraceResult {
  const run = ref === undefined ? newestRun(ctx) : requireRun(ctx, ref)
  return { run, isOver: run.endedAt !== undefined || isInterrupted(run), executions: ctx.db.trace.executions(run.id) }
}

function newestRun(ctx: Context): Run {
  const run = ctx.db.runs().at(-1)
  if (run) return run
  throw new SavepointError('run.unknown', 'Cannot show a trace: nothing was run here yet', {
    hint: 'savepoint run -- COMMAND',
  })
}

export function why(ctx: Context, path: string, { limit = WHY_LIMIT }: { limit?: number } = {}): WhyResult {
  const raw = resolvePath(ctx, path)
  const snapshots = ctx.db.snapshots()
  return {
    path: raw,
    causes: ctx.db.events.ofPath(raw, limit).map(event => ({
      event,
      execution: event.exec === 0 ? undefined : ctx.db.trace.execution(event.run, event.exec),
      ...around(snapshots, event.at),
    })),
  }
}

function around(snapshots: readonly Snapshot[], at: number): Pick<WhyResult['causes'][number], 'before' | 'after'> {
  return {
    before: snapshots.findLast(({ createdAt }) => createdAt <= at),
    after: snapshots.find(({ createdAt }) => createdAt > at),
  }
}
