/** So few at a time, in the order in which they came; more, up to `most`, while none of those comes to its end. */

const PATIENCE_MS = 500

export class Turns {
  private readonly few: number
  private readonly most: number
  private readonly patienceMs: number
  private taken = 0
  private readonly waiting: (() => void)[] = []
  private timer: NodeJS.Timeout | undefined

  constructor(few: number, most: number, patienceMs = PATIENCE_MS) {
    this.few = few
    this.most = most
    this.patienceMs = patienceMs
  }

  async take(): Promise<void> {
    if (this.taken < this.few) {
      this.taken++
      return
    }
    const turn = new Promise<void>(resolve => this.waiting.push(resolve))
    this.timer ??= this.awaitEnd()
    await turn
  }

  give(): void {
    const next = this.waiting.shift()
    if (next) next()
    else this.taken--
    clearTimeout(this.timer)
    this.timer = this.awaitEnd()
  }

  private awaitEnd(): NodeJS.Timeout | undefined {
    if (this.waiting.length === 0 || this.taken >= this.most) return undefined
    return setTimeout(() => {
      this.taken++
      this.waiting.shift()?.()
      this.timer = this.awaitEnd()
    }, this.patienceMs)
  }
}
