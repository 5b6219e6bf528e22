/**
 * Takes snapshots while a run goes on: before a command that destroys, after one that is a milestone, when things rest, and
 * from time to time. Nothing waits for them but what is about to destroy. The terminal is the command's, so nothing is said
 * before the end.
 */

import { isBeyondTrace } from '../model/destructive-filesystems.ts'
import { rawToText } from '../model/raw-path.ts'
import type { Snapshot, SnapshotType } from '../model/snapshot.ts'
import type { Dirty, HeldFiles } from '../targets/dir/dirty-dirs.ts'
import type { ExecEvent, ExitEvent, KeptEvent, Look, LostEvent, PathEvent, TraceEvent } from '../tracers/trace-event.ts'
import type { RunDirty } from './capture-live.ts'
import type { Context } from './context.ts'
import { DirtySet } from './dirty-set.ts'
import { contextAt } from './former-target.ts'
import { Guards } from './guards.ts'
import { IdleWatch } from './idle-watch.ts'
import { KeptSpool } from './kept-spool.ts'
import { endOf, type Milestone, milestoneOfExec } from './milestone-exec.ts'
import { type RunSnapshotOptions, takeIfChanged } from './run-snapshot.ts'
import type { Place } from './target-place.ts'

const COMMIT_DEBOUNCE_MS = 2000
const CHANGE_DEBOUNCE_MS = 1000
/** What others change meanwhile is looked for in this rhythm, but not while a command waits. */
const WALK_MS = 120_000

interface Wanted {
  options: RunSnapshotOptions
  /** What was the target before; undefined: what is it now. */
  former: Place | undefined
  end: PromiseWithResolvers<Snapshot | undefined>
}
/** No command is behind them. */
const byTheClock: ReadonlySet<SnapshotType> = new Set(['idle', 'interval', 'change'])

interface Hooks {
  release(exec: number): void
  keepAll(): void
  /** Whether all changes of the run are told; otherwise each capture looks at everything. */
  tellsAll: boolean
  /** Calls `onBarrier` when all that happened until now has been told, then gives what can be written unseen. */
  look(onBarrier: () => void): Promise<Look | undefined>
  barrier(): Promise<void>
  /** Something to remember of an execution. */
  note(exec: number, text: string): void
  /** Where the target is now, and then what was the target before. */
  places(): Place[]
  /** Whether a path of the event lies in the target. */
  isInside(event: PathEvent): boolean
}

export class LiveRun {
  private readonly ctx: Context
  private readonly run: string
  private readonly hooks: Hooks
  private readonly milestones = new Map<number, Milestone>()
  private readonly dirty: DirtySet
  private readonly guards: Guards
  private readonly timers = new Map<SnapshotType, NodeJS.Timeout>()
  private readonly idle: IdleWatch | undefined
  private readonly interval: NodeJS.Timeout | undefined
  /** When everything was looked at last, and not only what the run touched. */
  private walkedAt: number
  private work: Promise<unknown> = Promise.resolve()
  /** The capture that has begun: what it is to have is not dirty any more, and not safe yet. */
  private underWay: Promise<Snapshot | undefined> | undefined
  /** Captures that have not begun: whoever wants one joins the next of them. */
  private readonly queue: Wanted[] = []
  private closed = false
  /** The state before the run is still being captured. */
  private isBeginning = false
  /** Not everything can be seen: from there on anything may have changed. */
  private isBlind = false
  /** Nothing was captured at the start: what has not changed may be in no snapshot either. */
  private isUncaptured = false
  private readonly kept: KeptSpool
  /** The commit whose snapshot is still to come. Should the run be over by then, the state at its end is that of the commit. */
  pendingCommit: string | undefined
  taken = 0
  /** Which of the directories each snapshot is of. */
  readonly treeOf: Map<string, number> = new Map()

  constructor(ctx: Context, run: string, hooks: Hooks) {
    this.ctx = ctx
    this.run = run
    this.hooks = hooks
    const { triggers, auto_interval_seconds } = ctx.config.snapshots
    this.dirty = new DirtySet(ctx.targetPath)
    this.kept = new KeptSpool(ctx, run)
    this.guards = new Guards(ctx, {
      ...hooks,
      dirty: this.dirty,
      isClosed: () => this.closed,
      isDirty: () => this.isDirty,
      isBeginning: () => this.isBeginning,
      underWay: () => this.underWay,
      take: (options, former) => this.take({ type: 'guard', ...options }, former),
    })
    this.walkedAt = ctx.now()
    if (!triggers.disable_idle)
      this.idle = new IdleWatch(triggers.idle_threshold_seconds * 1000, () => this.trigger('idle', undefined))
    if (!triggers.disable_interval)
      this.interval = setInterval(() => this.trigger('interval', undefined), auto_interval_seconds * 1000)
  }

  /** The state before is still being captured: nothing is before that. */
  waitFor(before: Promise<Snapshot | undefined>): void {
    this.isBeginning = true
    this.underWay = before
    this.work = before.then(() => {
      this.isBeginning = false
      this.underWay = undefined
    })
  }

  /** For a run whose commands are not told: what runs below this process is the run. */
  follow(pid: number | undefined): void {
    this.idle?.follow(pid)
  }

  handle(event: TraceEvent): void {
    if (event.type === 'path') this.handlePath(event)
    else if (event.type === 'exec') this.handleExec(event)
    else if (event.type === 'exit') this.handleExit(event)
    else if (event.type === 'late') this.guards.wentOn(event.id)
    else if (event.type === 'lost') this.lose(event)
    else if (event.type === 'kept') this.handleKept(event)
    else if (event.type === 'safe') this.kept.pin(event)
  }

  /** For a capture that others want: what could be written unseen. Undefined when nobody can tell. */
  async heldFiles(): Promise<HeldFiles | undefined> {
    const look = await this.hooks.look(() => {})
    return look && this.dirty.hold(undefined, look)
  }

  /** Changes are not told, or not any more: every capture looks at everything, and anything may have changed. */
  goBlind(): void {
    this.isBlind = true
  }

  beginUncaptured(): void {
    this.isUncaptured = true
  }

  /** Returns when nothing is being captured any more; nothing will be. */
  async close(): Promise<void> {
    this.closed = true
    this.idle?.close()
    clearInterval(this.interval)
    for (const timer of this.timers.values()) clearTimeout(timer)
    await this.work.then(() => this.kept.sayUnkept())
  }

  private lose({ why }: LostEvent): void {
    this.dirty.lose()
    if (why === 'watches') this.isBlind = true
  }

  private get isDirty(): boolean {
    return this.isBlind || this.isUncaptured || !this.dirty.isEmpty
  }

  private handlePath(event: PathEvent): void {
    // Watching sees us, too, where we open what its owner closed.
    if (event.past && event.pid === process.pid) return
    if (event.past) this.idle?.stirred()
    this.dirty.add(event)
    if (!this.hooks.isInside(event)) return
    this.idle?.changed()
    if (this.ctx.config.snapshots.triggers.enable_change) this.debounce('change', CHANGE_DEBOUNCE_MS, undefined)
  }

  private handleKept(event: KeptEvent): void {
    const due = this.kept.note(event)
    if (due === 'capture') this.trigger('interval', undefined)
    if (due === 'trim') this.work = this.work.then(() => this.kept.trim())
  }

  private handleExec(event: ExecEvent): void {
    this.idle?.began(event.id, event.pid)
    const argv = event.argv.map(rawToText)
    const milestone = milestoneOfExec(this.ctx, event, argv) ?? (event.replaces && this.milestones.get(event.replaces))
    if (event.replaces) this.forget(event.replaces)
    if (milestone) this.milestones.set(event.id, milestone)
    // What it changes is not told: it is looked at everything, before it as well.
    if (isBeyondTrace(argv)) this.goBlind()
    if (event.held) this.guards.hold(event, argv)
  }

  private forget(exec: number): void {
    this.milestones.delete(exec)
    this.idle?.ended(exec)
  }

  private handleExit({ id, code, signal }: ExitEvent): void {
    const milestone = this.milestones.get(id)
    this.forget(id)
    if (!milestone) return
    const { type, command } = milestone
    if (type !== 'git') this.trigger(type, command, endOf(type, code, signal))
    else if (code === 0) {
      this.pendingCommit = command
      this.debounce('git', COMMIT_DEBOUNCE_MS, command)
    }
  }

  private debounce(type: SnapshotType, ms: number, command: string | undefined): void {
    clearTimeout(this.timers.get(type))
    const timer = setTimeout(() => this.trigger(type, command), ms)
    this.timers.set(type, timer)
  }

  /** Nobody waits for it. With one in the queue already, one more would show the same, which is news of a milestone only. */
  private trigger(type: SnapshotType, command: string | undefined, label?: string): void {
    if (this.closed) return
    if (type === 'git') this.pendingCommit = undefined
    if (label === undefined && type !== 'git' && (!this.isDirty || this.queue.length > 0)) return
    this.take({ type, command, label }).catch(error =>
      this.ctx.warn(`a snapshot (${type}) could not be taken: ${(error as Error).message}`),
    )
  }

  /** Undefined when nothing had changed. */
  private take(wish: Omit<RunSnapshotOptions, 'run'>, former?: Place): Promise<Snapshot | undefined> {
    const options = { ...wish, run: this.run }
    const { type, label } = wish
    const waiting = this.queue.filter(wanted => !wanted.former)
    const [next] = waiting
    if (next && !former && label === undefined && type !== 'git') return next.end.promise
    // It will show the state after the last test or commit that has ended by then: that one is what it is to say.
    const like = former
      ? undefined
      : waiting.find(({ options }) => options.type === type || byTheClock.has(options.type))
    if (like) this.queue.splice(this.queue.indexOf(like), 1)
    const wanted = { options, former, end: like?.end ?? Promise.withResolvers<Snapshot | undefined>() }
    this.queue.push(wanted)
    if (!like) this.work = this.work.then(() => this.takeNext())
    return wanted.end.promise
  }

  private async takeNext(): Promise<void> {
    const { options, former, end } = this.queue.shift()!
    this.underWay = end.promise
    try {
      const snapshot = await this.capture(options, former)
      if (snapshot) this.taken++
      end.resolve(snapshot)
    } catch (error) {
      end.reject(error)
    } finally {
      this.underWay = undefined
    }
  }

  private async capture(options: RunSnapshotOptions, former: Place | undefined): Promise<Snapshot | undefined> {
    const now = this.ctx.now()
    const isWalk = this.isBlind || this.isUncaptured || (options.type !== 'guard' && now - this.walkedAt > WALK_MS)
    let taken: Dirty | undefined
    const look = await this.hooks.look(() => {
      taken = this.dirty.take()
    })
    const held = look && this.dirty.hold(taken, look)
    const dirty = taken && held && this.hooks.tellsAll && !isWalk ? this.sinceTaken(taken) : undefined
    try {
      const place = former ?? this.hooks.places()[0]!
      const ctx = contextAt(this.ctx, place.path)
      const snapshot = await takeIfChanged(ctx, { ...options, dirty, held, isFormer: former !== undefined })
      if (snapshot) this.treeOf.set(snapshot.id, place.tree)
      const isAll = !dirty || snapshot?.runOnly === false
      if (former) {
        // Of what is the target now nothing was captured.
        this.dirty.giveBack(taken)
        return snapshot
      }
      if (isAll) this.walkedAt = now
      look?.captured(isAll)
      this.isUncaptured = false
      return snapshot
    } catch (error) {
      this.dirty.giveBack(taken)
      throw error
    }
  }

  private sinceTaken(taken: Dirty): RunDirty {
    return {
      ...taken,
      touchedSince: async () => {
        await this.hooks.barrier()
        return this.dirty.since(taken)
      },
    }
  }
}
