/**
 * `run`: a snapshot before, the command with the terminal handed through untouched, a snapshot after, and one operation
 * that `undo` takes back. The lock is held only while capturing, so other commands work meanwhile.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { redactFlags } from '../config/config.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import type { Change } from '../model/entry.ts'
import { idToHex } from '../model/id.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { redactCommand } from '../model/redact.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { countChanges, sameMetadata, treeChanges } from '../store/tree-diff.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { identityOf, sameIdentity, statDir } from '../targets/dir/dir-target.ts'
import { captureLive, type Live } from './capture-live.ts'
import { type Context, RUN_VARIABLE, withTimelineLock } from './context.ts'
import { newOperation } from './new-operation.ts'
import { recoverPending } from './recover.ts'
import type { RunResult } from './results.ts'
import type { RunOptions } from './savepoint.ts'
import { addSnapshot, takeSnapshot } from './snapshot.ts'
import { writeTarget } from './target-registry.ts'

export async function runCommand(ctx: Context, options: RunOptions): Promise<RunResult> {
  const [program] = options.command
  if (!program)
    throw new SavepointError('usage', 'Cannot run: no command was given', { hint: 'savepoint run -- COMMAND…' })
  const command = redactCommand(options.command, redactPatterns(ctx))
  const run = record(ctx, command)
  try {
    return await carryOut(ctx, run, options)
  } catch (error) {
    // Not started: the run is over, or `runs` would show it as running for ever.
    if (startCodes.has((error as SavepointError).code)) {
      const { exitCode } = error as SavepointError
      ctx.db.endRun(run.id, { endedAt: ctx.now(), exitCode, signal: undefined, after: undefined })
    }
    throw error
  }
}

/** The configuration is checked when it is read: these are regular expressions. */
const redactPatterns = (ctx: Context) => ctx.config.tracing.redact.map(source => new RegExp(source, redactFlags))

/** On a full disk even this fails: then nothing was started. */
function record(ctx: Context, command: string[]): Run {
  try {
    return ctx.db.addRun({ ...blankRun(ctx), command, cwd: showPath(rawFromBytes(ctx.cwd)) })
  } catch (cause) {
    const message = `Cannot start the command: the run cannot be recorded (${(cause as Error).message})`
    throw new SavepointError('command.failed-to-start', message, {
      hint: `Is there room on the disk of ${ctx.home}?`,
      cause,
    })
  }
}

const startCodes: ReadonlySet<string> = new Set([
  'command.not-found',
  'command.not-executable',
  'command.failed-to-start',
])

async function carryOut(ctx: Context, run: Run, options: RunOptions): Promise<RunResult> {
  const before = await protect(ctx, run, options)
  options.onStart?.(run, before)
  const { code, signal } = await supervise(options.command, ctx, run.id)
  const after = before && (await finish(ctx, run, before).catch(error => sayUncaptured(ctx, before, error)))
  ctx.db.endRun(run.id, { endedAt: ctx.now(), exitCode: code, signal, after: after?.id })
  if (!after) noteUnprotected(ctx, run)
  const trees = before && after && [rootTreeOf(ctx.store, before.root), rootTreeOf(ctx.store, after.root)]
  return {
    run: { ...run, before: before?.id, after: after?.id, endedAt: ctx.now(), exitCode: code, signal },
    exitCode: signal ? 128 + (constants.signals[signal as NodeJS.Signals] ?? 0) : (code ?? 1),
    signal,
    before,
    after,
    changes: before && after ? changesOf(ctx, before, after) : [],
    counts: trees ? countChanges(ctx.store, trees[0], trees[1]) : { added: 0, modified: 0, deleted: 0 },
  }
}

/** Stands in the list of operations, so that `undo` stops here and does not take back something older. */
function noteUnprotected(ctx: Context, run: Run): void {
  ctx.db.addOperation({
    ...newOperation(ctx, 'run', `${run.id}: ${quoteCommand(run.command)}`),
    state: 'fixed',
    detail: { run: run.id, unprotected: true },
  })
}

/** The directory itself, when its mode or owner changed, and what lies in it. */
function changesOf(ctx: Context, before: Snapshot, after: Snapshot): Change[] {
  const [old, now] = [rootEntryOf(ctx.store, before.root), rootEntryOf(ctx.store, after.root)]
  const own: Change[] = sameMetadata(old, now) ? [] : [{ kind: 'metadata', path: '', before: old, after: now }]
  return [...own, ...treeChanges(ctx.store, old.content, now.content)]
}

/** The command has run and its exit code is the answer, also when the state after it cannot be stored. */
function sayUncaptured(ctx: Context, before: Snapshot, error: unknown): undefined {
  if (!(error instanceof SavepointError)) throw error
  ctx.notice(`the state after the run is NOT captured: ${error.message}; to go back: savepoint rollback ${before.id}`)
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
async function finish(ctx: Context, run: Run, before: Snapshot): Promise<Snapshot> {
  return withTimelineLock(ctx, 'take the final snapshot', () => finishLocked(ctx, run, before))
}

async function finishLocked(ctx: Context, run: Run, before: Snapshot): Promise<Snapshot> {
  const stat = statDir(ctx.targetPath)
  if (stat && !sameIdentity(identityOf(stat), ctx.identity)) {
    ctx.notice('the run replaced the target directory by another one')
    ctx.identity = identityOf(stat)
    writeTarget({ id: ctx.timelineId, directory: ctx.timelineDir, path: ctx.targetPath, identity: ctx.identity })
  }
  if (!stat) ctx.notice('the run deleted the target directory; `savepoint undo` makes it again')
  if (stat) await recoverPending(ctx)
  // What was protected before the run stays so to its end: a run that widens the ignore rules must not hide what it did.
  const live = stat
    ? await captureLive(ctx, { override: before.root, readOwned: true, ignoreFloor: true })
    : await captureGone(ctx, before)
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
    detail: { run: run.id, before_root: idToHex(before.root), after_root: idToHex(after.root) },
    rule: undefined,
  })
  return after
}

/**
 * A run whose supervisor was killed has no end. What is there now counts as its end, so that it can be undone like any
 * other. Called under the timeline's lock.
 */
export async function closeKilledRuns(ctx: Context): Promise<void> {
  for (const run of ctx.db.runs()) {
    if (run.endedAt !== undefined || isAlive(run.pid)) continue
    const before = run.before === undefined ? undefined : ctx.db.snapshot(run.before)
    const after = before && before.deletedAt === undefined ? await finishLocked(ctx, run, before) : undefined
    ctx.db.endRun(run.id, { endedAt: ctx.now(), signal: 'SIGKILL', after: after?.id })
    ctx.notice(`${run.id} ended without us: what is there now counts as its end`)
  }
}

function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) === 'EPERM'
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
      cache: { dirs: new Map(), rootKey: '', root: '' },
      changed: true,
      unsettled: false,
      files: 0,
      emptyDirs: 0,
      bytes: 0,
      skipped: [],
      newBytes: writer.newBytes,
    }
  } finally {
    writer.close()
  }
}

/** The terminal is the command's: keys that interrupt go to it, and we outlive them to take the last snapshot. */
async function supervise(
  command: string[],
  ctx: Context,
  runId: string,
): Promise<{ code: number | undefined; signal: string | undefined }> {
  const [program, ...args] = command
  const ignore = () => {}
  const ignored: NodeJS.Signals[] = ['SIGINT', 'SIGQUIT']
  const forwarded: NodeJS.Signals[] = ['SIGTERM', 'SIGHUP']
  let child: ChildProcess | undefined
  const forward = (signal: NodeJS.Signals) => child?.kill(signal)
  for (const signal of ignored) process.on(signal, ignore)
  for (const signal of forwarded) process.on(signal, forward)
  try {
    return await new Promise((resolve, reject) => {
      child = spawn(program!, args, {
        stdio: 'inherit',
        cwd: directoryOf(ctx),
        env: { ...ctx.env, [RUN_VARIABLE]: runId },
      })
      child.on('error', error => reject(cannotStart(program!, ctx, error)))
      child.on('exit', (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }))
    })
  } finally {
    for (const signal of ignored) process.off(signal, ignore)
    for (const signal of forwarded) process.off(signal, forward)
  }
}

/** spawn takes text only. A directory that is not UTF-8 can be our own, which the child inherits. */
function directoryOf(ctx: Context): string | undefined {
  const text = ctx.cwd.toString()
  return Buffer.from(text).equals(ctx.cwd) ? text : undefined
}

function cannotStart(program: string, ctx: Context, error: NodeJS.ErrnoException): SavepointError {
  // spawn says the same for a program and for a directory that does not exist.
  if (error.code === 'ENOENT' && !existsSync(ctx.cwd)) {
    return new SavepointError(
      'command.failed-to-start',
      `Cannot run ${program}: the current directory does not exist any more`,
      { cause: error },
    )
  }
  // A directory of PATH that may not be entered gives EACCES for a program that is nowhere.
  if (error.code === 'ENOENT' || (error.code === 'EACCES' && isNowhere(program, ctx.env))) {
    return new SavepointError('command.not-found', `Cannot run ${program}: command not found`, { cause: error })
  }
  if (error.code === 'EACCES') {
    return new SavepointError('command.not-executable', `Cannot run ${program}: it is not executable`, {
      hint: `chmod +x ${program}`,
      cause: error,
    })
  }
  return new SavepointError('command.failed-to-start', `Cannot run ${program}: ${error.message}`, { cause: error })
}

const isNowhere = (program: string, env: NodeJS.ProcessEnv): boolean =>
  !program.includes('/') && !(env.PATH ?? '').split(':').some(directory => existsSync(join(directory || '.', program)))

const blankRun = (ctx: Context): Omit<Run, 'id' | 'command' | 'cwd'> => ({
  startedAt: ctx.now(),
  endedAt: undefined,
  exitCode: undefined,
  signal: undefined,
  pid: process.pid,
  before: undefined,
  after: undefined,
})
