/**
 * Calls of a run whose paths could not be read: of a process that does not let itself be looked at (undumpable), as some agents are. What
 * they changed is found by when that was: right after a call.
 */
import type { PathEvent } from '../tracers/trace-event.ts'

/** More of them, and nothing can be told apart any more. */
const MAX_CALLS = 500_000
/** The clock of files ticks: their times may lie before the call. */
const TICK_MS = 20
/** What changed later after a call than this is not its work. */
const EFFECT_MS = 3000

export class VagueCalls {
  /** When they were made, the first first. */
  private readonly times: number[] = []
  private removedAt: number | undefined

  get count(): number {
    return this.times.length
  }

  get isFull(): boolean {
    return this.times.length >= MAX_CALLS
  }

  note({ at, op }: Pick<PathEvent, 'at' | 'op'>): void {
    if (op === 'delete' || op === 'rename') this.removedAt = at
    // Threads are told in the order in which they are heard.
    if (at > (this.times.at(-1) ?? 0) && !this.isFull) this.times.push(at)
  }

  get first(): number | undefined {
    return this.times[0]
  }

  get last(): number | undefined {
    return this.times.at(-1)
  }

  /** The last call that something which is gone may have gone by. */
  get lastRemoval(): number | undefined {
    return this.removedAt
  }

  /** The call that may have changed something at that time. */
  before(changedAt: number): number | undefined {
    let [low, high] = [0, this.times.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.times[middle]! <= changedAt + TICK_MS) low = middle + 1
      else high = middle
    }
    const at = this.times[low - 1]
    return at !== undefined && changedAt <= at + EFFECT_MS ? at : undefined
  }
}
