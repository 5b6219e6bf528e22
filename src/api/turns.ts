/**
 * So few at a time, in the order in which they came. Whoever has been at it for long is not counted among those, so that
 * others do not wait for its end; all together there are no more than `most`.
 */
import { monotonicMs } from '../model/monotonic.ts'

const PATIENCE_MS = 500

/** Whoever has one gives it back. */
export interface Turn {
  readonly sinceMs: number
}

export class Turns {
  private readonly few: number
  private readonly most: number
  private readonly patienceMs: number
  /** The oldest first. */
  private readonly taken = new Set<Turn>()
  private readonly waiting: ((turn: Turn) => void)[] = []
  private timer: NodeJS.Timeout | undefined

  constructor(few: number, most: number, patienceMs = PATIENCE_MS) {
    this.few = few
    this.most = most
    this.patienceMs = patienceMs
  }

  take(): Promise<Turn> {
    const turn = new Promise<Turn>(resolve => this.waiting.push(resolve))
    this.letBegin()
    return turn
  }

  give(turn: Turn): void {
    this.taken.delete(turn)
    this.letBegin()
  }

  private letBegin(): void {
    clearTimeout(this.timer)
    while (this.waiting.length > 0 && this.taken.size < this.most) {
      const now = monotonicMs()
      const recent = [...this.taken].filter(({ sinceMs }) => now - sinceMs < this.patienceMs)
      if (recent.length >= this.few) {
        // A timer may come a little before its time.
        const leftMs = recent[0]!.sinceMs + this.patienceMs - now
        this.timer = setTimeout(() => this.letBegin(), Math.ceil(leftMs))
        return
      }
      const turn = { sinceMs: now }
      this.taken.add(turn)
      this.waiting.shift()!(turn)
    }
  }
}
