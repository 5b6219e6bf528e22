/**
 * A run that goes on, as those see it who ask it for something over its control socket: what it is, its processes as a
 * whole, and what is to happen when it has been stopped.
 */
import { SavepointError } from '../errors/errors.ts'
import type { Run } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import type { TracedEnd } from '../tracers/command-process.ts'
import type { Context } from './context.ts'
import type { LastTouches } from './last-touches.ts'
import { ancestorsOf, startedIn } from './process-tree.ts'
import type { RunTerminal } from './run-terminal.ts'
import type { Started } from './started-command.ts'
import { Wakers } from './wakers.ts'

/** How long an agent that is told to stop may tidy up before it is killed. */
const GRACE_MS = 2000

export interface Stop {
  /** In words: "rollback to snap_…". */
  why: string
  /** The command is started again when all is done. */
  restart: boolean
}

export class RunSession {
  /** The run's own: it knows where the target is, whatever becomes of it. */
  readonly ctx: Context
  readonly run: Run
  readonly wakers = new Wakers()
  tracer = 'none'
  stop: Stop | undefined
  private command: Started | undefined
  private holders = 0
  private freezing: Promise<void> | undefined
  private readonly followUps: (() => Promise<void>)[] = []
  private readonly listeners = new Set<(lines: string) => void>()
  private readonly over = Promise.withResolvers<void>()
  private readonly pending = new Set<Promise<unknown>>()
  private readonly terminal: RunTerminal
  /** The state before is captured, or cannot be. It may come after the command has begun. */
  beginning: Promise<unknown> = Promise.resolve()
  isOver = false
  /** No process of it moves: what changes now is not its work. */
  isStill = false
  /** Its end is recorded, although it failed. */
  isConcluded = false
  /** Everything that happened until now has been told when it returns. */
  allTold: () => Promise<void> = async () => {}
  /** Everything that was seen until now is in the timeline when it returns; whether that is all. */
  traceSoFar: () => Promise<LastTouches | undefined> = async () => undefined

  constructor(ctx: Context, run: Run, terminal: RunTerminal) {
    this.ctx = ctx
    this.run = run
    this.terminal = terminal
  }

  /** The command of the run has been started. */
  attach(command: Started): void {
    this.command = command
    // It was to be stopped before there was anything to stop.
    if (this.stop) this.end(command)
  }

  /** Tidying up, it may use the terminal: of a job in the background that would stop us, too, and nobody could end it. */
  private end(command: Started): void {
    addon.ignoreTerminalStops(true)
    void command.stop(GRACE_MS)
  }

  /** The command has ended: whatever is said next, or started, needs the terminal. */
  commandEnded(end: TracedEnd): void {
    addon.ignoreTerminalStops(false)
    this.terminal.tidyUp(end, this.stop !== undefined)
  }

  /** Lines of exec.jsonl, as they are written. */
  tell(lines: string): void {
    for (const listener of this.listeners) listener(lines)
  }

  /** Calls `listener` until the run is over, or `signal` says that nobody listens any more. */
  async follow(listener: (lines: string) => void, signal: AbortSignal): Promise<void> {
    this.listeners.add(listener)
    const left = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    await Promise.race([this.over.promise, left])
    this.listeners.delete(listener)
  }

  /** Whether a process is one of the run's: by its ancestors, or by what it was given at its start. */
  isInside(pid: number): boolean {
    const root = this.command?.root
    return startedIn(pid) === this.run.id || (root !== undefined && ancestorsOf(pid).includes(root))
  }

  /** Does `work` while no process of the run moves. Several may want that at once: they go on after the last. */
  async frozen<T>(work: () => Promise<T>): Promise<T> {
    this.holders++
    try {
      this.freezing ??= this.command?.freeze()
      await this.freezing
      this.isStill = this.freezing !== undefined
      return await work()
    } finally {
      if (--this.holders === 0) await this.letGo()
    }
  }

  private async letGo(): Promise<void> {
    await this.allTold()
    // Meanwhile somebody else has come to want that.
    if (this.holders > 0) return
    this.freezing = undefined
    this.isStill = false
    await this.command?.thaw()
  }

  /** Stops the run; `work` is done when its end is recorded. Undefined when the run is over already. */
  stopThen<T>(stop: Stop, work: () => Promise<T>): Promise<{ result: T } | undefined> {
    if (this.isOver) return Promise.resolve(undefined)
    if (this.stop) {
      throw new SavepointError('busy', `Cannot stop ${this.run.id}: it is being stopped for ${this.stop.why}`, {
        hint: 'Try again in a moment',
      })
    }
    this.stop = stop
    const done = new Promise<{ result: T }>((resolve, reject) => {
      this.followUps.push(() => work().then(result => resolve({ result }), reject))
    })
    if (this.command) this.end(this.command)
    return done
  }

  /** Something that was asked for: the run is not over before it is done. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.pending.add(work)
    try {
      return await work
    } finally {
      this.pending.delete(work)
    }
  }

  /** The end of the run is recorded: carries out what waited for that, and all else that was asked for. Then it is over. */
  async finish(): Promise<void> {
    for (let next = this.followUps.shift(); next; next = this.followUps.shift()) await next()
    this.isOver = true
    this.over.resolve()
    await Promise.allSettled(this.pending)
  }
}
