/** Where HEAD stands after a restore. */
import type { Snapshot } from '../model/snapshot.ts'
import { isInTheWay } from '../targets/dir/hidden.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import type { Context } from './context.ts'
import type { Journal } from './journal.ts'
import { newOperation } from './new-operation.ts'
import type { RestoreRequest } from './restore.ts'

/** The snapshot that an undo goes back to may be forgotten, although its content is not: then the state descends from `safety`. */
export function headAfterwards(ctx: Context, journal: Journal, safety: Snapshot): string | undefined {
  const head = journal.headAfter ?? journal.headBefore
  return head === undefined || ctx.db.snapshot(head) ? head : safety.id
}

/** No file had to change: a whole rollback still moves HEAD, and a step of `undo` is done. */
export function noteNothing(ctx: Context, request: RestoreRequest, plan: RestorePlan): void {
  const { kind, summary, detail, isStep, headAfter, snapshot } = request
  // A step that left all alone has not been done, and what had no room is to be asked for again.
  if (request.dryRun || plan.leftAlone.some(left => (isStep && isInTheWay(left)) || left.why === 'no-room')) return
  const headBefore = ctx.db.head
  const isMoved = headAfter !== undefined && ctx.db.snapshot(headAfter) !== undefined
  if (!isStep && (!isMoved || headAfter === headBefore)) return
  ctx.db.transaction(() => {
    if (isMoved) {
      ctx.db.setHead(headAfter)
      ctx.db.events.setNextStart(ctx.db.events.newest())
    }
    const done = { state: 'fixed', after: snapshot?.id, headBefore } as const
    ctx.db.addOperation({ ...newOperation(ctx, kind, summary, detail), ...done })
  })
}

/** The restore did not happen, so neither did the snapshot before it. */
export function takeBackSafety(ctx: Context, { headBefore }: Journal, safety: Snapshot): void {
  if (safety.id === headBefore || ctx.db.head !== safety.id) return
  const start = ctx.db.events.ofSnapshot(safety.id)?.startEvent
  ctx.db.transaction(() => {
    ctx.db.setDeleted([safety.id], ctx.now())
    ctx.db.setHead(headBefore)
    // What led to it leads to the next one.
    if (start !== undefined) ctx.db.events.setNextStart(start)
  })
}
