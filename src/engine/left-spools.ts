/**
 * Spools that runs have left: what they destroyed, and the store had no room for when they ended, or they could not be captured
 * at all. Nobody would take it up any more, and it takes the very room that is missing. Whoever makes room, or begins a run, takes
 * up what fits; what does not is named, and never goes by itself.
 */
import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf, isDiskFull, SavepointError } from '../errors/errors.ts'
import { formatBytes, plural } from '../model/format.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Run } from '../model/snapshot.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { type Context, withTimelineLock } from './context.ts'
import { addKept } from './kept-files.ts'
import { spooled } from './kept-spool.ts'
import { openTimeline } from './open-timeline.ts'
import { closeSpool } from './spool.ts'
import { allTargets, type RegisteredTarget } from './target-registry.ts'

export interface LeftSpool {
  run: Run
  place: string
  files: number
  bytes: number
}

/** Of the runs of a timeline that have ended. */
export function leftSpools(directory: string, db: TimelineDb): LeftSpool[] {
  return db.runs().flatMap(run => {
    const place = join(directory, 'runs', run.id, 'kept')
    if (run.endedAt === undefined || !existsSync(place)) return []
    return [{ run, place, files: spooled(place).length, bytes: bytesIn(place) }]
  })
}

/** Of a run that could not be captured, one may be left that nothing is in. */
const waitingIn = (directory: string, db: TimelineDb): LeftSpool[] =>
  leftSpools(directory, db).filter(({ files }) => files > 0)

const bytesIn = (place: string): number =>
  readdirSync(place).reduce(
    (sum, name) => sum + (lstatSync(join(place, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  )

/** Not under the timeline's lock. Should there be no room, nothing is lost. */
export async function takeUpLeft(ctx: Context): Promise<void> {
  if (ctx.unwritable || leftSpools(ctx.timelineDir, ctx.db).length === 0) return
  await withTimelineLock(ctx, 'take up what runs have destroyed', async () => {
    for (const { run, place, files } of leftSpools(ctx.timelineDir, ctx.db)) {
      try {
        await addKept(ctx, run.id, 'over')
      } catch (error) {
        if (!isDiskFull(error)) throw error
      }
      const left = spooled(place).length
      if (left === 0) closeSpool(ctx, run.id)
      if (left < files)
        ctx.notice(
          `${plural('file', files - left)} that ${run.id} destroyed found room in the store: savepoint snapshots ${run.id}`,
        )
    }
  })
}

/** For who waits for room, of this timeline. */
export function sayWhatIsLeft(ctx: Context): void {
  for (const left of waitingIn(ctx.timelineDir, ctx.db)) ctx.warn(`${describeLeft(left)}; ${hintOfLeft()}`)
}

/** The same of all others. */
export function sayWhatOthersLeft(ctx: Context): void {
  for (const { target, left } of leftEverywhere(ctx.home))
    if (target.id !== ctx.timelineId) ctx.warn(`${describeLeft(left)}; ${hintOfLeft(target)}`)
}

/** What cannot be read is left out: others say so. */
export function leftEverywhere(home: string): { target: RegisteredTarget; left: LeftSpool }[] {
  return targetsWithSpools(home).flatMap(target => {
    let db: TimelineDb | undefined
    try {
      db = openTimeline(target.directory)
      return waitingIn(target.directory, db).map(left => ({ target, left }))
    } catch (error) {
      if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
      return []
    } finally {
      db?.close()
    }
  })
}

/** Without a look at their databases, as most have none. */
function targetsWithSpools(home: string): RegisteredTarget[] {
  const has = ({ directory }: RegisteredTarget) => {
    const runs = join(directory, 'runs')
    return existsSync(runs) && readdirSync(runs).some(run => existsSync(join(runs, run, 'kept')))
  }
  try {
    return allTargets(home).filter(has)
  } catch (error) {
    if (!errnoOf(error)) throw error
    return []
  }
}

export const describeLeft = ({ run, place, files, bytes }: LeftSpool): string =>
  `${plural('file', files)} that ${run.id} destroyed ${files === 1 ? 'waits' : 'wait'} for room in the store, in ${quoteWord(place)} (${formatBytes(bytes)})`

export const hintOfLeft = (target?: RegisteredTarget): string => {
  const where = target ? ` -t ${quoteWord(showPath(rawFromBytes(target.path)))}` : ''
  return `with room for one of them \`savepoint gc${where}\` takes them up; or move them elsewhere`
}
