/**
 * The end of a run: the state after it becomes a snapshot, and the run an operation that `undo` takes back. Also for a run
 * whose supervisor was killed, by whoever comes next.
 */
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { idToHex } from '../model/id.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { nameRunning } from '../model/running.ts'
import { quoteCommand, quoteWord } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import { identityOf, obstacleAt, sameIdentity, statDir } from '../targets/dir/dir-target.ts'
import { emptyCache } from '../targets/dir/stat-cache.ts'
import type { NewOperation } from '../timeline/timeline-db.ts'
import { captureLive, type Live } from './capture-live.ts'
import { type Context, ownRun, withTimelineLock } from './context.ts'
import { removeSocket } from './control-place.ts'
import { editsDetail, editsMeanwhile, type Touches } from './edits-meanwhile.ts'
import { addKept, closeSpool, hasKept } from './kept-files.ts'
import { followTarget, moveDetail } from './moved-target.ts'
import { newOperation } from './new-operation.ts'
import { replacedByOthers } from './overlapping-runs.ts'
import { leftRunning } from './process-tree.ts'
import { recoverPending } from './recover.ts'
import type { ChildEnd } from './run-child.ts'
import { isInterrupted } from './run-state.ts'
import { addSnapshot } from './snapshot.ts'
import type { Displacer } from './target-place.ts'
import { writeTarget } from './target-registry.ts'
import { judgeConfig } from './trust.ts'
import { formerPlaceDetail } from './unprotected.ts'

type HowEnded = Pick<Run, 'exitCode' | 'signal'>

/** What is known of a run by who was there. */
interface Known {
  /** Where it moved the target. */
  movedTo?: Buffer
  touched?: Touches
  displacedBy?: Displacer
}

/** The command has run and its exit code is the answer, whatever became of the disk or of our own files meanwhile. */
export async function conclude(
  ctx: Context,
  run: Run,
  before: Snapshot | undefined,
  { code: exitCode, signal }: ChildEnd,
  known: Known,
): Promise<Snapshot | undefined> {
  if (!ctx.db.isInPlace() || !ctx.store.index.isInPlace()) {
    ctx.notice(`the history of ${ctx.home} was DELETED while the command ran: this run cannot be undone`)
    return undefined
  }
  const end = { exitCode, signal }
  const after = before && (await finish(ctx, run, before, end, known).catch(error => sayUncaptured(ctx, before, error)))
  if (after) return after
  try {
    ctx.db.transaction(() => {
      ctx.db.endRun(run.id, { endedAt: ctx.now(), ...end })
      noteUnprotected(ctx, run)
    })
  } catch (error) {
    if (!errnoOf(error)) throw error
    ctx.notice(`the end of the run is NOT recorded: ${(error as Error).message}`)
  }
  return undefined
}

/** Stands in the list of operations, so that `undo` stops here and does not take back something older. */
function noteUnprotected(ctx: Context, run: Run): void {
  ctx.db.addOperation({
    ...newOperation(ctx, 'run', `${run.id}: ${quoteCommand(run.command)}`),
    state: 'fixed',
    detail: { run: run.id, unprotected: true },
  })
}

function sayUncaptured(ctx: Context, before: Snapshot, error: unknown): undefined {
  if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
  ctx.notice(
    `the state after the run is NOT captured: ${(error as Error).message}; to go back: savepoint rollback ${before.id}`,
  )
}

/** The state after. A target that the run itself deleted or replaced is part of what it did, and can be undone. */
async function finish(ctx: Context, run: Run, before: Snapshot, end: HowEnded, known: Known): Promise<Snapshot> {
  return withTimelineLock(ctx, 'take the final snapshot', () => finishLocked(ctx, run, before, end, known))
}

/** What became of the target directory, as far as it is known by whom. */
export const displaced = (how: 'moved' | 'deleted' | 'replaced', by: Displacer): string => {
  if (by === 'run') return `the run ${how} the target directory`
  return `the target directory was ${how} while the run went on${by === 'others' ? ', not by it,' : ''}`
}

function describeGone(path: Buffer, by: Displacer): string {
  const obstacle = obstacleAt(path)
  const word = quoteWord(showPath(rawFromBytes(path)))
  const way = `to take that back: mv ${word} ${word}.aside; savepoint undo -t ${word}`
  if (obstacle && by === 'run') return `the run put ${obstacle} in the place of the target directory; ${way}`
  if (obstacle) return `${obstacle} has taken the place of the target directory; ${way}`
  return `${displaced('deleted', by).replace(/,$/, '')}; \`savepoint undo\` makes it again`
}

async function finishLocked(
  ctx: Context,
  run: Run,
  before: Snapshot,
  end: HowEnded,
  known: Known = {},
): Promise<Snapshot> {
  const { movedTo, touched, displacedBy } = known
  const from = ctx.targetPath
  const moved = movedTo && !statDir(from) ? movedTo : undefined
  if (moved) followTarget(ctx, moved)
  const place = movedTo && showPath(rawFromBytes(movedTo))
  if (moved)
    ctx.notice(
      `${displaced('moved', displacedBy)} to ${place}${displacedBy === 'others' ? '' : '; undo moves it back'}`,
    )
  const stat = statDir(ctx.targetPath)
  const isReplaced = stat !== undefined && !sameIdentity(identityOf(stat), ctx.identity)
  if (isReplaced) {
    const where = place ? `; the old one is at ${place}` : ''
    ctx.notice(`${displaced('replaced', displacedBy)} by another one${where}`)
    ctx.identity = identityOf(stat)
    writeTarget({ id: ctx.timelineId, directory: ctx.timelineDir, path: ctx.targetPath, identity: ctx.identity })
  }
  if (!stat) ctx.notice(describeGone(ctx.targetPath, displacedBy))
  if (stat) await recoverPending(ctx)
  // What was protected before the run stays so to its end: a run that widens the ignore rules must not hide what it did.
  const live = stat
    ? await captureLive(ctx, { override: [before.root], readOwned: true, ignoreFloor: true })
    : await captureGone(ctx, before)
  await addKept(ctx, run.id)
  closeSpool(ctx, run.id)
  const head = ctx.db.head
  const unchanged = live.root === before.root && head === before.id
  const after = unchanged
    ? before
    : addSnapshot(ctx, live, { type: 'final', run: run.id, command: quoteCommand(run.command) })
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
      // Somebody else who closes a killed run does not know which one started it.
      inside: run.pid === process.pid ? ownRun(ctx) : undefined,
      before_root: idToHex(before.root),
      after_root: idToHex(after.root),
      // What somebody else did is not the run's to take back.
      ...(moved && displacedBy !== 'others' && moveDetail(from, moved)),
      ...editsDetail(
        editsMeanwhile(ctx, { before: before.root, after: after.root, safeAt: before.createdAt }, touched),
      ),
      ...formerPlaceDetail(isReplaced ? movedTo : undefined),
      ...(isReplaced && displacedBy === 'others' && replacedByOthers),
    },
    rule: undefined,
  }
  // Both or neither: killed in between, it would be closed once more by whoever comes next, and stand there twice.
  ctx.db.transaction(() => {
    ctx.db.addOperation(operation)
    failpoint('run:operation')
    ctx.db.endRun(run.id, { endedAt: ctx.now(), ...end, after: after.id })
  })
  return after
}

/**
 * A run whose supervisor was killed has no end. What is there now counts as its end, so that it can be undone like any
 * other. Called under the timeline's lock.
 */
export async function closeKilledRuns(ctx: Context): Promise<void> {
  if (ctx.unwritable) return
  for (const run of ctx.db.runs()) {
    if (!isInterrupted(run)) continue
    const before = run.before === undefined ? undefined : ctx.db.snapshot(run.before)
    const end = { exitCode: undefined, signal: 'SIGKILL' }
    const isProtected = before !== undefined && before.deletedAt === undefined
    if (isProtected) await finishLocked(ctx, run, before, end)
    const kept = run.before === undefined ? await keepDestroyed(ctx, run) : undefined
    if (!isProtected) ctx.db.endRun(run.id, { endedAt: ctx.now(), ...end })
    removeSocket(ctx, run.id)
    judgeConfig(ctx, run)
    ctx.notice(endedWithoutUs(run))
    if (kept)
      ctx.notice(
        `the state before it was not captured yet; what it had destroyed by then is kept: savepoint rollback ${kept} brings it back`,
      )
  }
}

/** Killed while the state before the run was still being captured: the snapshot that has what it destroyed, if it did. */
async function keepDestroyed(ctx: Context, run: Run): Promise<string | undefined> {
  if (!hasKept(ctx, run.id) || !statDir(ctx.targetPath)) return undefined
  const live = await captureLive(ctx, { ignoreFloor: true })
  const state = addSnapshot(ctx, live, { type: 'final', run: run.id, command: quoteCommand(run.command) })
  await addKept(ctx, run.id)
  closeSpool(ctx, run.id)
  return ctx.db.head === state.id ? undefined : ctx.db.head
}

function endedWithoutUs({ id }: Run): string {
  const left = leftRunning(id)
  if (left.length === 0) return `${id} ended without us: what is there now counts as its end`
  const { names, kill } = nameRunning(left)
  return `Savepoint was killed in ${id}, and ${names} of it still ${left.length === 1 ? 'runs' : 'run'}: what is there now counts as its end, and later changes are not part of it; to end that: ${kill}`
}

/** The state of a target that does not exist: nothing is there. */
async function captureGone(ctx: Context, before: Snapshot): Promise<Live> {
  const writer = await ctx.store.writer()
  try {
    const tree = writer.put(encodeTree([]))
    const root = writer.put(encodeTree([{ ...rootEntryOf(ctx.store, before.root), content: tree }]))
    writer.commit()
    return {
      root,
      tree,
      cache: emptyCache(),
      changed: true,
      unsettled: false,
      files: 0,
      emptyDirs: 0,
      bytes: 0,
      skipped: [],
      newBytes: writer.newBytes,
      eventsAt: ctx.db.events.beginCapture(),
      runOnly: false,
    }
  } finally {
    writer.close()
  }
}
