/** Notices when a run rests: no new commands for a while, and its processes neither compute nor read nor write much. */
import { readFileSync } from 'node:fs'

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
  private lastExecMs = performance.now()
  private before: { atMs: number; cpuS: number; bytes: number } | undefined
  private isSettled = false

  constructor(thresholdMs: number, onIdle: () => void) {
    this.thresholdMs = thresholdMs
    this.onIdle = onIdle
    this.timer = setInterval(() => this.check(), Math.min(CHECK_MS, thresholdMs))
  }

  began(exec: number, pid: number): void {
    this.running.set(exec, pid)
    this.lastExecMs = performance.now()
    this.isSettled = false
  }

  ended(exec: number): void {
    this.running.delete(exec)
  }

  close(): void {
    clearInterval(this.timer)
  }

  private check(): void {
    const now = { atMs: performance.now(), ...usageOf(new Set(this.running.values())) }
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
