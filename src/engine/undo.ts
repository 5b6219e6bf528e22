/** `undo` and `redo` walk the operations. Each takes back, or does again, exactly what one operation changed. */
import { SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { isWithin, type Raw, showPath } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Operation, Run } from '../model/snapshot.ts'
import { isInTheWay } from '../targets/dir/hidden.ts'
import { changedOutside } from './changed-outside.ts'
import { type Context, RUN_VARIABLE, withTimelineLock } from './context.ts'
import { refusePinned } from './delete.ts'
import { closeOpenEnds } from './late-end.ts'
import { moveTarget } from './moved-target.ts'
import { newOperation } from './new-operation.ts'
import { hiddenBehind, isUnprotected, nextToUndo, reachableOperations, recordedRoot } from './operations.ts'
import { restore } from './restore.ts'
import type { RestoreResult, UndoResult } from './results.ts'
import { rollback, wayBackOf, wholeWayBack } from './rollback.ts'
import { isGoingOn } from './run-state.ts'
import { settleBefore } from './settle.ts'
import { sayIfPlain } from './target-at-end.ts'
import { doingAgain, takingBack } from './walked-states.ts'

type Direction = 'undo' | 'redo'

/** Stops at a run that was not protected. */
function newestUndoable(operations: Operation[], ctx: Context): Operation | undefined {
  const newest = nextToUndo(operations)
  if (!newest || !isUnprotected(newest)) return newest
  const known = ctx.db.runs().find(({ id }) => id === newest.detail.run)?.before
  const before = known === undefined ? undefined : ctx.db.snapshot(known)
  const why = before ? 'the state at its end was not captured' : 'it was not protected'
  throw new SavepointError('operation.none', `Cannot undo ${newest.summary}: ${why}`, {
    hint: before ? wholeWayBack(before.id) : wayAround(ctx, newest),
  })
}

/** What takes files back although `undo` does not get past an unprotected run. */
function wayAround(ctx: Context, unprotected: Operation): string {
  const older = hiddenBehind(ctx.db, unprotected)
  const run = older?.kind === 'run' ? (older.detail.run as string) : undefined
  if (run !== undefined) return `\`savepoint rollback ${run}\` takes back the run before it; what this one did stays`
  if (older?.before !== undefined && ctx.db.snapshot(older.before))
    return `\`savepoint rollback ${older.before}\` goes back to the state before the ${older.kind} that came before it`
  return '`savepoint log` shows the snapshots that you can roll back to'
}

function sayWayAround(ctx: Context, operation: Operation): void {
  if (hiddenBehind(ctx.db, operation))
    ctx.notice(`\`undo\` does not get past it as long as nothing of it goes back: ${wayAround(ctx, operation)}`)
}

export interface WalkOptions {
  /** Also what an operation changed outside the current subdirectory. */
  all?: boolean
  /** Only says what would be done. */
  dryRun?: boolean
}

export async function undo(ctx: Context, options: WalkOptions): Promise<UndoResult> {
  return walk(ctx, 'undo', options, newestUndoable)
}

export async function redo(ctx: Context, options: WalkOptions): Promise<UndoResult> {
  return walk(ctx, 'redo', options, operations => operations.find(operation => operation.state === 'undone'))
}

/** Who says it again after it was killed means the same, not the one before it. */
const COMPLETED = 'it was interrupted, and is completed'

function walk(
  ctx: Context,
  direction: Direction,
  options: WalkOptions,
  choose: (operations: Operation[], ctx: Context) => Operation | undefined,
): Promise<UndoResult> {
  return withTimelineLock(ctx, direction, async () => {
    const completed = await settleBefore(ctx, direction, options)
    const isAsked = completed?.kind === direction && !options.dryRun
    const same = isAsked ? ctx.db.operations().find(({ id }) => id === completed.detail.step_of) : undefined
    if (same) return { restore: undefined, effect: COMPLETED, dryRun: false, operation: same }
    await closeOpenEnds(ctx)
    const operation = choose(reachableOperations(ctx.db), ctx)
    if (direction === 'undo') refuseWhileRunning(ctx, operation)
    if (!operation) {
      throw new SavepointError('operation.none', `Cannot ${direction}: there is nothing to ${direction}`, {
        hint:
          direction === 'undo'
            ? '`savepoint log` shows the snapshots that you can roll back to'
            : 'Only what was undone can be redone',
      })
    }
    if (!options.all) refuseOutside(ctx, direction, operation)
    const dryRun = options.dryRun === true
    const result = await step({ ctx, direction, operation, dryRun })
    // It can be said again when what stood in its way is gone.
    const isLeft = isAllLeft(result)
    if (isLeft && direction === 'undo') sayWayAround(ctx, operation)
    if (dryRun || isLeft) return { ...result, dryRun, operation }
    ctx.db.setOperationState(operation.id, direction === 'undo' ? 'undone' : 'done')
    return { ...result, dryRun, operation: { ...operation, state: direction === 'undo' ? 'undone' : 'done' } }
  })
}

/** Whether nothing of the operation could be taken back or done again. */
const isAllLeft = ({ restore, effect }: StepResult): boolean =>
  restore !== undefined && effect === '' && restore.leftAlone.some(isInTheWay) && restore.changes.length === 0

/** What `undo` would do with a run that goes on: stop it, and take back what it has done. */
export function undoOfRun(ctx: Context, run: Run, { all }: WalkOptions): Promise<UndoResult> {
  const operation = {
    ...newOperation(ctx, 'run', `${run.id}: ${quoteCommand(run.command)}`),
    // There is none as long as the run goes on.
    id: '',
    seq: 0,
  }
  return rollback(ctx, run.id, { dryRun: true, all: true }).then(plan => {
    const outside = plan.changes.find(({ path }) => !isWithin(path, ctx.subdirectory))
    if (outside && !all) throw reachesOutside(ctx, 'undo', outside.path)
    return { operation, dryRun: true, restore: plan, effect: '' }
  })
}

/**
 * A run is an operation only when it has ended. Until then there is nothing of it to undo, and who asks for `undo` does not
 * mean what was done before it.
 */
function refuseWhileRunning(ctx: Context, operation: Operation | undefined): void {
  const inside = ctx.env[RUN_VARIABLE]
  const run = ctx.db.unendedRuns().findLast(run => run.id === inside || isGoingOn(ctx, run))
  if (!run || (operation && operation.at >= run.startedAt)) return
  const isReached = run.id === inside || ctx.session !== undefined
  throw new SavepointError('operation.none', `Cannot undo: ${run.id} is still going`, {
    hint: wayBackOf(ctx, run, isReached),
  })
}

/** Started in frontend/, nothing in backend/ is touched: half an operation cannot be undone, so the whole needs a word. */
function refuseOutside(ctx: Context, direction: Direction, operation: Operation): void {
  const [outside] = changedOutside(ctx, operation)
  if (outside !== undefined) throw reachesOutside(ctx, direction, outside)
}

const reachesOutside = (ctx: Context, direction: Direction, outside: Raw): SavepointError =>
  new SavepointError(
    'usage',
    `Cannot ${direction} in ${showPath(ctx.subdirectory)}: the operation also changed ${showPath(outside) || './'} outside of it`,
    {
      hint: `\`savepoint ${direction} --all\` takes the whole operation; \`savepoint rollback SNAP\` here touches this directory only`,
    },
  )

interface Step {
  ctx: Context
  direction: Direction
  operation: Operation
  dryRun: boolean
}

type StepResult = Pick<UndoResult, 'restore' | 'effect'>

async function step(asked: Step): Promise<StepResult> {
  const { direction, operation } = asked
  switch (operation.kind) {
    case 'run':
    case 'rollback':
    case 'revert':
      return stepFiles(asked)
    case 'delete':
    case 'prune':
    case 'retention':
      return stepDeleted(asked, operation.detail.snapshots as string[])
    case 'import':
      return stepImport(asked, operation.detail.snapshot as string)
    case 'compact':
      return stepCompact(asked)
    case 'tag':
      return stepTag(asked)
    default:
      throw new SavepointError('operation.none', `Cannot ${direction} ${operation.kind}: it cannot be undone`)
  }
}

async function stepFiles(asked: Step): Promise<StepResult> {
  const { ctx, direction, operation, dryRun } = asked
  const before = recordedRoot(operation.detail, 'before_root')
  const after = recordedRoot(operation.detail, 'after_root')
  if (before === undefined || after === undefined) {
    throw new SavepointError(
      'operation.none',
      `Cannot ${direction} ${operation.summary}: it did not record the states around it`,
    )
  }
  const isUndo = direction === 'undo'
  const effect = await moveTarget(ctx, operation, direction, dryRun)
  const result: RestoreResult = await restore(ctx, {
    dryRun,
    ...(isUndo ? takingBack(ctx, operation, before, after) : doingAgain(ctx, operation, before, after)),
    kind: direction,
    summary: `${direction} ${operation.summary}`,
    headAfter: isUndo ? (operation.before ?? operation.headBefore) : operation.headAfter,
    isStep: true,
    detail: { step_of: operation.id },
  }).catch((error: unknown) => {
    if (effect !== '' && !dryRun)
      ctx.notice(
        `the target directory was ${effect}; what the run changed in it is not ${isUndo ? 'undone' : 'redone'}`,
      )
    throw error
  })
  if (isUndo) sayIfPlain(ctx, operation)
  return { restore: result, effect }
}

/** Of those that there are: one that its filesystem has lost meanwhile does not come back. */
function stepDeleted(asked: Step, named: string[]): StepResult {
  const { ctx, direction, operation } = asked
  const snapshots = named.flatMap(id => ctx.db.snapshot(id) ?? [])
  const ids = snapshots.map(({ id }) => id)
  const isUndo = direction === 'undo'
  const { headBefore, headAfter } = operation
  if (!isUndo) for (const snapshot of snapshots) refusePinned(ctx, snapshot)
  change(asked, () => {
    ctx.db.setDeleted(ids, isUndo ? undefined : ctx.now())
    const [from, to] = isUndo ? [headAfter, headBefore] : [headBefore, headAfter]
    if (from !== to && ctx.db.head === from && !isLost(ctx, to)) ctx.db.setHead(to)
  })
  const count = plural('snapshot', ids.length)
  return { restore: undefined, effect: isUndo ? `${count} back` : `${count} deleted again` }
}

const isLost = (ctx: Context, id: string | undefined): boolean => id !== undefined && ctx.db.snapshot(id) === undefined

/** What was imported is deleted, or back. */
function stepImport(asked: Step, id: string): StepResult {
  const { ctx, direction } = asked
  const isUndo = direction === 'undo'
  if (isUndo && ctx.db.head === id)
    throw new SavepointError('operation.none', `Cannot undo the import of ${id}: the live files descend from it`, {
      hint: '`savepoint log` shows the snapshots that you can roll back to',
    })
  change(asked, () => ctx.db.setDeleted([id], isUndo ? ctx.now() : undefined))
  return { restore: undefined, effect: isUndo ? `${id} deleted` : `${id} back` }
}

function stepCompact(asked: Step): StepResult {
  const { ctx, direction, operation } = asked
  const { snapshots, newest, result, tags } = operation.detail as {
    snapshots: string[]
    newest: string
    result: string
    tags: string[]
  }
  const isUndo = direction === 'undo'
  change(asked, () => {
    ctx.db.setDeleted(snapshots, isUndo ? undefined : ctx.now())
    ctx.db.setDeleted([result], isUndo ? ctx.now() : undefined)
    ctx.db.moveChildren(isUndo ? result : newest, isUndo ? newest : result)
    for (const tag of tags) ctx.db.setTag(tag, isUndo ? newest : result, ctx.now())
    // HEAD may be another than at the first time; it must not stay on what goes.
    const head = ctx.db.head!
    if (isUndo && head === result)
      ctx.db.setHead(snapshots.includes(operation.headBefore!) ? operation.headBefore : newest)
    else if (!isUndo && snapshots.includes(head)) ctx.db.setHead(result)
  })
  const count = plural('snapshot', snapshots.length)
  return { restore: undefined, effect: `${count} ${isUndo ? 'apart' : 'compacted'} again` }
}

function stepTag(asked: Step): StepResult {
  const { ctx, direction, operation } = asked
  const { name, before, after } = operation.detail as { name: string; before: string | null; after: string | null }
  const target = direction === 'undo' ? before : after
  change(asked, () => ctx.db.setTag(name, target ?? undefined, ctx.now()))
  return { restore: undefined, effect: target ? `tag ${name} is on ${target}` : `tag ${name} is gone` }
}

/** In one transaction, so that the operation's state never disagrees with what was done. */
function change({ ctx, direction, operation, dryRun }: Step, work: () => void): void {
  if (dryRun) return
  ctx.db.transaction(() => {
    work()
    ctx.db.setOperationState(operation.id, direction === 'undo' ? 'undone' : 'done')
    ctx.db.addOperation({
      ...newOperation(ctx, direction, `${direction} ${operation.summary}`),
      state: 'fixed',
      detail: { step_of: operation.id },
    })
  })
}
