/** How often a run gets guard snapshots: a script that removes its own temporary files hundreds of times must not fill the timeline. */

/** Guard snapshots have at least this much between them. */
const SPACING_MS = 2000
/** A script that destroys so often within so long removes temporary files: it gets ever fewer. */
const BURST = 10
const BURST_MS = 10_000

export class GuardPace {
  /** By the execution that started them: when commands would have been guarded, and how many were in a burst of them. */
  private readonly bursts = new Map<number, { times: number[]; at: number; count: number }>()
  private guardedAt = 0
  private guardedBefore = 0

  /** Counts the guard, if it is due. `parent`: the execution that started the command. */
  isDue(parent: number, now: number): boolean {
    const guards = this.bursts.get(parent) ?? { times: [], at: 0, count: 0 }
    this.bursts.set(parent, guards)
    guards.times = [...guards.times.filter(time => now - time < BURST_MS), now].slice(-BURST - 1)
    const isBurst = guards.times.length > BURST
    if (!isBurst) guards.count = 0
    if (now - this.guardedAt < SPACING_MS) return false
    if (isBurst && now - guards.at < SPACING_MS * 2 ** guards.count) return false
    guards.count++
    guards.at = now
    this.guardedBefore = this.guardedAt
    this.guardedAt = now
    return true
  }

  /** There was nothing to take a snapshot of: the next one need not wait. */
  forget(): void {
    this.guardedAt = this.guardedBefore
  }
}
