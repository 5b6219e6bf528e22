/**
 * The snapshot before a run. In a small tree the command waits for it. In a large one that takes long, it begins meanwhile,
 * where the tracer sees each change before it is made: a change then waits until what it changes is safe (preserved.ts).
 */
import { setTimeout as pause, setImmediate } from 'node:timers/promises'
import { cancelled, SavepointError } from '../errors/errors.ts'
import { isWithin, type Raw, rawFromBytes } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { pausepoint } from '../store/failpoint.ts'
import { type Change, Preserved } from '../targets/dir/preserved.ts'
import type { PathEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import { sayWhoWrites } from './current-writer.ts'
import type { RunOptions } from './savepoint.ts'
import { takeSnapshot } from './snapshot.ts'
import { noteSubvolume } from './target-dataset.ts'

/** In a tree with fewer files and directories than this, the command waits: it is not for long. */
const LARGE = 1000
/** In one that was large the last time, so long: whatever makes a capture impossible shows by then. */
const PATIENCE_MS = 40

export interface Protection {
  /** There already. */
  before: Snapshot | undefined
  /** Still being taken. */
  pending: PendingSnapshot | undefined
  /** Whether there are to be snapshots on the way. */
  takesSnapshots: boolean
}

export interface PendingSnapshot {
  /** Does not reject. Undefined when it failed and the run goes on without. */
  snapshot: Promise<Snapshot | undefined>
  /** Set when it failed and the run must not go on. */
  failure: SavepointError | undefined
  preserved: Preserved
  /** The command will not begin: nobody needs it. */
  cancel(): void
  /** What was to be said while the terminal was the command's. */
  notices: string[]
}

/** `mayBeginEarly`: whether the tracer can hold each change. */
export async function protect(
  ctx: Context,
  run: Run,
  options: RunOptions,
  mayBeginEarly: boolean,
): Promise<Protection> {
  const { disabled, triggers } = ctx.config.snapshots
  if (disabled || triggers.disable_pre_run) {
    const end = 'turned off by the configuration: this run cannot be undone'
    ctx.notice(disabled ? `snapshots are ${end}` : `the pre-run snapshot is ${end}; there are only those on the way`)
    return { before: undefined, pending: undefined, takesSnapshots: !disabled }
  }
  const preserved = mayBeginEarly ? new Preserved() : undefined
  const notices: string[] = []
  const large = Promise.withResolvers<void>()
  const onFound = (count: number) => count >= LARGE && large.resolve()
  const stop = new AbortController()
  const taking = take(ctx, run, options, preserved, notices, onFound, stop)
  if (!preserved) return taken(await taking)
  if (lastSize(ctx) >= LARGE) void pause(PATIENCE_MS).then(large.resolve)
  const done = await Promise.race([taking.then(before => ({ before })), large.promise])
  if (done) return taken(done.before)
  preserved.start()
  const pending: PendingSnapshot = {
    preserved,
    notices,
    failure: undefined,
    cancel() {
      stop.abort()
      preserved.begin()
    },
    snapshot: taking.catch(error => {
      pending.failure = error as SavepointError
      return undefined
    }),
  }
  return { before: undefined, pending, takesSnapshots: true }
}

/** Without a snapshot to go back to, none on the way could be taken either. */
const taken = (before: Snapshot | undefined): Protection => ({
  before,
  pending: undefined,
  takesSnapshots: before !== undefined,
})

const lastSize = ({ db }: Context): number => (db.head === undefined ? 0 : (db.snapshot(db.head)?.files ?? 0))

/** When it fails, the command is not started, unless the user said that this is fine. */
async function take(
  ctx: Context,
  run: Run,
  options: RunOptions,
  preserved: Preserved | undefined,
  notices: string[],
  onFound: (count: number) => void,
  stop: AbortController,
): Promise<Snapshot | undefined> {
  const isBegun = () => preserved?.isStarted === true
  // Once the command has begun, the terminal and its keys are the command's.
  const onAbort = () => !isBegun() && stop.abort()
  ctx.signal?.addEventListener('abort', onAbort, { once: true })
  if (ctx.signal?.aborted) stop.abort()
  const say = (told: (text: string) => void) => (text: string) => (isBegun() ? void notices.push(text) : told(text))
  // It shows the state of now, however long it takes.
  const at = ctx.now()
  // Also for the end of the run, which is told from this context.
  noteSubvolume(ctx)
  const own: Context = {
    ...ctx,
    now: () => at,
    notice: say(ctx.notice),
    warn: say(ctx.warn),
    signal: stop.signal,
    onWaiting: () => !isBegun() && sayWhoWrites(ctx),
    progress(progress) {
      onFound(progress.entries ?? 0)
      if (!isBegun()) ctx.progress?.(progress)
    },
  }
  try {
    const command = quoteCommand(run.command)
    const before = await takeSnapshot(own, { type: 'pre-run', run: run.id, command, preserved })
    ctx.db.setRunState(run.id, 'before', before.id)
    return before
  } catch (cause) {
    if (options.unprotected && !(cause instanceof SavepointError && cause.code === 'cancelled')) {
      void preserved?.close()
      own.notice(`the run is NOT protected: ${(cause as Error).message}`)
      return undefined
    }
    const { hint } = cause as SavepointError
    const what = isBegun() ? 'The command was stopped' : 'Cannot start the command'
    throw new SavepointError(
      'command.failed-to-start',
      `${what}: the snapshot before it failed (${(cause as Error).message})`,
      { hint: `${hint ? `${hint}. ` : ''}--unprotected starts it anyway`, cause },
    )
  } finally {
    ctx.signal?.removeEventListener('abort', onAbort)
  }
}

/**
 * Right before the command is there. Until then a Ctrl-C reaches nobody but us, and while we are busy we are not told: two turns
 * of the event loop have one look at signals between them.
 */
export async function lastCall({ signal }: Context, { pending }: Protection, { onLaunch }: RunOptions): Promise<void> {
  await pausepoint('run:launching')
  await setImmediate()
  await setImmediate()
  if (signal?.aborted) {
    pending?.cancel()
    await pending?.snapshot
    const message = 'Cannot start the command: it was cancelled before'
    throw new SavepointError('command.failed-to-start', message, { cause: cancelled() })
  }
  onLaunch?.()
}

/** What the run destroys on the way is kept beside a snapshot of before. */
export const isProtected = ({ before, pending }: Protection): boolean => before !== undefined || pending !== undefined

/** Lets the changes of a run go on, each when what it changes is safe. */
export class HeldChanges {
  private readonly targetPath: Buffer
  private readonly pending: PendingSnapshot
  private readonly inherited: Promise<void>[] = []

  constructor(targetPath: Buffer, pending: PendingSnapshot) {
    this.targetPath = targetPath
    this.pending = pending
  }

  handle(event: PathEvent, release: (hold: number) => void): void {
    const { op, hold } = event
    if (op !== 'inherited' && hold === undefined) return
    const safe = this.pending.preserved.secure(changeOf(this.targetPath, event))
    // What could not be made safe waits for the end of the capture, which says why.
    if (op === 'inherited') this.inherited.push(safe.catch(() => this.pending.snapshot.then(() => {})))
    else
      safe.then(
        () => release(hold!),
        () => {},
      )
  }

  /** What the command was given to write must be safe before it begins. */
  get mayBegin(): Promise<unknown> {
    return Promise.all(this.inherited)
  }
}

const everything: Change = { paths: [''], shared: [], subtrees: [] }

/** What must be safe before a change is made. */
function changeOf(targetPath: Buffer, event: PathEvent): Change {
  const target = rawFromBytes(targetPath)
  const { op, path, to, directory, existed, linked, isUnknown } = event
  const isMove = op === 'rename' || op === 'exchange'
  const both = [path, to].filter(each => each !== undefined)
  const inside = both.filter(each => isWithin(each, target))
  // Other names of the file may lie anywhere; the target itself may go.
  const isShared = linked && inside.length < both.length
  // What is in a directory that leaves could not be noted one by one, should we be killed (state-before.ts).
  const isLeaving = isMove && directory && inside.length < both.length && (op === 'exchange' || inside[0] === path)
  if (isUnknown || isShared || isLeaving || (isMove && both.some(each => isWithin(target, each)))) return everything
  const relative = (each: Raw) => each.slice(target.length + 1)
  // Its attributes decide whether what is in it can be read.
  const gone = directory && (isMove || op === 'delete' || op === 'attributes') ? [path] : []
  const replaced = directory && (op === 'exchange' || (op === 'rename' && existed)) ? [to] : []
  return {
    paths: inside.map(relative),
    shared: linked ? inside.map(relative) : [],
    subtrees: [...gone, ...replaced]
      .filter(each => each !== undefined && isWithin(each, target))
      .map(each => relative(each!)),
    into: isMove && directory ? relative(to!) : undefined,
  }
}
