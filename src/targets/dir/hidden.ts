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
