/** Runs the command of a run under its tracer, if it can be. */
import type { RedactPatterns } from '../model/redact.ts'
import { hasHelper } from '../tracers/probe-helper.ts'
import { traitsOf } from '../tracers/select.ts'
import { type Context, RUN_VARIABLE } from './context.ts'
import { ifWritable } from './if-writable.ts'
import { isInOuterRun } from './outer-run.ts'
import { isProtected, lastCall, type Protection } from './protect.ts'
import { type ChildEnd, supervise } from './run-child.ts'
import type { RunSession } from './run-session.ts'
import { type RunTracer, saidAtStart } from './run-tracer.ts'
import type { RunOptions } from './savepoint.ts'
import { openSpool } from './spool.ts'
import type { Started } from './started-command.ts'
import type { Settled, Supervised } from './supervised.ts'
import type { TargetPlace } from './target-place.ts'
import { noteBlind } from './touched-paths.ts'
import { TracedRun } from './trace-run.ts'

export async function superviseTraced(
  ctx: Context,
  tracer: RunTracer,
  protection: Protection,
  session: RunSession,
  place: TargetPlace,
  options: RunOptions,
  patterns: RedactPatterns,
): Promise<Supervised> {
  const { run } = session
  const { name } = tracer
  session.tracer = name
  if (!traitsOf(name).seesChanges || options.allowIoUring) ifWritable(() => noteBlind(ctx, run.id))
  const child = {
    cwd: ctx.cwd,
    env: { ...ctx.env, [RUN_VARIABLE]: run.id },
    inherited: options.inherited,
    session,
    onStarted(started: Started) {
      session.attach(started)
      protection.pending?.preserved.begin()
    },
    onEnded: (end: ChildEnd) => session.commandEnded(end),
  }
  // Said now: the terminal is the command's until it ends.
  for (const text of saidAtStart(tracer, protection.takesSnapshots, options)) ctx.notice(text)
  // Inside another run that one sees it all; and without snapshots nobody needs to know that something changed.
  const isUnseen = name === 'none' && (isInOuterRun(ctx) || !protection.takesSnapshots || !hasHelper())
  if (isUnseen) {
    await lastCall(ctx, protection, options)
    return { end: await supervise(options.command, child), settle: async () => ({ trace: undefined }) }
  }
  const spool =
    isProtected(protection) && traitsOf(name).seesChanges ? ifWritable(() => openSpool(ctx, run.id)) : undefined
  // Without it the helper does not know what to hold.
  const { pending } = protection
  if (pending && spool === undefined) {
    pending.preserved.begin()
    await pending.snapshot
  }
  if (pending?.failure) throw pending.failure
  const traced = new TracedRun(ctx, name, protection, session, place, options, patterns, spool)
  try {
    await lastCall(ctx, protection, options)
    const end = await supervise(options.command, { ...child, trace: traced.options() })
    const endedAt = ctx.now()
    await traced.end()
    let settled: Promise<Settled> | undefined
    return {
      end,
      displacedBy: place.isDisplacedByRun ? 'run' : traced.isComplete ? 'others' : undefined,
      commit: traced.pendingCommit,
      settle: () => (settled ??= traced.settle(end, endedAt)),
    }
  } catch (error) {
    await traced.close()
    throw error
  }
}
