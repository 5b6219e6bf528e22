/** When a run last touched each path by a call that was told: whatever changed a file later came through a descriptor, or from others. */
import { parentOf, type Raw } from '../model/raw-path.ts'
import type { PathOp } from '../tracers/frames.ts'

/** With more paths than this, nothing is known of any. */
const MAX_PATHS = 200_000
const moves: ReadonlySet<PathOp> = new Set(['rename', 'exchange', 'delete'])

export class LastTouches {
  private readonly paths = new Map<Raw, number>()
  private readonly moved = new Map<Raw, number>()
  private isFull = false

  /** Paths relative to the target. */
  note(op: PathOp, at: number, ...paths: (Raw | undefined)[]): void {
    for (const path of paths) {
      if (path === undefined || this.isFull) continue
      // What was opened before the command began may be written at any time.
      const until = op === 'inherited' ? Infinity : at
      this.paths.set(path, Math.max(until, this.paths.get(path) ?? 0))
      if (moves.has(op)) this.moved.set(path, at)
    }
    if (this.paths.size > MAX_PATHS) this.forget()
  }

  /** Undefined: never, or nobody knows. */
  of(path: Raw): number | undefined {
    let last = this.paths.get(path)
    // Moving or removing a directory touches all that is in it.
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) {
      const at = this.moved.get(above)
      if (at !== undefined && !(last !== undefined && last >= at)) last = at
    }
    return last
  }

  private forget(): void {
    this.isFull = true
    this.paths.clear()
    this.moved.clear()
  }
}
