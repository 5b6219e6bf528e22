/**
 * What only a filesystem has of a snapshot that it keeps: what belongs to the state and was not captured, because it is too
 * large or could not be read. What rules exclude is only there, too, but by somebody's wish no part of a snapshot.
 */
import { plural } from './format.ts'
import { showPath } from './raw-path.ts'
import type { Skipped } from './snapshot.ts'

const LISTED_PATHS = 5
const LISTED_SNAPSHOTS = 3
const LISTED_GROUPS = 5

/** "model.bin (too-large), pgdata (unreadable) and 2 more". `count`: how many there are; `paths` may be cut off. */
export function leftOutText(paths: readonly Skipped[], count: number): string {
  const names = paths.slice(0, LISTED_PATHS).map(({ path, reason }) => `${showPath(path)} (${reason})`)
  return listed(names, count, LISTED_PATHS)
}

/** A snapshot that something beside the store keeps, until that goes. */
export interface LosingSnapshot {
  snapshot: string
  /** What nothing has then; the list may be cut off. */
  lost: readonly Skipped[]
  lostCount: number
}

/** "model.bin (too-large) of snap_a, snap_b; pgdata (unreadable) of snap_c"; '' where nothing is lost. */
export function lostText(snapshots: readonly LosingSnapshot[]): string {
  const losing = snapshots.filter(({ lostCount }) => lostCount > 0)
  // Mostly the same large files are in all of them.
  const groups = [...Map.groupBy(losing, ({ lost, lostCount }) => leftOutText(lost, lostCount))]
  const texts = groups.map(([what, of]) => {
    const names = of.map(({ snapshot }) => snapshot)
    return `${what} of ${listed(names, names.length, LISTED_SNAPSHOTS)}`
  })
  const more = groups.slice(LISTED_GROUPS).reduce((sum, [, { length }]) => sum + length, 0)
  return [...texts.slice(0, LISTED_GROUPS), ...(more > 0 ? [`more of ${plural('snapshot', more)}`] : [])].join('; ')
}

const listed = (names: readonly string[], count: number, most: number): string =>
  names.slice(0, most).join(', ') + (count > most ? ` and ${count - most} more` : '')
