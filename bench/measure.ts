/** Measuring: how long a program takes, and the most memory it held. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/** The peak is read from /proc while the program runs, so the last moments of it can be missed, not more. */
const MEMORY_POLL_MS = 10

export interface Measured {
  seconds: number
  /** VmHWM: the peak of resident memory, all threads, without child processes. */
  peakBytes: number
  stdout: string
}

export interface MeasureOptions {
  cwd?: string
  env?: NodeJS.ProcessEnv
}

/** Runs a program to its end; throws with its stderr when it fails. */
export async function measure(program: string, args: string[], options: MeasureOptions = {}): Promise<Measured> {
  const start = performance.now()
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  let peakBytes = 0
  child.stdout.setEncoding('utf8').on('data', text => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', text => (stderr += text))
  const poll = setInterval(() => (peakBytes = Math.max(peakBytes, readPeak(child.pid))), MEMORY_POLL_MS)
  try {
    const ended = new Promise<[number | null, string | null]>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve([code, signal]))
    })
    const seconds = new Promise<number>(resolve => {
      child.once('exit', () => resolve((performance.now() - start) / 1000))
    })
    const [code, signal] = await ended
    if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code ?? signal}: ${stderr.slice(-2000)}`)
    return { seconds: await seconds, peakBytes, stdout }
  } finally {
    clearInterval(poll)
  }
}

/** Seconds from the start of a program that is asked by `request` until its first line; it is then let go. */
export async function firstAnswer(program: string, args: string[], request: string, options: MeasureOptions = {}) {
  const start = performance.now()
  const child = spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  child.stdin.write(request)
  await once(child.stdout, 'data')
  const seconds = (performance.now() - start) / 1000
  child.stdin.end()
  await ended
  return seconds
}

function readPeak(pid: number | undefined): number {
  try {
    const match = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return Number(match?.[1] ?? 0) * 1024
  } catch {
    return 0 // it has just ended
  }
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
