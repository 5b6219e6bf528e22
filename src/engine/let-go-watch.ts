/** Looks from time to time what the processes of a run have let go of, as long as there is something that they may hold. */
import { shownAt } from '../backends/mounts-below.ts'
import type { Held } from '../tracers/trace-event.ts'
import type { LastTouches } from './last-touches.ts'

const CHECK_MS = 2000
/** What a server holds all the time is looked at this seldom: every so many checks. */
const MAX_PAUSE = 16

export class LetGoWatch {
  private readonly touches: () => LastTouches
  private readonly look: () => Promise<Held | undefined>
  private readonly places: () => Buffer[]
  private readonly timer: NodeJS.Timeout
  private pause = 1
  private left = 0
  private isLooking = false

  /** `look` gives what is held when all that happened before has been told; `places`: of the target. */
  constructor(touches: () => LastTouches, look: () => Promise<Held | undefined>, places: () => Buffer[]) {
    this.touches = touches
    this.look = look
    this.places = places
    this.timer = setInterval(() => void this.check(), CHECK_MS).unref()
  }

  close(): void {
    clearInterval(this.timer)
  }

  private async check(): Promise<void> {
    const { letGo, safeAt } = this.touches()
    if (letGo.takeNews()) this.pause = this.left = 0
    if (letGo.count === 0 || this.isLooking || this.left-- > 0) return
    const done = letGo.done(Date.now(), safeAt)
    if (done.size === 0) return
    this.isLooking = true
    const held = await this.look()
    this.isLooking = false
    const isAll = done.size === letGo.count
    const isLess = held !== undefined && letGo.settle(done, held, this.places().flatMap(shownAt), Date.now())
    // The others were touched just now.
    this.pause = isLess || !isAll ? 0 : Math.min(MAX_PAUSE, this.pause * 2 + 1)
    this.left = this.pause
  }
}
