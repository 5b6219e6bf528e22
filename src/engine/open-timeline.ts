/** Opens a timeline's database, and makes it anew from its readable rows where it is damaged and that was asked for. */
import { join } from 'node:path'
import { isDamage, SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { salvagedIn, salvageTimeline } from '../timeline/salvage-timeline.ts'
import { TimelineDb } from '../timeline/timeline-db.ts'

const fileIn = (directory: string): string => join(directory, 'timeline.sqlite')

export const openTimeline = (directory: string): TimelineDb => new TimelineDb(fileIn(directory))

/** The same after a look for damage. Called under the timeline's lock. */
export function openTimelineRepaired(directory: string, notice: (text: string) => void): TimelineDb {
  try {
    const db = openTimeline(directory)
    if (db.unwritable || db.damage() === undefined) return db
    db.close()
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  const { snapshots, aside } = salvageTimeline(fileIn(directory))
  notice(
    `${fileIn(directory)} was damaged: ${plural('snapshot', snapshots)} could be read and are in a new one; the damaged one is kept as ${aside}`,
  )
  return openTimeline(directory)
}

/** Snapshots that could not be read are still in the store. Nothing may be freed until somebody says that they may go. */
export function refuseSalvaged(directories: readonly string[], purpose: string): void {
  const [aside] = directories.flatMap(salvagedIn)
  if (aside === undefined) return
  throw new SavepointError(
    'store.damaged',
    `Cannot ${purpose}: ${aside} may know of snapshots that could not be read`,
    {
      hint: `Nothing was deleted. If what \`savepoint log\` shows is all that is needed, delete ${aside}; else bring timeline.sqlite back from a backup`,
    },
  )
}
