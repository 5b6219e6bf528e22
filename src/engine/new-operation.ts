import type { OperationKind } from '../model/snapshot.ts'
import type { NewOperation } from '../timeline/timeline-db.ts'
import { type Context, ownRun } from './context.ts'

/** An operation of now that leaves HEAD where it is and can be undone; the caller says what is different. */
export const newOperation = (ctx: Context, kind: OperationKind, summary: string): NewOperation => ({
  kind,
  at: ctx.now(),
  state: 'done',
  summary,
  before: undefined,
  after: undefined,
  headBefore: ctx.db.head,
  headAfter: ctx.db.head,
  detail: {},
  rule: undefined,
  by: ownRun(ctx),
})
