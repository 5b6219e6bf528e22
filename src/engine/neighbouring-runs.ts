/**
 * Runs of other targets whose files a restore of this one changes: of directories inside of it, and of those that it lies
 * in. They are stopped or held still as the target's own are; each by its own supervisor, asked over its control socket.
 */
import { isDamage } from '../errors/errors.ts'
import { isWithin, type Raw } from '../model/raw-path.ts'
import { nameCommand } from '../model/shell-quote.ts'
import { type Context, ownRun } from './context.ts'
import { askRun, Unreachable } from './control-client.ts'
import { type LiveRunEntry, liveRuns, liveRunsIn } from './live-runs.ts'
import { openTimeline } from './open-timeline.ts'
import { ancestorsOf, startedIn } from './process-tree.ts'
import { allTargets, type RegisteredTarget, relativeTo } from './target-registry.ts'

/** Newest first: one may be a part of an older one. Not those that this very process belongs to, which would wait for itself. */
export function neighbouringRuns(ctx: Context, scope: readonly Raw[] | undefined): LiveRunEntry[] {
  const own = new Set([ownRun(ctx), ...runsAbove(process.pid)])
  return allTargets(ctx.home)
    .filter(target => target.id !== ctx.timelineId && isConcerned(ctx, target, scope))
    .flatMap(runsOf)
    .filter(({ id }) => !own.has(id))
    .sort((a, b) => b.startedAt - a.startedAt)
}

function isConcerned(ctx: Context, { path }: RegisteredTarget, scope: readonly Raw[] | undefined): boolean {
  const inside = relativeTo(ctx.targetPath, path)
  if (inside === undefined) return relativeTo(path, ctx.targetPath) !== undefined
  return !scope || scope.some(part => isWithin(inside, part) || isWithin(part, inside))
}

/** Those of one target. */
export function runsOf({ directory }: RegisteredTarget): LiveRunEntry[] {
  try {
    const db = openTimeline(directory)
    try {
      return liveRunsIn(db, directory)
    } finally {
      db.close()
    }
  } catch (error) {
    // A history that cannot be read is no reason not to restore another one.
    if (!isDamage(error)) throw error
    return []
  }
}

/** The runs that a process is part of, by what it and those above it were given at their start. */
const runsAbove = (pid: number): (string | undefined)[] => [pid, ...ancestorsOf(pid)].map(startedIn)

/** Asks each to end, and returns when it has. */
export async function stopNeighbours(ctx: Context, runs: readonly LiveRunEntry[], why: string): Promise<void> {
  for (const run of runs) {
    try {
      await askRun(run, { op: 'shutdown', why }, ctx)
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      if (!error.isGone) sayGoesOn(ctx, run, error.message)
    }
  }
}

/** Does `work` while no process of them moves. Should we be killed, they go on: each is held for as long as we are connected. */
export async function holdingNeighbours<T>(
  ctx: Context,
  runs: readonly LiveRunEntry[],
  work: () => Promise<T>,
): Promise<T> {
  const releases: (() => Promise<void>)[] = []
  // Who carries it out must not be held still itself.
  const busy = liveRuns(ctx).flatMap(({ supervisor }) => (supervisor === undefined ? [] : runsAbove(supervisor)))
  try {
    for (const run of runs) {
      if (busy.includes(run.id)) sayGoesOn(ctx, run, 'a run of this directory is a part of it')
      else releases.push(await hold(ctx, run))
    }
    return await work()
  } finally {
    for (const release of releases.reverse()) await release()
  }
}

async function hold(ctx: Context, run: LiveRunEntry): Promise<() => Promise<void>> {
  const end = new AbortController()
  const held = Promise.withResolvers<void>()
  const listener = { ...ctx, progress: undefined, signal: end.signal, onEvent: () => held.resolve() }
  const over = askRun(run, { op: 'hold' }, listener).then(
    () => held.resolve(),
    error => {
      if (error instanceof Unreachable && !error.isGone) sayGoesOn(ctx, run, error.message)
      held.resolve()
    },
  )
  await held.promise
  return () => {
    end.abort()
    return over
  }
}

const sayGoesOn = (ctx: Context, { id, command }: LiveRunEntry, why: string): void =>
  ctx.notice(`${id} (${nameCommand(command)}) goes on: ${why}`)
