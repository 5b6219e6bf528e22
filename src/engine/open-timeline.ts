/** Opens a timeline's database, and makes it anew from its readable rows where it is damaged and that was asked for. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isDamage, SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { logBeside } from '../timeline/logged-rows.ts'
import { salvagedIn, salvageTimeline } from '../timeline/salvage-timeline.ts'
import { TimelineDb } from '../timeline/timeline-db.ts'
import type { RegisteredTarget } from './target-registry.ts'

/** Set in a new timeline: nothing tells for certain of all snapshots of the old one (lost-roots.ts). */
export const ROOTS_UNKNOWN = 'roots_unknown'

const fileIn = (directory: string): string => join(directory, 'timeline.sqlite')

export function openTimeline(directory: string): TimelineDb {
  const lost = lossOf(directory)
  if (lost !== undefined) {
    throw new SavepointError('store.damaged', `Cannot open the timeline: ${fileIn(directory)} is ${lost}`, {
      hint: `Nothing was deleted. Bring it back from a backup; or \`savepoint verify --repair\` makes a new one of what is found without it: snapshots and tags, not runs and operations. Other directories can be protected and restored meanwhile; \`gc\`, \`verify\` and \`purge\` need every timeline`,
    })
  }
  return new TimelineDb(fileIn(directory))
}

/**
 * Whether a database is gone that was there: an empty history must not be begun in its place unasked, and nothing that its
 * snapshots need may be freed. A target gets its (empty) file before its record, so a record without one is a loss; an empty
 * one is, too, where something has been captured.
 */
function lossOf(directory: string): 'missing' | 'empty' | undefined {
  const has = (name: string) => existsSync(join(directory, name))
  const stat = statSync(fileIn(directory), { throwIfNoEntry: false })
  if (!stat) return has('target.json') || has('statcache') ? 'missing' : undefined
  return stat.size === 0 && holdsHistory(directory) ? 'empty' : undefined
}

/** Whether something has been captured here, whatever is left of the rest. */
export const holdsHistory = (directory: string): boolean =>
  ['statcache', 'runs', 'snapshots.log'].some(name => existsSync(join(directory, name)))

/** The same after a look for damage. Called under the timeline's lock. */
export function openTimelineRepaired(directory: string, notice: (text: string) => void): TimelineDb {
  try {
    const db = openTimeline(directory)
    if (db.unwritable || db.damage() === undefined) return db
    db.close()
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  const lost = lossOf(directory)
  const { snapshots, logged, aside } = salvageTimeline(fileIn(directory))
  notice(`${fileIn(directory)} ${lost === undefined ? salvaged(snapshots, logged, aside) : found(lost, logged, aside)}`)
  const db = openTimeline(directory)
  // Its last lines may never have reached the disk, and others be damaged: what they told of is looked for in any case.
  db.setMeta(ROOTS_UNKNOWN, '1')
  return db
}

const salvaged = (snapshots: number, logged: number, aside: string): string => {
  const how = logged > 0 ? ` or found in snapshots.log (${logged})` : ''
  return `was damaged: ${plural('snapshot', snapshots)} could be read${how} and are in a new one; the damaged one is kept as ${aside}`
}

const found = (lost: string, logged: number, aside: string): string =>
  logged > 0
    ? `was ${lost}: ${plural('snapshot', logged)} and their tags were found in snapshots.log, and are in a new one; runs and operations are lost. What it does not tell of is looked for in the packs. Nothing is freed until you delete ${aside}`
    : `was ${lost}, and snapshots.log tells of no snapshot: its tags, runs and operations are lost, and a new timeline begins. What its snapshots held is looked for in the packs. Nothing is freed until you delete ${aside}`

type Timeline = { target: Pick<RegisteredTarget, 'directory' | 'path'>; db: TimelineDb }

/** Snapshots that could not be read, or are not known here, are still in the store. Nothing may be freed until somebody says that they may go. */
export function refuseLosses(timelines: readonly Timeline[], purpose: string): void {
  for (const { target, db } of timelines) refuseLost(target.directory, db, purpose)
  const [found] = timelines.flatMap(({ target }) => salvagedIn(target.directory).map(aside => ({ aside, target })))
  if (!found) return
  const { aside, target } = found
  const of = quoteWord(showPath(rawFromBytes(target.path)))
  throw new SavepointError(
    'store.damaged',
    `Cannot ${purpose}: ${aside} may know of snapshots that could not be read`,
    {
      hint: `Nothing was deleted. If what \`savepoint log -t ${of}\` shows is all that is needed, delete ${aside}; else bring timeline.sqlite back from a backup`,
    },
  )
}

/** The same of one timeline that is older than its log. */
export function refuseLost(directory: string, db: TimelineDb, purpose: string): void {
  const lost = db.lost.ids()
  if (lost.length === 0) return
  throw new SavepointError(
    'store.damaged',
    `Cannot ${purpose}: ${fileIn(directory)} is older than snapshots.log beside it, and lacks ${plural('snapshot', lost.length)}`,
    {
      hint: `Nothing was deleted. \`savepoint verify --repair\` brings back what it lacks; if they are not needed, delete ${logBeside(fileIn(directory))}`,
    },
  )
}

const WHY_OLDER = 'its -wal file was lost, or an older copy was put in its place'

/** For whoever opens it. */
export const lossNoticed = (directory: string, db: TimelineDb): string | undefined =>
  db.lost.hasSome()
    ? `${fileIn(directory)} lacks snapshots that snapshots.log beside it tells of: ${WHY_OLDER}. \`savepoint verify --repair\` brings back what it lacks`
    : undefined

/** For `verify`. */
export function lossProblem({
  target: { directory },
  db,
}: Timeline): { what: string; snapshots: string[] } | undefined {
  const snapshots = db.lost.ids()
  const lacks = `${fileIn(directory)} lacks ${plural('snapshot', snapshots.length)} that snapshots.log beside it tells of: ${WHY_OLDER}`
  return snapshots.length === 0
    ? undefined
    : { what: `${lacks}. \`savepoint verify --repair\` brings back what it lacks`, snapshots }
}

/** Their rows from the log; says what was done. Called under the timeline's lock; afterwards the log is to be written anew. */
export function bringBackLost({ target: { directory }, db }: Timeline): string[] {
  const found = db.lost.bringBack()
  if (found === 0) return []
  // As of a lost one: the last lines of the log may never have reached the disk.
  db.setMeta(ROOTS_UNKNOWN, '1')
  return [
    `${plural('snapshot', found)} that ${fileIn(directory)} lacked brought back from snapshots.log, with their tags; runs and operations of that time are lost`,
  ]
}
