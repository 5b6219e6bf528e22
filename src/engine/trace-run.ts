/** Runs the command of a run under the tracer that works here, and records what it does. */
import type { Run } from '../model/snapshot.ts'
import { selectTracer } from '../tracers/select.ts'
import { type Context, RUN_VARIABLE } from './context.ts'
import type { TraceSummary } from './results.ts'
import { type ChildEnd, supervise } from './run-child.ts'
import type { RunOptions } from './savepoint.ts'
import { TraceRecorder } from './trace-recorder.ts'

export async function superviseTraced(
  ctx: Context,
  run: Run,
  options: RunOptions,
  patterns: readonly RegExp[],
): Promise<{ end: ChildEnd; trace: TraceSummary | undefined }> {
  const child = { cwd: ctx.cwd, env: { ...ctx.env, [RUN_VARIABLE]: run.id } }
  const wanted = options.tracer ?? (ctx.config.tracing.disable_exec ? 'none' : ctx.config.tracing.tracer)
  const { name } = selectTracer(wanted)
  if (name === 'none') return { end: await supervise(options.command, child), trace: undefined }
  const recorder = new TraceRecorder(ctx, run.id, patterns)
  let end: ChildEnd
  let summary: ReturnType<TraceRecorder['finish']>
  try {
    end = await supervise(options.command, {
      ...child,
      trace: {
        allowIoUring: options.allowIoUring ?? false,
        onEvent: event => recorder.add(event),
        onBatch: () => recorder.settle(),
        onPrivilegesOff: () => ctx.notice('sudo and other set-user-id programs have no special rights inside this run'),
        onHelperDied: () =>
          ctx.notice('the tracer was killed: the command goes on, and from here on nothing is traced'),
      },
    })
  } finally {
    summary = recorder.finish()
  }
  return { end, trace: { tracer: name, ...summary, survivors: end.survivors } }
}
