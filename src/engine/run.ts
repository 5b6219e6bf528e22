/**
 * `run`: a snapshot before, the command with the terminal handed through untouched, a snapshot after, and one operation
 * that `undo` takes back. The lock is held only while capturing, so other commands work meanwhile.
 */
import { redactFlags } from '../config/config.ts'
import { errnoOf, isUnwritable, SavepointError } from '../errors/errors.ts'
import { idToHex } from '../model/id.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { redactCommand } from '../model/redact.ts'
import { quoteCommand, quoteWord } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { countChanges } from '../store/tree-diff.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { followDir, identityOf, obstacleAt, sameIdentity, statDir } from '../targets/dir/dir-target.ts'
import { emptyCache } from '../targets/dir/stat-cache.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import { captureLive, type Live } from './capture-live.ts'
import { type Context, ownRun, requireWritable, withTimelineLock } from './context.ts'
import { findGone } from './gone-unprotected.ts'
import { addKept, closeSpool } from './kept-files.ts'
import { followTarget, moveDetail } from './moved-target.ts'
import { newOperation } from './new-operation.ts'
import { recoverPending } from './recover.ts'
import type { RunResult } from './results.ts'
import { type ChildEnd, exitCodeOf, runUnrecorded, textOf } from './run-child.ts'
import { isInterrupted } from './run-state.ts'
import type { RunOptions } from './savepoint.ts'
import { addSnapshot, takeSnapshot } from './snapshot.ts'
import { writeTarget } from './target-registry.ts'
import { type RunTracer, superviseTraced, tracerFor } from './trace-run.ts'

export async function runCommand(ctx: Context, options: RunOptions): Promise<RunResult> {
  const [program] = options.command
  if (!program)
    throw new SavepointError('usage', 'Cannot run: no command was given', { hint: 'savepoint run -- COMMAND…' })
  const command = redactCommand(options.command, redactPatterns(ctx), () =>
    ctx.notice('the patterns of tracing.redact take too long: the arguments of this command are not recorded'),
  )
  const tracer = tracerFor(ctx, options)
  let run: Run
  try {
    run = record(ctx, command)
  } catch (error) {
    if (!options.unprotected) throw error
    options.onStart?.(undefined, undefined)
    const own = { env: ctx.env, onNotice: ctx.notice, inherited: options.inherited }
    return runUnrecorded(options.command, (error as Error).cause as Error, { cwd: textOf(ctx.cwd), ...own })
  }
  try {
    return await carryOut(ctx, tracer, run, options)
  } catch (error) {
    if (startCodes.has((error as SavepointError).code)) endUnstarted(ctx, run, error as SavepointError)
    throw error
  }
}

/** The configuration is checked when it is read: these are regular expressions. */
const redactPatterns = (ctx: Context) => ctx.config.tracing.redact.map(source => new RegExp(source, redactFlags))

/** On a full disk even this fails: then nothing was started. */
function record(ctx: Context, command: string[]): Run {
  try {
    requireWritable(ctx)
    return ctx.db.addRun({ ...blankRun(ctx), command, cwd: showPath(rawFromBytes(ctx.cwd)) })
  } catch (cause) {
    const message = `Cannot start the command: the run cannot be recorded (${(cause as Error).message})`
    throw new SavepointError('command.failed-to-start', message, {
      hint: `${(cause as SavepointError).hint ?? `Is there room on the disk of ${ctx.home}?`}. --unprotected starts it anyway`,
      cause,
    })
  }
}

const startCodes: ReadonlySet<string> = new Set([
  'command.not-found',
  'command.not-executable',
  'command.failed-to-start',
])

/** The run is over, or `runs` would show it as running for ever. Without room for that, the next `undo` finds it dead. */
function endUnstarted(ctx: Context, run: Run, { exitCode }: SavepointError): void {
  try {
    ctx.db.endRun(run.id, { endedAt: ctx.now(), exitCode, signal: undefined, after: undefined })
  } catch (error) {
    if (!isUnwritable(error)) throw error
  }
}

async function carryOut(ctx: Context, tracer: RunTracer, run: Run, options: RunOptions): Promise<RunResult> {
  ctx.seen = { cache: undefined, answers: new Map() }
  const before = await protect(ctx, run, options)
  options.onStart?.(run, before)
  const place = followDir(ctx.targetPath)
  const { end, trace } = await superviseTraced(ctx, tracer, before !== undefined, run, options, redactPatterns(ctx))
  const movedTo = place.now()
  place.close()
  const target = ctx.targetPath
  const after = await conclude(ctx, run, before, end, movedTo)
  if (movedTo && !after) {
    const [from, to] = [movedTo, target].map(path => quoteWord(showPath(rawFromBytes(path))))
    ctx.notice(`the run moved the target directory away; to take that back: mv ${from} ${to}`)
  }
  const trees = before && after && ([rootTreeOf(ctx.store, before.root), rootTreeOf(ctx.store, after.root)] as const)
  const changes = before && after ? [...stateChanges(ctx.store, before.root, after.root)] : []
  return {
    run: { ...run, before: before?.id, after: after?.id, endedAt: ctx.now(), exitCode: end.code, signal: end.signal },
    exitCode: exitCodeOf(end),
    signal: end.signal,
    before,
    after,
    changes,
    counts: countChanges(changes),
    movedTo: ctx.targetPath.equals(target) ? undefined : showPath(rawFromBytes(ctx.targetPath)),
    gone: trees ? findGone(ctx.store, trees[0], trees[1]) : { count: 0, paths: [] },
    trace,
  }
}

/** The command has run and its exit code is the answer, whatever became of the disk or of our own files meanwhile. */
async function conclude(
  ctx: Context,
  run: Run,
  before: Snapshot | undefined,
  { code, signal }: ChildEnd,
  movedTo: Buffer | undefined,
): Promise<Snapshot | undefined> {
  if (!ctx.db.isInPlace() || !ctx.store.index.isInPlace()) {
    ctx.notice(`the history of ${ctx.home} was DELETED while the command ran: this run cannot be undone`)
    return undefined
  }
  const after = before && (await finish(ctx, run, before, movedTo).catch(error => sayUncaptured(ctx, before, error)))
  try {
    ctx.db.endRun(run.id, { endedAt: ctx.now(), exitCode: code, signal, after: after?.id })
    if (!after) noteUnprotected(ctx, run)
  } catch (error) {
    if (!errnoOf(error)) throw error
    ctx.notice(`the end of the run is NOT recorded: ${(error as Error).message}`)
  }
  return after
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

/** The snapshot before. When it fails, the command is not started, unless the user said that this is fine. */
async function protect(ctx: Context, run: Run, options: RunOptions): Promise<Snapshot | undefined> {
  const { disabled, triggers } = ctx.config.snapshots
  if (disabled || triggers.disable_pre_run) {
    ctx.notice(
      `${disabled ? 'snapshots are' : 'the pre-run snapshot is'} turned off by the configuration: this run cannot be undone`,
    )
    return undefined
  }
  try {
    const before = await takeSnapshot(ctx, { type: 'pre-run', run: run.id, command: quoteCommand(run.command) })
    ctx.db.setRunBefore(run.id, before.id)
    return before
  } catch (cause) {
    if (options.unprotected && !(cause instanceof SavepointError && cause.code === 'cancelled')) {
      ctx.notice(`the run is NOT protected: ${(cause as Error).message}`)
      return undefined
    }
    const { hint } = cause as SavepointError
    throw new SavepointError(
      'command.failed-to-start',
      `Cannot start the command: the snapshot before it failed (${(cause as Error).message})`,
      {
        hint: `${hint ? `${hint}. ` : ''}--unprotected starts it anyway`,
        cause,
      },
    )
  }
}

/** The state after. A target that the run itself deleted or replaced is part of what it did, and can be undone. */
async function finish(ctx: Context, run: Run, before: Snapshot, movedTo: Buffer | undefined): Promise<Snapshot> {
  return withTimelineLock(ctx, 'take the final snapshot', () => finishLocked(ctx, run, before, movedTo))
}

function describeGone(path: Buffer): string {
  const obstacle = obstacleAt(path)
  const word = quoteWord(showPath(rawFromBytes(path)))
  return obstacle
    ? `the run put ${obstacle} in the place of the target directory; to take that back: mv ${word} ${word}.aside; savepoint undo -t ${word}`
    : 'the run deleted the target directory; `savepoint undo` makes it again'
}

async function finishLocked(ctx: Context, run: Run, before: Snapshot, movedTo?: Buffer): Promise<Snapshot> {
  const from = ctx.targetPath
  const moved = movedTo && !statDir(from) ? movedTo : undefined
  if (moved) followTarget(ctx, moved)
  const place = movedTo && showPath(rawFromBytes(movedTo))
  if (moved) ctx.notice(`the run moved the target directory to ${place}; undo moves it back`)
  const stat = statDir(ctx.targetPath)
  if (stat && !sameIdentity(identityOf(stat), ctx.identity)) {
    ctx.notice(`the run replaced the target directory by another one${place ? `; the old one is at ${place}` : ''}`)
    ctx.identity = identityOf(stat)
    writeTarget({ id: ctx.timelineId, directory: ctx.timelineDir, path: ctx.targetPath, identity: ctx.identity })
  }
  if (!stat) ctx.notice(describeGone(ctx.targetPath))
  if (stat) await recoverPending(ctx)
  // What was protected before the run stays so to its end: a run that widens the ignore rules must not hide what it did.
  const live = stat
    ? await captureLive(ctx, { override: before.root, readOwned: true, ignoreFloor: true })
    : await captureGone(ctx, before)
  await addKept(ctx, run.id)
  closeSpool(ctx, run.id)
  const head = ctx.db.head
  const unchanged = live.root === before.root && head === before.id
  const after = unchanged
    ? before
    : addSnapshot(ctx, live, { type: 'final', run: run.id, command: quoteCommand(run.command) })
  ctx.db.addOperation({
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
      ...(moved && moveDetail(from, moved)),
    },
    rule: undefined,
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
    const after = before && before.deletedAt === undefined ? await finishLocked(ctx, run, before) : undefined
    ctx.db.endRun(run.id, { endedAt: ctx.now(), signal: 'SIGKILL', after: after?.id })
    ctx.notice(`${run.id} ended without us: what is there now counts as its end`)
  }
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

const blankRun = (ctx: Context): Omit<Run, 'id' | 'command' | 'cwd'> => ({
  startedAt: ctx.now(),
  endedAt: undefined,
  exitCode: undefined,
  signal: undefined,
  pid: process.pid,
  before: undefined,
  after: undefined,
})
