/** Files outside of the target that a run changed and that are still there: they are only counted. */
import { isWithin, type Raw } from '../model/raw-path.ts'

/** They are counted up to here. */
const MAX_OUTSIDE = 100_000
/** Not files that anybody would want back. */
const nowhere = ['/dev', '/proc', '/sys', '/run']

export class OutsidePaths {
  private readonly inside: readonly Raw[]
  private readonly paths = new Set<Raw>()

  /** `inside`: directories that are none of its business. */
  constructor(inside: readonly Raw[]) {
    this.inside = [...inside, ...nowhere]
  }

  get size(): number {
    return this.paths.size
  }

  note(path: Raw, isGone: boolean): void {
    if (this.inside.some(directory => isWithin(path, directory))) return
    if (isGone) this.paths.delete(path)
    else if (this.paths.size < MAX_OUTSIDE) this.paths.add(path)
  }
}
