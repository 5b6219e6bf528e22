/**
 * What can be asked of a live run: one table of operations, each with its parameters and what carries it out. The run's
 * process does it, because it is the timeline's writer; results are those of the library.
 */
import { z } from 'zod'
import { SavepointError } from '../errors/errors.ts'
import { rawToBytes } from '../model/raw-path.ts'
import { nameCommand } from '../model/shell-quote.ts'
import { snapshotTypes } from '../model/snapshot.ts'
import { nearest } from '../model/suggest.ts'
import { findRun, withHeadOfNow } from '../timeline/resolve-ref.ts'
import { type Context, RUN_VARIABLE } from './context.ts'
import type { Asked } from './control-server.ts'
import { takesBackEnded } from './live-runs.ts'
import { orAborted } from './or-aborted.ts'
import { placeInTarget } from './place-in-target.ts'
import type { RestoreResult, UndoResult } from './results.ts'
import { revert } from './revert.ts'
import { requireRun, rollback } from './rollback.ts'
import type { RunSession } from './run-session.ts'
import { takeSnapshot } from './snapshot.ts'
import { holdingOthers, stopOthers } from './stop-others.ts'
import { wouldStop } from './through-live-run.ts'
import { redo, undo, undoOfRun } from './undo.ts'
import { haveEventsWritten } from './unwritten-events.ts'

/** One request, as an operation sees it. */
interface Call extends Asked {
  session: RunSession
  /** It comes from a process of the run itself, which then is not stopped. */
  isInside: boolean
  ctx: Context
}

interface Operation<Input> {
  input: z.ZodType<Input>
  handle(call: Call, input: Input): Promise<{ result: unknown } | undefined>
}

/** Where the caller stands, as raw bytes; default: at the root of the target. */
const place = { cwd: z.string().max(65_536).optional(), force: z.boolean().optional() }
const paths = z.array(z.string()).max(100_000).optional()
const going = { keepRunning: z.boolean().optional(), restart: z.boolean().optional() }
const walk = { all: z.boolean().optional() }
const turn = z
  .strictObject({
    agent: z.string(),
    session: z.string(),
    number: z.int(),
    event: z.string(),
    tool: z.string().optional(),
  })
  .optional()
const dry = { dryRun: z.boolean().optional() }

const operation = <Shape extends z.ZodRawShape>(
  shape: Shape,
  handle: Operation<z.output<z.ZodObject<Shape, z.core.$strict>>>['handle'],
): Operation<unknown> => ({ input: z.strictObject({ ...place, ...shape }), handle }) as unknown as Operation<unknown>

const done = async (work: Promise<unknown>) => ({ result: await work })

export const operations: Record<string, Operation<unknown>> = {
  status: operation({}, async ({ session: { run, tracer } }) => ({
    result: { run: run.id, command: run.command, startedAt: run.startedAt, pid: process.pid, tracer },
  })),

  snapshot: operation(
    {
      label: z.string().optional(),
      type: z.enum(snapshotTypes).optional(),
      run: z.string().optional(),
      turn,
      onlyIfChanged: z.boolean().optional(),
    },
    ({ ctx, session, isInside }, input) =>
      done(
        takeSnapshot(ctx, {
          type: input.type ?? 'manual',
          label: input.label,
          turn: input.turn && { ...input.turn, tool: input.turn.tool },
          onlyIfChanged: input.onlyIfChanged,
          run: input.run === undefined ? (isInside ? session.run.id : undefined) : requireRun(ctx, input.run).id,
        }),
      ),
  ),

  rollback: operation(
    {
      ref: z.string(),
      paths,
      withoutGit: z.boolean().optional(),
      noSafety: z.boolean().optional(),
      run: z.string().optional(),
      ...dry,
      ...walk,
      ...going,
    },
    async (call, { ref, keepRunning, restart, ...options }) => {
      const { ctx, session } = call
      const meant = withHeadOfNow(ctx.db, ref)
      const work = () => rollback(ctx, meant, options)
      if (options.dryRun) return done(lookOnly(call, keepRunning, work, naming))
      if (call.isInside || keepRunning || takesBackEnded(ctx, { ref, restart, run: options.run }))
        return done(besideRuns(call, work))
      const isOwn = findRun(ctx.db, options.run ?? ref)?.id === session.run.id
      if (isOwn) await requireBefore(call)
      // Nothing is stopped for something that cannot be done.
      else await rollback(quietly(ctx), ref, { ...options, dryRun: true })
      if (!isOwn) await stopOthers(ctx, session.run.id, `rollback ${ref}`)
      return stopFor(call, `rollback ${ref}`, restart, work)
    },
  ),

  undo: operation({ ...dry, ...walk, ...going }, async (call, { all, dryRun, keepRunning, restart }) => {
    const work = () => undo(call.ctx, { all, dryRun })
    const isStopped = !call.isInside && !keepRunning
    if (dryRun && isStopped) {
      const { ctx, session } = call
      return done(lookOnly(call, false, () => undoOfRun(ctx, session.run, { all }), namingInside))
    }
    if (dryRun) return done(work())
    if (!isStopped) return done(besideRuns(call, work))
    await requireBefore(call)
    // In a subdirectory it may be refused: nothing is stopped for that.
    if (call.ctx.subdirectory !== '' && !all) await undoOfRun(quietly(call.ctx), call.session.run, {})
    return stopFor(call, 'undo', restart, work)
  }),

  redo: operation(walk, (call, { all }) => done(undisturbed(call, () => redo(call.ctx, { all })))),

  revert: operation({ path: z.string(), from: z.string().optional() }, (call, { path, from }) =>
    done(undisturbed(call, () => revert(call.ctx, path, { from }))),
  ),

  trace: operation({}, async ({ session, send, signal }) => {
    const following = session.follow(lines => {
      for (const line of lines.split('\n')) if (line !== '') send({ event: JSON.parse(line) })
    }, signal)
    // What was executed before this stands in exec.jsonl.
    send({ event: { type: 'following' } })
    await following
    return { result: undefined }
  }),

  /** For those who read the timeline themselves. */
  save: operation({}, async ({ session }) => ({ result: (await session.traceSoFar()) !== undefined })),

  hold: operation({}, async ({ session, isInside, send, signal }) => {
    if (isInside) throw new SavepointError('run.inside', `Cannot hold ${session.run.id} still: this is a process of it`)
    await session.frozen(async () => {
      // Whoever takes something back asks the timeline what this run has touched.
      await session.traceSoFar()
      send({ event: { type: 'held' } })
      if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
    })
    return { result: undefined }
  }),

  shutdown: operation({ why: z.string().max(1000).optional() }, async (call, { why }) => {
    if (call.isInside)
      throw new SavepointError('run.inside', `Cannot stop ${call.session.run.id}: this is a process of it`)
    return stopFor(call, why ?? 'shutdown', false, async () => undefined)
  }),
}

/** Undefined: the run is over, and nothing was done. */
export async function carryOut(session: RunSession, asked: Asked): Promise<{ result: unknown } | undefined> {
  if (session.isOver) return undefined
  const { op, ...parameters } = asked.request as Record<string, unknown>
  const found = typeof op === 'string' && Object.hasOwn(operations, op) ? operations[op] : undefined
  if (!found) {
    const meant = nearest(String(op), Object.keys(operations))
    throw new SavepointError('usage', `Cannot do "${op}": there is no such operation`, {
      hint: meant ? `Did you mean "${meant}"?` : `Known: ${Object.keys(operations).join(', ')}`,
    })
  }
  const parsed = found.input.safeParse(parameters)
  if (!parsed.success) throw wrongParameters(op as string, found, parsed.error)
  const { cwd, force } = parsed.data as { cwd?: string; force?: boolean }
  const isInside = session.isInside(asked.pid)
  const ctx = contextFor(session, asked, isInside, cwd, force)
  const work = found.handle({ ...asked, session, isInside, ctx }, parsed.data)
  return session.track(work).finally(() => followTarget(ctx, session.ctx))
}

/** The target was made again, or moved: whoever goes on with it must know. */
function followTarget(from: Context, to: Context): void {
  to.targetPath = from.targetPath
  to.identity = from.identity
}

/** The run's context, seen from where the caller stands. Its configuration is the run's. */
function contextFor(
  { ctx, run, traceSoFar }: RunSession,
  { send, signal }: Asked,
  isInside: boolean,
  cwd: string | undefined,
  force: boolean | undefined,
): Context {
  const directory = cwd === undefined ? ctx.targetPath : rawToBytes(cwd)
  const said = new Set<string>()
  const notice = (text: string) => send({ notice: text })
  return {
    ...ctx,
    cwd: directory,
    subdirectory: placeInTarget(ctx.targetPath, directory) ?? '',
    env: { ...ctx.env, [RUN_VARIABLE]: isInside ? run.id : undefined },
    force: force ?? false,
    notice,
    alarm: notice,
    warn: text => {
      if (!said.has(text)) notice(text)
      said.add(text)
    },
    progress: progress => send({ progress }),
    signal,
    onUnstoppable: unstoppable => send({ unstoppable }),
    held: undefined,
    session: { run: run.id, traceSoFar },
  }
}

/** A process of the run that asks waits for the answer; the others, if they are not asking, must not write meanwhile. */
const undisturbed = <T>({ isInside, session }: Call, work: () => Promise<T>): Promise<T> =>
  isInside ? work() : session.frozen(work)

/** The same with every run, unless one of them asks; and what they have touched until then is known: that stays. */
const besideRuns = <T>(call: Call, work: () => Promise<T>): Promise<T> =>
  call.isInside
    ? haveEventsWritten(call.ctx).then(work)
    : holdingOthers(call.ctx, call.session.run.id, () => undisturbed(call, () => call.session.traceSoFar().then(work)))

const quietly = (ctx: Context): Context => ({ ...ctx, notice: () => {}, alarm: () => {}, warn: () => {} })

/** Nothing is stopped for it; what would be is said, and stands in the result. */
async function lookOnly<T>(
  { isInside, session, ctx }: Call,
  keepRunning: boolean | undefined,
  work: () => Promise<T>,
  name: (result: T, stopped: string[]) => T,
): Promise<T> {
  if (isInside || keepRunning) return work()
  ctx.notice(wouldStop(session.run))
  return name(await work(), [session.run.id])
}

const naming = (result: RestoreResult, wouldStop: string[]): RestoreResult => ({ ...result, wouldStop })
const namingInside = (result: UndoResult, wouldStop: string[]): UndoResult => ({
  ...result,
  restore: result.restore && naming(result.restore, wouldStop),
})

async function stopFor<T>(
  { session, ctx }: Call,
  why: string,
  restart: boolean | undefined,
  work: () => Promise<T>,
): Promise<{ result: T } | undefined> {
  const { id, command } = session.run
  return session.stopThen({ why, restart: restart === true }, () => {
    // Where the run has left it.
    followTarget(session.ctx, ctx)
    ctx.notice(`stopped ${id} (${nameCommand(command)})${restart ? '; it is started again' : ''}`)
    return work()
  })
}

/**
 * What would be taken back must be there, before anything is stopped for it. The state before may still be being captured:
 * until then the run does nothing more.
 */
async function requireBefore({ session, ctx: { signal } }: Call): Promise<void> {
  const { ctx, run } = session
  await session.frozen(() => orAborted(session.beginning, signal))
  const { before } = ctx.db.runs().find(({ id }) => id === run.id)!
  if (before !== undefined && ctx.db.snapshot(before)) return
  throw new SavepointError('snapshot.unknown', `Cannot take back ${run.id}: its first snapshot does not exist`, {
    hint: '`savepoint snapshots` lists what there is',
  })
}

function wrongParameters(op: string, { input }: Operation<unknown>, error: z.ZodError): SavepointError {
  const [issue] = error.issues
  const known = Object.keys((input as unknown as z.ZodObject).shape)
  if (issue?.code === 'unrecognized_keys') {
    const [key] = issue.keys
    const meant = nearest(key!, known)
    return new SavepointError('usage', `Cannot do ${op}: it has no parameter "${key}"`, {
      hint: meant ? `Did you mean "${meant}"?` : `Known: ${known.join(', ')}`,
    })
  }
  return new SavepointError('usage', `Cannot do ${op}: ${issue?.path.join('.')}: ${issue?.message}`, {
    hint: `Known: ${known.join(', ')}`,
  })
}
