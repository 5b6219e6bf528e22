/** Notices when a run rests: no new commands for a while, and its processes neither compute nor read nor write much. */
import { readdirSync, readFileSync } from 'node:fs'
import { monotonicMs } from '../model/monotonic.ts'

const CHECK_MS = 5000
/** Of one processor. */
const BUSY_CPU = 0.05
const BUSY_BYTES_PER_S = 64 * 1024
const TICKS_PER_S = 100

export class IdleWatch {
  private readonly thresholdMs: number
  private readonly onIdle: () => void
  private readonly timer: NodeJS.Timeout
  /** Executions that go on, by their number, with the process of each. */
  private readonly running = new Map<number, number>()
  private lastExecMs = monotonicMs()
  private before: { atMs: number; cpuS: number; bytes: number } | undefined
  private isSettled = false
  /** From its rest, by a change alone. */
  private isRoused = false
  private top: number | undefined

  constructor(thresholdMs: number, onIdle: () => void) {
    this.thresholdMs = thresholdMs
    this.onIdle = onIdle
    this.timer = setInterval(() => this.check(), Math.min(CHECK_MS, thresholdMs))
  }

  began(exec: number, pid: number): void {
    this.running.set(exec, pid)
    this.isRoused = false
    this.stirred()
  }

  /** Where executions are not told: what runs below this process is looked up. */
  follow(pid: number | undefined): void {
    this.top = pid
  }

  /** Something happened, though no command began. */
  stirred(): void {
    this.lastExecMs = monotonicMs()
    this.isSettled = false
  }

  /**
   * A file changed, though no command began. While it works that postpones nothing: a log that grows now and then is no
   * work. After a rest it is, and the next rest is when nothing changes any more.
   */
  changed(): void {
    if (!this.isSettled && !this.isRoused) return
    this.isRoused = true
    this.stirred()
  }

  ended(exec: number): void {
    this.running.delete(exec)
  }

  close(): void {
    clearInterval(this.timer)
  }

  private check(): void {
    const pids = this.top === undefined ? new Set(this.running.values()) : descendantsOf(this.top)
    const now = { atMs: monotonicMs(), ...usageOf(pids) }
    const { before } = this
    this.before = now
    if (!before) return
    const seconds = (now.atMs - before.atMs) / 1000
    // Processes that ended take their numbers with them: less than before is nothing.
    const isBusy =
      (now.cpuS - before.cpuS) / seconds > BUSY_CPU || (now.bytes - before.bytes) / seconds > BUSY_BYTES_PER_S
    if (isBusy) this.isSettled = false
    if (isBusy || this.isSettled || now.atMs - this.lastExecMs < this.thresholdMs) return
    this.isSettled = true
    this.onIdle()
  }
}

function descendantsOf(top: number): Set<number> {
  const pids = new Set<number>()
  const queue = [top]
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    try {
      for (const thread of readdirSync(`/proc/${pid}/task`))
        for (const child of readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean)) {
          if (pids.has(Number(child))) continue
          pids.add(Number(child))
          queue.push(Number(child))
        }
    } catch {}
  }
  return pids
}

function usageOf(pids: Iterable<number>): { cpuS: number; bytes: number } {
  let cpuS = 0
  let bytes = 0
  for (const pid of pids) {
    try {
      // The name in brackets may hold spaces.
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ')
      cpuS += (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S
      const io = readFileSync(`/proc/${pid}/io`, 'latin1')
      for (const [, number] of io.matchAll(/^[rw]char: (\d+)$/gm)) bytes += Number(number)
    } catch {}
  }
  return { cpuS, bytes }
}
