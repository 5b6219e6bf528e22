/** Where HEAD stands after a restore. */
import type { Snapshot } from '../model/snapshot.ts'
import { isInTheWay } from '../targets/dir/hidden.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'
import type { Journal } from './journal.ts'
import { newOperation } from './new-operation.ts'
import type { RestoreRequest } from './restore.ts'

/** The snapshot that an undo goes back to may be forgotten, although its content is not: then the state descends from `safety`. */
export function headAfterwards(ctx: Context, journal: Journal, safety: Snapshot, after: Live): string | undefined {
  const head = journal.headAfter ?? sameAs(ctx, journal.headIfSame, after) ?? journal.headBefore
  return head === undefined || ctx.db.snapshot(head) ? head : safety.id
}

/** Whether it stands where the restore was to bring it, and not where it was. */
export const isMeant = ({ headAfter, headIfSame }: Journal, head: string): boolean =>
  headAfter !== undefined || headIfSame === head

/** `id`, if there is such a snapshot, and nothing differs from it. */
function sameAs(ctx: Context, id: string | undefined, { root }: Pick<Live, 'root'>): string | undefined {
  const snapshot = id === undefined ? undefined : ctx.db.snapshot(id)
  if (!snapshot || snapshot.deletedAt !== undefined) return undefined
  const isSame = snapshot.root === root || stateChanges(ctx.store, snapshot.root, root).next().done === true
  return isSame ? id : undefined
}

/** No file had to change: a whole rollback still moves HEAD, and a step of `undo` is done. */
export function noteNothing(ctx: Context, request: RestoreRequest, plan: RestorePlan, live: Live): void {
  const { kind, summary, detail, isStep, snapshot } = request
  // A step that left all alone has not been done, and what had no room is to be asked for again.
  if (request.dryRun || plan.leftAlone.some(left => (isStep && isInTheWay(left)) || left.why === 'no-room')) return
  const headBefore = ctx.db.head
  const isThere = request.headIfSame === undefined || sameAs(ctx, headBefore, live) !== undefined
  const headAfter = request.headAfter ?? (isThere ? undefined : sameAs(ctx, request.headIfSame, live))
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
