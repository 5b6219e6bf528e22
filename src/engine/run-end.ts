/**
 * The end of a run: the state after it becomes a snapshot, and the run an operation that `undo` takes back. Also for a run
 * whose supervisor was killed, or whose end could not be captured, by whoever comes next (late-end.ts).
 */
import { errnoOf, SavepointError, wordsOf } from '../errors/errors.ts'
import { idToHex } from '../model/id.ts'
import { nameRunning } from '../model/running.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { statDir } from '../targets/dir/dir-target.ts'
import type { NewOperation } from '../timeline/timeline-rows.ts'
import { captureLive } from './capture-live.ts'
import { type Context, ownRun, withTimelineLock } from './context.ts'
import { removeSocket } from './control-place.ts'
import {
  editsBeforeGuards,
  guardedDetail,
  noneGuarded,
  type PartlyKnown,
  presentTouches,
  sayGuarded,
} from './edits-before-guards.ts'
import { editsBesideTrace, editsDetail, editsMeanwhile, type Touches, withLikely } from './edits-meanwhile.ts'
import { addFormers, captureFormers, editsInFormer, knownFormer } from './former-target.ts'
import { addKept } from './kept-files.ts'
import { spooled } from './kept-spool.ts'
import type { LastTouches } from './last-touches.ts'
import { sayWhatLeft } from './left-history.ts'
import { moveDetail } from './moved-target.ts'
import { newOperation } from './new-operation.ts'
import { replacedByOthers } from './overlapping-runs.ts'
import { leftRunning } from './process-tree.ts'
import { recoverPending } from './recover.ts'
import type { ChildEnd } from './run-child.ts'
import { takeIfChanged } from './run-snapshot.ts'
import { isInterrupted } from './run-state.ts'
import { settleVague } from './settle-vague.ts'
import { addSnapshot, unlessDamaged } from './snapshot.ts'
import { closeSpool, spoolOf } from './spool.ts'
import { snapshotBefore } from './state-before.ts'
import type { Supervised } from './supervised.ts'
import { captureGone, findTarget, plainDetail } from './target-at-end.ts'
import { isTarget } from './target-dataset.ts'
import type { Place } from './target-place.ts'
import { hasBegun, judgeConfig } from './trust.ts'
import { replacedDetail } from './unprotected.ts'
import { unseenStores } from './unseen-stores.ts'
import { completeTrace } from './untold-executions.ts'

type HowEnded = Pick<Run, 'exitCode' | 'signal'> & { isInterrupted?: boolean }

/** What is known of a run by who was there. */
interface Known extends Partial<Omit<Supervised, 'end'>> {
  /** Where it moved the target, and those that took the place of that. */
  movedTo?: Buffer
  places?: Place[]
  /** Its operation, noted when the state at its end could not be captured: that is done now. */
  noted?: string
}

/** `taken`: how many snapshots came besides the one that shows the end. */
interface End {
  after: Snapshot | undefined
  taken: number
}

const touchesOf = (touched: Touches | PartlyKnown): LastTouches =>
  'trees' in touched ? presentTouches(touched) : touched.touches

const nothing: End = { after: undefined, taken: 0 }

/** The command has run and its exit code is the answer, whatever became of the disk or of our own files meanwhile. */
export async function conclude(
  ctx: Context,
  run: Run,
  before: Snapshot | undefined,
  { code: exitCode, signal }: ChildEnd,
  known: Known,
): Promise<End> {
  if (!ctx.unwritable && !(ctx.db.isInPlace() && ctx.store.index.isInPlace())) {
    ctx.alarm(`the history of ${ctx.home} was DELETED or moved meanwhile: without it this run cannot be undone`)
    return nothing
  }
  const end = { exitCode, signal }
  const finished = before ? finish(ctx, run, before, end, known) : finishUnprotected(ctx, run, known)
  const { after, taken } = await finished.catch(error => sayUncaptured(ctx, before, error))
  if (after) return { after, taken }
  try {
    ctx.db.transaction(() => {
      ctx.db.endRun(run.id, { endedAt: ctx.now(), ...end })
      noteUnprotected(ctx, run, before)
    })
  } catch (error) {
    if (!errnoOf(error)) throw error
    ctx.alarm(`the end of the run is NOT recorded: ${wordsOf(error)}`)
  }
  return { after, taken }
}

/**
 * Stands in the list of operations, so that `undo` stops here and does not take back something older. With a state `before`,
 * only that of its end is missing.
 */
function noteUnprotected(ctx: Context, run: Run, before: Snapshot | undefined): void {
  const detail = { run: run.id, unprotected: true }
  ctx.db.addOperation({
    ...newOperation(ctx, 'run', `${run.id}: ${quoteCommand(run.command)}`, detail),
    state: 'fixed',
    before: before?.id,
  })
}

function sayUncaptured(ctx: Context, before: Snapshot | undefined, error: unknown): End {
  if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
  const way = before ? `; to go back: savepoint rollback ${before.id}, or when that is mended savepoint undo` : ''
  ctx.alarm(`the state after the run is NOT captured: ${wordsOf(error)}${way}`)
  return nothing
}

/** There is no state before it, and none is wanted of its end; but a commit that was to be captured is. */
async function finishUnprotected(ctx: Context, run: Run, { commit }: Known): Promise<End> {
  if (commit === undefined) return nothing
  const taken = await takeIfChanged(ctx, { type: 'git', run: run.id, command: commit })
  return { after: undefined, taken: taken ? 1 : 0 }
}

/** The state after. A target that the run itself deleted or replaced is part of what it did, and can be undone. */
async function finish(ctx: Context, run: Run, before: Snapshot, end: HowEnded, known: Known): Promise<End> {
  return withTimelineLock(ctx, 'take the final snapshot', async () => {
    await closeOver(ctx)
    return finishLocked(ctx, run, before, end, known)
  })
}

/** Killed runs that are over ended before this one, which `undo` is to take back first. What fails is left to the next command. */
async function closeOver(ctx: Context): Promise<void> {
  const stat = statDir(ctx.targetPath)
  if (!stat || !isTarget(ctx, stat)) return
  try {
    await closeKilledRuns(ctx, ({ id }) => leftRunning(id).length === 0)
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
  }
}

export async function finishLocked(
  ctx: Context,
  run: Run,
  before: Snapshot,
  end: HowEnded,
  known: Known = {},
): Promise<End & { after: Snapshot }> {
  const { movedTo, places = [], displacedBy, commit, noted } = known
  const { targetPath: from, identity } = ctx
  const found = findTarget(ctx, movedTo, displacedBy)
  const { moved, isThere, isReplaced } = found
  const hasReplaced = isReplaced && displacedBy !== 'others'
  if (isThere) await recoverPending(ctx)
  const formers = await captureFormers(ctx, places, before, hasReplaced)
  // What was protected before the run stays so to its end: a run that widens the ignore rules must not hide what it did.
  const live = isThere
    ? await captureLive(ctx, {
        override: [before.root],
        held: await unseenStores(ctx, run.id),
        readOwned: true,
        ignoreFloor: true,
      })
    : await captureGone(ctx, before)
  const touched = (await known.settle?.())?.touched
  await addKept(ctx, run.id)
  const { guardPlaces, treeOf } = addFormers(ctx, run, formers)
  closeOrName(ctx, run.id)
  const ends = { before: before.root, after: live.root }
  const likely = touched === undefined ? [] : settleVague(ctx, run.id, ends, touchesOf(touched))
  // Those events are about what is in it.
  if (likely.length > 0) live.eventsAt = ctx.db.events.newest()
  const isCommit = commit !== undefined
  if (isCommit) addSnapshot(ctx, live, { type: 'git', run: run.id, command: commit })
  const unchanged = live.root === before.root && ctx.db.head === before.id
  // What led to the state is the commit's; this one only says that it is the end.
  const state = isCommit ? { ...live, newBytes: 0, eventsAt: ctx.db.events.nextStart ?? live.eventsAt } : live
  const after = unchanged
    ? before
    : addSnapshot(ctx, state, { type: 'final', run: run.id, command: quoteCommand(run.command) })
  unlessDamaged(() => sayWhatLeft(ctx, before, after.root))
  const states = { before: before.root, after: after.root }
  const partly = touched && 'trees' in touched ? touched : undefined
  const whole = touched && 'trees' in touched ? undefined : touched
  const isLate = end.isInterrupted || noted !== undefined
  const isPartly = isLate || partly !== undefined
  const isKnown = partly?.isLeft && !moved && (hasReplaced || !isThere || partly.present === 0)
  const old = isKnown ? knownFormer(formers, partly, identity) : undefined
  const edits = isPartly ? editsBesideTrace(ctx, run, states, old) : editsMeanwhile(ctx, states, whole)
  const guarded = partly ? editsBeforeGuards(ctx, run.id, states, partly, treeOf) : noneGuarded
  const inFormer = old ? [...guarded.still, ...editsInFormer(ctx, before.root, partly!, formers)] : []
  if (formers.length > 0) sayGuarded(ctx, run.id, guarded.byGuard, guardPlaces)
  const operation: NewOperation = {
    kind: 'run',
    at: ctx.now(),
    state: 'done',
    summary: `${run.id}: ${quoteCommand(run.command)}`,
    before: before.id,
    after: after.id,
    headBefore: before.id,
    headAfter: after.id,
    detail: {
      run: run.id,
      // Somebody else who closes it later does not know which one started it.
      inside: isLate ? undefined : ownRun(ctx),
      before_root: idToHex(before.root),
      after_root: idToHex(after.root),
      // What somebody else did is not the run's to take back.
      ...(moved && displacedBy !== 'others' && moveDetail(from, moved)),
      ...editsDetail(withLikely(edits, [...guarded.gone, ...inFormer, ...likely])),
      ...guardedDetail(guarded.byGuard, guardPlaces),
      ...replacedDetail(hasReplaced, isReplaced ? movedTo : undefined),
      ...(isReplaced && displacedBy === 'others' && replacedByOthers),
      ...plainDetail(found),
    },
    rule: undefined,
  }
  // Both or neither: killed in between, it would be closed once more by whoever comes next, and stand there twice.
  ctx.db.transaction(() => {
    if (noted === undefined) ctx.db.addOperation(operation)
    else ctx.db.completeOperation(noted, operation)
    failpoint('run:operation')
    if (noted === undefined) ctx.db.endRun(run.id, { endedAt: ctx.now(), ...end, after: after.id })
    else ctx.db.setRunState(run.id, 'after', after.id)
  })
  return { after, taken: (isCommit ? 1 : 0) + Object.keys(guardPlaces).length }
}

/** What found no room must not go with the spool. */
function closeOrName(ctx: Context, run: string): void {
  if (spooled(spoolOf(ctx, run)).length === 0) closeSpool(ctx, run)
  else ctx.alarm('there is no room for all that the run destroyed on the way: `savepoint status` says where that is')
}

/**
 * A run whose supervisor was killed has no end. What is there now counts as its end, so that it can be undone like any
 * other. Called under the timeline's lock.
 */
export async function closeKilledRuns(ctx: Context, isMeant: (run: Run) => boolean = () => true): Promise<void> {
  if (ctx.unwritable) return
  for (const run of ctx.db.runs()) {
    if (!isInterrupted(ctx, run) || !isMeant(run)) continue
    const before = run.before === undefined ? await snapshotBefore(ctx, run) : ctx.db.snapshot(run.before)
    const end = { exitCode: undefined, signal: 'SIGKILL', isInterrupted: true }
    const isUndoable = before !== undefined && before.deletedAt === undefined
    const isBegun = hasBegun(ctx, run)
    if (isUndoable) await finishLocked(ctx, run, before, end)
    else
      ctx.db.transaction(() => {
        ctx.db.endRun(run.id, { endedAt: ctx.now(), ...end })
        if (isBegun) noteUnprotected(ctx, run, before)
      })
    completeTrace(ctx, run.id)
    removeSocket(ctx, run.id)
    judgeConfig(ctx, run)
    ctx.notice(endedWithoutUs(run, endOf(isUndoable, isBegun)))
    if (before && run.before === undefined)
      ctx.notice(`the state before it was not captured yet, and is put together from what it changed: ${before.id}`)
  }
}

/**
 * The state before could not be captured, and the command, which had begun, was stopped. What it did until then was noted
 * before each change: it can be undone, as after a kill. False where nothing was noted. What cannot be recorded now is left
 * to the next command.
 */
export async function concludeUncaptured(ctx: Context, run: Run, exitCode: number): Promise<boolean> {
  try {
    return await withTimelineLock(ctx, 'put the state before the run together', async () => {
      const before = await snapshotBefore(ctx, run)
      if (!before) return false
      const { after } = await finishLocked(ctx, run, before, { exitCode, signal: undefined })
      if (after.root !== before.root) ctx.notice(`to take back what it did until it was stopped: savepoint undo`)
      return true
    })
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    ctx.notice(
      'what it did until it was stopped is kept: `savepoint undo` takes it back when a capture is possible again',
    )
    return true
  }
}

function endOf(isUndoable: boolean, isBegun: boolean): string {
  if (isUndoable) return 'what is there now counts as its end'
  return isBegun ? 'it was not protected, and cannot be undone' : 'its command had not begun'
}

function endedWithoutUs({ id }: Run, end: string): string {
  const left = leftRunning(id)
  if (left.length === 0) return `${id} ended without us: ${end}`
  const { names, kill } = nameRunning(left)
  return `Savepoint was killed in ${id}, and ${names} of it still ${left.length === 1 ? 'runs' : 'run'}: ${end}, and later changes are not part of it; to end that: ${kill}`
}
