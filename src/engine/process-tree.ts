/** Processes as /proc shows them: who descends from whom, and which belong to a run by what they were given at their start. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { monotonicMs } from '../model/monotonic.ts'
import type { Running } from '../model/running.ts'
import { isAlive } from '../tracers/command-process.ts'
import { ThawKeeper } from '../tracers/thaw-keeper.ts'
import { RUN_VARIABLE } from './context.ts'

const MAX_ANCESTORS = 256
const MAX_PASSES = 100
const MAX_LOOKS = 5
/** 40 µs each. */
const MAX_CATCHES = 1000
const PASS_MS = 2
const LOOK_MS = 20
/** Where /proc/PID/stat says when it began, counted from the state. */
const START = 19
/** What does not even die of SIGKILL within this waits for a device. */
const KILL_MS = 2000

/** Of the helper, as far as the kernel keeps it, of its guard, of its witness in our process group, and of left-trace-main.ts. */
const OUR_NAMES = ['savepoint-helper'.slice(0, 15), 'savepoint-guard', 'savepoint-group', 'savepoint-left']

interface Process {
  pid: number
  parent: number
  state: string
}

/** One that can be told from a later one of the same number. */
export interface SeenProcess extends Process {
  /** When it began, in ticks of the kernel since it was booted. */
  start: number
}

/** All that there are. */
export const everyProcess = (): SeenProcess[] =>
  readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? (lookClosely(Number(name)) ?? []) : []))

function lookClosely(pid: number): SeenProcess | undefined {
  try {
    const [, fields] = /^.*\) (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))!
    const words = fields!.split(' ')
    return { pid, state: words[0]!, parent: Number(words[1]), start: Number(words[START]) }
  } catch {
    return undefined
  }
}

/** When it began, in ticks of the kernel since it was booted. undefined: there is none, or nobody tells. */
export const startOf = (pid: number): number | undefined => lookClosely(pid)?.start

/** What it was called with; nothing when that cannot be read. */
export function commandLineOf(pid: number): Buffer[] {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`)
    const found: Buffer[] = []
    for (let at = 0, end = words.indexOf(0); end >= 0; at = end + 1, end = words.indexOf(0, at))
      found.push(words.subarray(at, end))
    return found
  } catch {
    return []
  }
}

export const isOurHelper = (pid: number): boolean => OUR_NAMES.includes(processName(pid))

function look(pid: number): Process | undefined {
  try {
    // The name, in parentheses, may hold anything.
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [, state, parent, threads] = /^.*\) (\S) (\d+)(?: \S+){15} (\d+)/s.exec(text)!
    // Only its first thread has ended, and that is all that is shown here.
    const isHeadless = state === 'Z' && Number(threads) > 1
    return { pid, state: isHeadless ? 'S' : state!, parent: Number(parent) }
  } catch {
    return undefined
  }
}

/** Stopped, by Ctrl-Z for example: it answers nobody. */
export const isStopped = (pid: number): boolean => look(pid)?.state === 'T'

/** From its parent upwards. */
export function ancestorsOf(pid: number): number[] {
  const found: number[] = []
  for (let at = look(pid)?.parent; at !== undefined && at > 0 && found.length < MAX_ANCESTORS; at = look(at)?.parent)
    found.push(at)
  return found
}

/** Which run a process was started in, by its environment; undefined when that cannot be read. */
export function startedIn(pid: number): string | undefined {
  try {
    const prefix = `${RUN_VARIABLE}=`
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
    return variables.find(each => each.startsWith(prefix))?.slice(prefix.length)
  } catch {
    return undefined
  }
}

/** Which run a process belongs to, by its own environment or that of who started it. */
export const runOf = (pid: number): string | undefined =>
  [pid, ...ancestorsOf(pid)].map(startedIn).find(run => run !== undefined)

/** What still runs of a run whose supervisor, or whose helper, was killed. Our own processes do not count. */
export const leftRunning = (run: string): Running[] =>
  runningAmong(everything(0).filter(({ pid }) => pid !== process.pid && startedIn(pid) === run))

/** What still runs of these; of the run when nobody knows which they were, or all have given way to others by now. */
export function stillRunning(run: string, pids: number[] | undefined): Running[] {
  if (pids?.length === 0) return []
  let those = runningAmong((pids ?? []).flatMap(pid => look(pid) ?? []))
  // They may do so while we look.
  for (let looks = 0; those.length === 0 && looks < (pids ? MAX_LOOKS : 1); looks++) those = leftRunning(run)
  return those.length === 0 && pids ? caughtRunning(run) : those
}

/**
 * One that forks again and again, each time ending the parent, is gone before all processes have been looked at: the newest
 * of the system is looked at alone. To end it takes its group, if that is not ours, too.
 */
function caughtRunning(run: string): Running[] {
  const ours = groupOf(process.pid)
  for (let catches = 0; catches < MAX_CATCHES; catches++) {
    const pid = newestProcess()
    if (pid === undefined || startedIn(pid) !== run) continue
    const group = groupOf(pid)
    const [found] = runningAmong([{ pid, parent: 0, state: 'R' }])
    if (found && group !== undefined) return [group === ours ? found : { ...found, group }]
  }
  return []
}

/** By its number, of those that can be seen from here. */
function newestProcess(): number | undefined {
  try {
    return Number(readFileSync('/proc/loadavg', 'latin1').trim().split(' ').at(-1))
  } catch {
    return undefined
  }
}

function groupOf(pid: number): number | undefined {
  try {
    return Number(/^.*\) \S \d+ (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))![1])
  } catch {
    return undefined
  }
}

const runningAmong = (processes: Process[]): Running[] =>
  processes.flatMap(({ pid, state }) => {
    const name = /[ZX]/.test(state) ? '' : processName(pid)
    return name === '' || OUR_NAMES.includes(name) ? [] : [{ pid, name }]
  })

/** As it calls itself; '' when there is none. */
export function processName(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

/** Of a run that no helper watches: what `root` has started, and what has left it but still carries the run's mark. */
export class UnwatchedTree {
  private readonly root: number
  private readonly run: string
  private readonly frozen = new Set<number>()
  private keeper: ThawKeeper | undefined

  constructor(root: number, run: string) {
    this.root = root
    this.run = run
  }

  /** Stops all until no further one appears. Should we be killed, they go on. */
  async freeze(): Promise<void> {
    this.keeper ??= new ThawKeeper()
    for (let pass = 0, quiet = 0; pass < MAX_PASSES && quiet < 2; pass++) {
      const fresh = this.list().filter(({ pid, state }) => !/[Tt]/.test(state) && !this.frozen.has(pid))
      for (const { pid } of fresh) {
        this.keeper.note(pid)
        signal(pid, 'SIGSTOP')
        this.frozen.add(pid)
      }
      quiet = fresh.length === 0 ? quiet + 1 : 0
      await pause(PASS_MS)
    }
  }

  thaw(): void {
    for (const pid of this.frozen) signal(pid, 'SIGCONT')
    this.settle()
  }

  /** Returns when none is left, or only what cannot be killed. */
  async stop(graceMs: number): Promise<void> {
    await this.freeze()
    const all = this.list()
    for (const { pid } of all) signal(pid, 'SIGTERM')
    for (const { pid } of all) signal(pid, 'SIGCONT')
    this.settle()
    if (await this.isGoneWithin(graceMs)) return
    // Again and again: one that was being started as all were stopped may show only now.
    for (const until = monotonicMs() + KILL_MS; monotonicMs() < until; ) {
      await this.freeze()
      for (const { pid } of this.list()) signal(pid, 'SIGKILL')
      if (await this.isGoneWithin(LOOK_MS)) break
    }
    this.settle()
  }

  /** Nobody is stopped by us any more. */
  private settle(): void {
    this.frozen.clear()
    this.keeper?.end()
    this.keeper = undefined
  }

  private async isGoneWithin(ms: number): Promise<boolean> {
    for (const until = monotonicMs() + ms; this.list().length > 0; await pause(LOOK_MS))
      if (monotonicMs() > until) return false
    return true
  }

  private list(): Process[] {
    const all = everything(this.root)
    const inside = new Set([this.root])
    for (let size = 0; size !== inside.size; ) {
      size = inside.size
      for (const { pid, parent } of all) if (inside.has(parent)) inside.add(pid)
    }
    return all.filter(
      ({ pid, state }) =>
        !/[ZX]/.test(state) && pid !== process.pid && (inside.has(pid) || startedIn(pid) === this.run),
    )
  }
}

/** Where there is no /proc, nothing is known but whether the command itself lives. */
function everything(root: number): Process[] {
  if (!existsSync('/proc/self')) return isAlive(root) ? [{ pid: root, parent: 0, state: '?' }] : []
  return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? (look(Number(name)) ?? []) : []))
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended, or it is not ours to signal.
  }
}
