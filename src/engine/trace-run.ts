/** Runs the command of a run under the tracer that works here, and records what it does. */
import { isUnwritable, SavepointError } from '../errors/errors.ts'
import type { RedactPatterns } from '../model/redact.ts'
import type { Traced } from '../tracers/helper.ts'
import { hasHelper } from '../tracers/probe-helper.ts'
import { type ChosenTracer, selectTracer, traitsOf } from '../tracers/select.ts'
import { type Context, ownRun, RUN_VARIABLE } from './context.ts'
import { openSpool } from './kept-files.ts'
import { LiveRun } from './live-run.ts'
import { HeldChanges, type Protection } from './protect.ts'
import type { TraceSummary } from './results.ts'
import { type ChildEnd, supervise } from './run-child.ts'
import type { RunSession } from './run-session.ts'
import type { RunOptions } from './savepoint.ts'
import type { Started } from './started-command.ts'
import { saveTraceSummary } from './touched-paths.ts'
import { TraceRecorder } from './trace-recorder.ts'
import { watchedTree } from './watched-tree.ts'

/** The number of the command's own execution. */
const FIRST = 1

export interface RunTracer extends Pick<ChosenTracer, 'name'> {
  /** Programs inside cannot gain any (sudo). */
  withoutPrivileges: boolean
  /** Something to say at the start. */
  notice?: string
}

/** Which one a run will use. Throws when one is named that does not work here: then nothing is to be started. */
export function tracerFor(ctx: Context, options: RunOptions): RunTracer {
  const { disable_exec, tracer } = ctx.config.tracing
  try {
    const wanted = options.tracer ?? (disable_exec ? 'none' : tracer)
    const { name, probes } = selectTracer(wanted, options.tracer === undefined ? configHint : optionHint)
    // Of a run in a run the outer one sees it all.
    if (wanted === 'auto' && !ownRun(ctx)) sayFallback(ctx, name, probes[0]!.detail)
    const { withoutPrivileges } = probes.at(-1)!
    if (!withoutPrivileges) return { name, withoutPrivileges }
    if (!options.allowSudo) return { name, withoutPrivileges, notice: withoutSudo }
    if (options.tracer !== undefined && options.tracer !== 'auto')
      throw new SavepointError('usage', `the tracer ${name} takes special rights away, and --allow-sudo wants them`, {
        hint: 'Leave out one of --tracer and --allow-sudo',
      })
    return { name: 'none', withoutPrivileges: false, notice: withSudo }
  } catch (cause) {
    const { message, hint } = cause as SavepointError
    throw new SavepointError('command.failed-to-start', `Cannot start the command: ${message}`, { hint, cause })
  }
}

const optionHint = 'Leave out --tracer, or take another one: `savepoint doctor` says which work here'
const configHint = 'Leave tracing.tracer at auto, or set it to none; `savepoint doctor` says which work here'
const withoutSudo =
  'sudo and other set-user-id programs have no special rights inside this run; --allow-sudo gives them back, without tracing'
const withSudo =
  'sudo works inside this run (--allow-sudo): commands are not traced, no snapshot is taken before what destroys, changes are only watched'

function sayFallback(ctx: Context, name: RunTracer['name'], reason: string): void {
  if (name === 'none') ctx.notice(`commands are not traced, changes are only watched: ${reason}`)
  else if (!traitsOf(name).seesChanges)
    ctx.notice(`commands are traced (${name}), but not which of them changes a file: ${reason}`)
}

/** Whether each change can wait until what it changes is safe. */
export const canHoldChanges = (ctx: Context, { name }: RunTracer, { allowIoUring }: RunOptions): boolean =>
  name === 'seccomp' && !allowIoUring && ownRun(ctx) === undefined

export async function superviseTraced(
  ctx: Context,
  { name, notice }: RunTracer,
  /** Without a snapshot to go back to, none are taken on the way. */
  { before, pending }: Protection,
  session: RunSession,
  options: RunOptions,
  patterns: RedactPatterns,
): Promise<{ end: ChildEnd; trace: TraceSummary | undefined }> {
  const { run } = session
  const isProtected = before !== undefined || pending !== undefined
  session.tracer = name
  const child = {
    cwd: ctx.cwd,
    env: { ...ctx.env, [RUN_VARIABLE]: run.id },
    inherited: options.inherited,
    run: run.id,
    onStarted: (started: Started) => session.attach(started),
  }
  // Said now: the terminal is the command's until it ends.
  if (notice) ctx.notice(notice)
  // Inside another run that one sees it all; and without a snapshot to go back to, none on the way are of use.
  const isUnseen = name === 'none' && (ownRun(ctx) !== undefined || !isProtected || !hasHelper())
  if (isUnseen) return { end: await supervise(options.command, child), trace: undefined }
  const later: string[] = []
  const say = (text: string) => {
    if (!later.includes(text)) later.push(text)
  }
  const quiet: Context = { ...ctx, notice: say, warn: say, progress: undefined }
  const { seesChanges, canHold } = traitsOf(name)
  const isWhole = seesChanges && !options.allowIoUring
  // Who sees no changes has them watched; on a Mac nobody does.
  const isWatching = !seesChanges && isProtected && name !== 'eslogger'
  // The outer run may hold it.
  if (!canHold && name !== 'none' && isProtected && !ownRun(ctx) && LiveRun.heldPrograms(ctx))
    ctx.notice(`the tracer ${name} cannot hold a destructive command: no snapshot is taken right before one`)
  const recorder = new TraceRecorder(quiet, run.id, patterns, lines => session.tell(lines))
  const spool = isProtected && seesChanges ? attempt(() => openSpool(ctx, run.id)) : undefined
  // Without it the helper does not know what to hold.
  if (pending && spool === undefined) await pending.snapshot
  if (pending?.failure) throw pending.failure
  const changes = pending && spool !== undefined ? new HeldChanges(ctx.targetPath, pending) : undefined
  const live = new LiveRun(quiet, run.id, {
    release: exec => {
      if (exec === FIRST && changes) void changes.mayBegin.then(() => command?.release(exec))
      else command?.release(exec)
    },
    // What comes in unseen makes the rest worth nothing.
    look: async onBarrier => {
      if (isWhole) return command?.look(onBarrier)
      // What is watched is a hint that something changed; what it was, only a look at everything tells.
      if (isWatching) await command?.barrier().then(onBarrier)
      return undefined
    },
    barrier: async () => command?.barrier(),
    note: (exec, text) => recorder.note(exec, text),
    isInside: event => recorder.isInside(event),
  })
  if (!seesChanges && !isWatching) live.goBlind()
  if (pending) live.waitFor(pending.snapshot)
  session.traceSoFar = async () => {
    await command?.barrier()
    recorder.save()
    return isWhole && !isCut && recorder.isComplete
  }
  let command: Traced | undefined
  let isCut = false
  let isBegun = false
  let end: ChildEnd
  let summary: ReturnType<TraceRecorder['finish']>
  try {
    end = await supervise(options.command, {
      ...child,
      trace: {
        driver: name,
        protect: ctx.home,
        watch: isWatching ? watchedTree(ctx) : undefined,
        allowIoUring: options.allowIoUring ?? false,
        spool,
        hold: isProtected ? LiveRun.heldPrograms(ctx) : undefined,
        holdsChanges: changes !== undefined,
        onStart: started => {
          command = started
          void pending?.snapshot.then(() => {
            // What waits must not go on when it is not safe.
            if (pending.failure) void started.stop(0)
            else started.begun()
            isBegun = true
          })
          if (name === 'none') live.follow(started.helperPid)
        },
        onEvent(event) {
          recorder.add(event)
          if (event.type === 'path') changes?.handle(event, hold => command?.release(hold))
          if (isProtected) live.handle(event)
        },
        onBatch: () => recorder.settle(),
        onHelperDied() {
          isCut = true
          live.goBlind()
          pending?.preserved.giveUp()
          // Nothing holds its changes any more.
          if (changes && !isBegun) void command?.stop(0)
          say('the tracer was killed: the command went on, and from there on nothing is traced')
        },
      },
    })
  } finally {
    await live.close()
    summary = recorder.finish()
    for (const text of later) ctx.notice(text)
  }
  const trace: TraceSummary = { tracer: name, ...summary, snapshots: live.taken, survivors: end.survivors }
  // Whoever asks later whose a change was must know whether anything is missing.
  if (isWhole && recorder.isWhole && !isCut) saveSummary(ctx, run.id, trace)
  return { end, trace }
}

/** Without room for it, nothing that is destroyed can be kept; the run goes on. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!isUnwritable(error)) throw error
    return undefined
  }
}

function saveSummary(ctx: Context, run: string, trace: TraceSummary): void {
  // Without it the trace is not relied on.
  attempt(() => saveTraceSummary(ctx, run, trace))
}
