/**
 * `run`: a snapshot before, the command with the terminal handed through untouched, a snapshot after, and one operation
 * that `undo` takes back. The lock is held only while capturing, so other commands work meanwhile.
 */
import { errnoOf, isUnwritable, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { redactCommand } from '../model/redact.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import type { FileLock } from '../store/file-lock.ts'
import { countChanges } from '../store/tree-diff.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import { noneUnprotected } from './changed-unprotected.ts'
import { changesOfRun } from './changes-of-run.ts'
import { leftByRun, nothingLeft } from './coming-to-light.ts'
import { type Context, requireWritable, withTimelineLock } from './context.ts'
import { sayWhoWrites } from './current-writer.ts'
import { noneGone } from './gone-unprotected.ts'
import { keptBy } from './kept-files.ts'
import { closeOpenEnds, hasOpenEnds } from './late-end.ts'
import { sayWhatIsLeft, takeUpLeft } from './left-spools.ts'
import { type Protection, protect } from './protect.ts'
import { redactPatterns } from './redact-patterns.ts'
import type { RunResult } from './results.ts'
import { exitCodeOf, runUnrecorded, textOf } from './run-child.ts'
import { openControl } from './run-control.ts'
import { conclude, concludeUncaptured } from './run-end.ts'
import { takeBackFailed } from './run-failure.ts'
import { RunSession } from './run-session.ts'
import { holdRun, setContinued } from './run-state.ts'
import { RunTerminal } from './run-terminal.ts'
import { canHoldChanges, type RunTracer, tracerFor } from './run-tracer.ts'
import type { RunOptions } from './savepoint.ts'
import { servedBy } from './served-target.ts'
import { superviseTraced } from './supervise-traced.ts'
import type { Supervised } from './supervised.ts'
import { displaced } from './target-at-end.ts'
import { TargetPlace } from './target-place.ts'
import { judgeConfig, pinConfig } from './trust.ts'
import { doerOf, unprotectedWork } from './unprotected.ts'

/** How often free memory goes back to the system. */
const TRIM_MS = 20_000

export async function runCommand(ctx: Context, options: RunOptions): Promise<RunResult> {
  const [program] = options.command
  if (!program)
    throw new SavepointError('usage', 'Cannot run: no command was given', { hint: 'savepoint run -- COMMAND…' })
  const command = redactCommand(options.command, redactPatterns(ctx), () =>
    ctx.notice('the patterns of tracing.redact take too long: the arguments of this command are not recorded'),
  )
  const tracer = tracerFor(ctx, options)
  await closeFormer(ctx)
  const terminal = new RunTerminal(ctx.env.TERM)
  for (let before: Run | undefined; ; ) {
    const recorded = await recordOr(ctx, command, before, options)
    if (!('held' in recorded)) return recorded
    const { run, held } = recorded
    const running = runOnce(ctx, tracer, new RunSession(ctx, run, terminal), options)
    const { result, session } = await running.finally(() => held?.release())
    if (!session.stop) return takeBackFailed(ctx, result, options)
    if (!session.stop.restart) return result
    ctx.notice(`${run.id} was stopped for \`savepoint ${session.stop.why}\`, and is started again`)
    before = run
  }
}

/**
 * What is there now is the end of runs that were killed, or whose end could not be captured: later it would be mixed with what this one does, which they would
 * stand above in the list of operations. What keeps it from being recorded will be said of this run, too.
 */
async function closeFormer(ctx: Context): Promise<void> {
  if (ctx.unwritable) return
  try {
    if (hasOpenEnds(ctx))
      await withTimelineLock({ ...ctx, onWaiting: () => sayWhoWrites(ctx) }, 'close an interrupted run', () =>
        closeOpenEnds(ctx),
      )
    await takeUpLeft(ctx)
    sayWhatIsLeft(ctx)
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
  }
}

/** Where nothing can be recorded, and that is fine: the command's result without a run. */
async function recordOr(
  ctx: Context,
  command: string[],
  before: Run | undefined,
  options: RunOptions,
): Promise<Recorded | RunResult> {
  try {
    return record(ctx, command, before)
  } catch (error) {
    if (!options.unprotected) throw error
    options.onStart?.(undefined, undefined)
    options.onLaunch?.()
    const own = { env: ctx.env, onNotice: ctx.notice, inherited: options.inherited }
    return runUnrecorded(options.command, (error as Error).cause as Error, { cwd: textOf(ctx.cwd), ...own })
  }
}

async function runOnce(
  ctx: Context,
  tracer: RunTracer,
  session: RunSession,
  options: RunOptions,
): Promise<{ result: RunResult; session: RunSession }> {
  try {
    return { session, result: await carryOut(ctx, tracer, session, options) }
  } catch (error) {
    if (startCodes.has((error as SavepointError).code) && !session.isConcluded)
      endUnstarted(ctx, session.run, error as SavepointError)
    throw error
  }
}

interface Recorded {
  run: Run
  /** To be released when the run is over, however it ends. */
  held: FileLock | undefined
}

/** On a full disk even this fails: then nothing was started. `before`: the run that it is the new start of. */
function record(ctx: Context, command: string[], before: Run | undefined): Recorded {
  let held: FileLock | undefined
  try {
    requireWritable(ctx)
    const run = ctx.db.transaction(() => {
      const added = ctx.db.addRun({ ...blankRun(ctx), command, cwd: showPath(rawFromBytes(ctx.cwd)) })
      if (before) setContinued(ctx, added.id, before.id)
      held = holdRun(ctx, added.id)
      return added
    })
    return { run, held }
  } catch (cause) {
    held?.release()
    const message = `Cannot start the command: the run cannot be recorded (${(cause as Error).message})`
    throw new SavepointError('command.failed-to-start', message, {
      hint: `${(cause as SavepointError).hint ?? `See that there is room on the disk of ${ctx.home}`}. --unprotected starts it anyway`,
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
    judgeConfig(ctx, run)
  } catch (error) {
    if (!isUnwritable(error)) throw error
  }
}

async function carryOut(ctx: Context, tracer: RunTracer, session: RunSession, options: RunOptions): Promise<RunResult> {
  const { run } = session
  if (options.stop?.aborted)
    throw new SavepointError('command.failed-to-start', 'Cannot start the command: it was cancelled before')
  ctx.seen = { cache: undefined, answers: new Map() }
  const protection = await protect(ctx, run, options, canHoldChanges(ctx, tracer, options))
  try {
    pinConfig(ctx, run)
    return await serveAndSupervise(ctx, tracer, session, protection, options)
  } finally {
    protection.pending?.preserved.begin()
  }
}

/** Others can reach the run while it lasts. */
async function serveAndSupervise(
  ctx: Context,
  tracer: RunTracer,
  session: RunSession,
  protection: Protection,
  options: RunOptions,
): Promise<RunResult> {
  const { run } = session
  session.beginning = Promise.resolve(protection.pending?.snapshot)
  const control = await openControl(ctx, session, options.face?.(servedBy(ctx)))
  const unheard = stopOn(options.stop, session)
  // A run may rest for days after the capture of a large tree.
  const trimming = setInterval(() => addon.trimMemory(), TRIM_MS).unref()
  try {
    options.onStart?.(run, protection.before, protection.pending !== undefined)
    const result = await superviseAndConclude(ctx, tracer, session, protection, options)
    await session.finish()
    return { ...result, stopped: session.stop?.why }
  } finally {
    clearInterval(trimming)
    unheard()
    await session.finish()
    await control.close()
  }
}

/** Returns what ends the listening. */
function stopOn(signal: AbortSignal | undefined, session: RunSession): () => void {
  const stop = () => {
    // Somebody may be stopping it already.
    if (!session.stop) session.stopThen({ why: 'cancellation', restart: false }, async () => undefined)
  }
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop)
  return () => signal?.removeEventListener('abort', stop)
}

async function superviseAndConclude(
  ctx: Context,
  tracer: RunTracer,
  session: RunSession,
  protection: Protection,
  options: RunOptions,
): Promise<RunResult> {
  const place = new TargetPlace(ctx.targetPath)
  const patterns = redactPatterns(ctx)
  const supervised = await superviseTraced(ctx, tracer, protection, session, place, options, patterns)
  try {
    return await concludeRun(ctx, session, protection, place, supervised)
  } finally {
    await supervised.settle()
    place.close()
  }
}

async function concludeRun(
  ctx: Context,
  session: RunSession,
  protection: Protection,
  place: TargetPlace,
  supervised: Supervised,
): Promise<RunResult> {
  const { run } = session
  const { end, displacedBy } = supervised
  const first = protection.before ?? (await protection.pending?.snapshot)
  // Somebody may have purged something meanwhile: the state is another one by now.
  const before = first && (ctx.db.snapshot(first.id) ?? first)
  for (const text of new Set(protection.pending?.notices)) ctx.notice(text)
  const failure = protection.pending?.failure
  if (failure) {
    session.isConcluded = await concludeUncaptured(ctx, run, failure.exitCode)
    throw failure
  }
  const movedTo = place.movedTo()
  const target = ctx.targetPath
  const { after, taken } = await conclude(ctx, run, before, end, { ...supervised, movedTo, places: place.formers() })
  const { trace } = await supervised.settle()
  judgeConfig(ctx, run)
  if (movedTo && !after) {
    const [from, to] = [movedTo, target].map(path => quoteWord(showPath(rawFromBytes(path))))
    ctx.notice(`${displaced('moved', displacedBy)} to ${from}; to take that back: mv ${from} ${to}`)
  }
  const work = before && after && workOf(ctx, run, before, after)
  const changes =
    before && after
      ? changesOfRun(ctx, { ...run, before: before.id, after: after.id }, [
          ...stateChanges(ctx.store, before.root, after.root),
        ])
      : []
  return {
    run: { ...run, before: before?.id, after: after?.id, endedAt: ctx.now(), exitCode: end.code, signal: end.signal },
    exitCode: exitCodeOf(end),
    signal: end.signal,
    before,
    after,
    changes,
    counts: countChanges(changes),
    movedTo:
      ctx.targetPath.equals(target) || displacedBy === 'others' ? undefined : showPath(rawFromBytes(ctx.targetPath)),
    gone: work?.gone ?? noneGone,
    unprotected: work?.changed ?? noneUnprotected,
    ...(before && after ? await leftByRun(ctx, before.root, after.root) : nothingLeft),
    kept: after ? keptBy(ctx, run.id) : { files: 0, snapshots: [] },
    trace: trace && { ...trace, snapshots: trace.snapshots + taken },
  }
}

function workOf(ctx: Context, { id }: Run, { root: before }: Snapshot, { root: after }: Snapshot) {
  const now = rootTreeOf(ctx.store, after)
  return unprotectedWork(ctx, { before: rootTreeOf(ctx.store, before), after: now, now }, doerOf(ctx, id))
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
