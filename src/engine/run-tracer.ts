/** Which tracer a run uses, and what is to be said of it at the start. */
import { SavepointError } from '../errors/errors.ts'
import { type ChosenTracer, selectTracer, traitsOf } from '../tracers/select.ts'
import { type Context, ownRun } from './context.ts'
import { isInOuterRun } from './outer-run.ts'
import type { RunOptions } from './savepoint.ts'

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
    const hint = options.tracer === undefined ? configHint : optionHint
    const { name, probes } = selectTracer(wanted, hint, options.inherited?.probed)
    // Of a run in a run the outer one sees it all.
    if (wanted === 'auto' && !isInOuterRun(ctx)) sayFallback(ctx, name, probes[0]!.detail)
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

export const saidAtStart = (
  { name, notice }: RunTracer,
  takesSnapshots: boolean,
  { allowIoUring }: RunOptions,
): string[] => [
  ...(notice === undefined ? [] : [notice]),
  ...(allowIoUring && takesSnapshots && traitsOf(name).seesChanges ? [withIoUring] : []),
]

const withIoUring =
  'io_uring works inside this run (--allow-io-uring): its changes are not seen, and found by looking at everything'
const optionHint = 'Leave out --tracer, or take another one: `savepoint doctor` says which work here'
const configHint = 'Leave tracing.tracer at auto, or set it to none; `savepoint doctor` says which work here'
const withoutSudo =
  'sudo and other set-user-id programs have no special rights inside this run; `run --allow-sudo` gives them back, without tracing'
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
