/** What operations begin as, and which of them came after a run that was killed, whose own is recorded later than theirs. */
import type { Operation, OperationKind } from '../model/snapshot.ts'
import type { NewOperation } from '../timeline/timeline-rows.ts'
import { type Context, ownRun } from './context.ts'
import { isInterrupted } from './run-state.ts'

/** An operation of now that leaves HEAD where it is and can be undone; the caller says what is different. */
export function newOperation(
  ctx: Context,
  kind: OperationKind,
  summary: string,
  detail: Record<string, unknown> = {},
): NewOperation {
  const killed = ctx.db.unendedRuns().filter(run => isInterrupted(ctx, run))
  return {
    kind,
    at: ctx.now(),
    state: 'done',
    summary,
    before: undefined,
    after: undefined,
    headBefore: ctx.db.head,
    headAfter: ctx.db.head,
    detail: killed.length === 0 ? detail : { ...detail, after_runs: killed.map(({ id }) => id) },
    rule: undefined,
    by: ownRun(ctx),
  }
}

/** Whether it was done when that run was over already, although nobody had recorded that. */
export const isAfterRun = ({ detail }: Pick<Operation, 'detail'>, run: unknown): boolean =>
  Array.isArray(detail.after_runs) && detail.after_runs.includes(run)
