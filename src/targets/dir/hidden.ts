/** Paths that a restore leaves as they are because ignore rules hid them: for its report. */
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
