/** Paths that a restore leaves as they are because they were not captured: for its report. */
import type { Entry, UnknownReason } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'

/** How many paths are listed of those that rules hid: a directory full of them must not fill a report. */
const LISTED_HIDDEN = 100

export class Hidden {
  count = 0
  readonly paths: Raw[] = []

  add(path: Raw): void {
    this.count++
    if (this.paths.length < LISTED_HIDDEN) this.paths.push(path)
  }
}

export interface Uncaptured {
  path: Raw
  reason: UnknownReason
}

/** Notes a path that stays, by what its `unknown` entry says of it. */
export function noteStaying(
  report: { hidden: Hidden; uncaptured: Uncaptured[] },
  path: Raw,
  { reason = 'excluded' }: Entry,
): void {
  if (reason === 'excluded') report.hidden.add(path)
  else report.uncaptured.push({ path, reason })
}

export interface LeftAlone {
  path: Raw
  why:
    | 'edited' // changed by somebody else since the operation that is being undone
    | 'not-stored' // its live content could not be stored, so it must not be overwritten
    | 'no-room' // the same, and only because the disk is full
    | 'mounted' // the same, because something is mounted there
    | 'subvolume' // the same, because it is a nested subvolume
    | 'holds-uncaptured' // a directory that holds files which are not ours to remove
    | 'refused' // in a directory of somebody else that this user may not change
    | 'attributes' // restored, but for its owner or other attributes, which the system refused
    | 'in-the-way' // a file or a link where a directory was, of which only something inside is wanted
    | 'only-copy' // the run moved it there from where nothing is captured
    | 'outside' // changed by somebody outside of the run that is being undone
    | 'purged' // its content was purged since: whether it is still the operation's cannot be told
    | 'overlapped' // changed while somebody else was at work, too: whose it is cannot be told
}

/** Whether it stands in the way of an undo. What was never the operation's does not. */
export const isInTheWay = ({ why }: LeftAlone): boolean => why !== 'outside'

/**
 * Notes a path whose live content is not stored: it is neither overwritten nor deleted. What is merely to be deleted counts as
 * left alone only when it should have been stored; what is too large or mounted is said to stay; what rules leave out is nobody's.
 */
export function noteUnstored(
  report: { leftAlone: LeftAlone[]; uncaptured: Uncaptured[] },
  path: Raw,
  { reason }: Entry,
  isReplaced: boolean,
): void {
  if (reason === 'no-room') report.leftAlone.push({ path, why: 'no-room' })
  else if (isReplaced && reason === 'mount') report.leftAlone.push({ path, why: 'mounted' })
  else if (isReplaced || reason === 'unreadable' || reason === 'unstable')
    report.leftAlone.push({ path, why: 'not-stored' })
  else if (isSaidToStay(reason)) report.uncaptured.push({ path, reason })
}

export const isSaidToStay = (reason: UnknownReason | undefined): reason is 'too-large' | 'mount' =>
  reason === 'too-large' || reason === 'mount'
