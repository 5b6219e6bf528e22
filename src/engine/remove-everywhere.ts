/**
 * Removes what filesystems and archives keep and no timeline needs any more, each timeline under its own lock: a filesystem may
 * take its time, and nobody else shall wait for it. What is to go is noted in the timeline. So when we are killed, or stopped, on
 * the way, the next one who removes goes on with it.
 */
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { isCutOff, stoppably } from '../backends/run-program.ts'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { lockFile } from '../store/file-lock.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import type { OpenTimeline } from './all-timelines.ts'
import { knownPlace } from './backend.ts'
import type { Context } from './context.ts'
import { isAnyGoing, removeGoing, statesToGo } from './native-going.ts'
import { openTimeline } from './open-timeline.ts'
import type { RegisteredTarget } from './target-registry.ts'

export interface Removed {
  /** Of each that is gone now: by which backend it was kept. */
  backends: string[]
  /** How many are still there, or may be. */
  left: number
}

/** Called without any lock. */
export async function removeEverywhere(ctx: Context, targets: readonly RegisteredTarget[]): Promise<Removed> {
  const silent = new Set<string>()
  const removed: Removed = { backends: [], left: 0 }
  for (const target of targets) {
    await orStopped(ctx)
    const left = await removeOf(ctx, target, silent, removed.backends).catch(error => {
      if (!(error instanceof SavepointError)) throw error
      ctx.warn(`what nothing needs is still kept: ${error.message}`)
      return 1
    })
    if (left > 0) await orStopped(ctx)
    removed.left += left
  }
  return removed
}

async function orStopped(ctx: Context): Promise<void> {
  // A Ctrl-C has ended what worked for us; that it was one is told only now.
  await setImmediate()
  if (!ctx.signal?.aborted) return
  throw new SavepointError('cancelled', 'Stopped: what nothing needs is still kept', {
    hint: 'What was freed until then stays so; the next savepoint gc goes on with the rest',
  })
}

/** How many of it are left. */
async function removeOf(
  ctx: Context,
  target: RegisteredTarget,
  silent: Set<string>,
  removed: string[],
): Promise<number> {
  const { id, directory } = target
  const wait = { waitMs: ctx.lockWaitMs, signal: ctx.signal }
  using _lock = await lockFile(join(directory, 'lock'), 'exclusive', 'remove what nothing needs', wait)
  const db = id === ctx.timelineId ? ctx.db : openTimeline(directory)
  try {
    const gone = removeGoing(target, db, ctx.warn, silent)
    removed.push(...gone.filter(({ became }) => became === 'removed').map(({ backend }) => backend))
    removeProbes(ctx, db, silent)
    const doubtful = gone.filter(({ became }) => typeof became === 'object')
    return doubtful.length + statesToGo(directory, db).length
  } finally {
    if (db !== ctx.db) db.close()
  }
}

/** What probes left that were killed: whole snapshots, of which no timeline knows. */
function removeProbes(ctx: Context, db: TimelineDb, silent: Set<string>): void {
  const known = knownPlace(db)
  if (!known || silent.has(known.backend.name)) return
  try {
    stoppably(() => known.backend.tidy(known.place))
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    if (isCutOff(error)) silent.add(known.backend.name)
    ctx.warn(`what a probe left may still be there: ${(error as Error).message}`)
  }
}

/** Whether `removeEverywhere` may have anything to do. */
export const mayHaveLeft = ({ db, target }: OpenTimeline): boolean =>
  isAnyGoing(target.directory, db) || knownPlace(db) !== undefined
