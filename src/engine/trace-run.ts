/** A command while it is traced: what it does is recorded, and leads to snapshots on the way. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { RedactPatterns } from '../model/redact.ts'
import type { Left, Traced } from '../tracers/helper.ts'
import { traitsOf } from '../tracers/select.ts'
import type { Look, TraceEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import { withCoreDumps } from './core-dumps.ts'
import type { PartlyKnown } from './edits-before-guards.ts'
import type { Touches } from './edits-meanwhile.ts'
import { heldPrograms } from './held-programs.ts'
import { ifWritable } from './if-writable.ts'
import type { LastTouches } from './last-touches.ts'
import { traceLeft } from './left-trace.ts'
import { LetGoWatch } from './let-go-watch.ts'
import { LiveRun } from './live-run.ts'
import { isInOuterRun } from './outer-run.ts'
import { isOwnWork } from './own-work.ts'
import { stillRunning } from './process-tree.ts'
import { HeldChanges, isProtected, type Protection } from './protect.ts'
import { protectedPlaces } from './protected-places.ts'
import type { ChildEnd, SuperviseOptions } from './run-child.ts'
import type { RunSession } from './run-session.ts'
import type { RunTracer } from './run-tracer.ts'
import type { RunOptions } from './savepoint.ts'
import type { Settled } from './supervised.ts'
import type { TargetPlace } from './target-place.ts'
import { noteBlind, saveTraceSummary } from './touched-paths.ts'
import { TraceRecorder } from './trace-recorder.ts'
import { watchedTree } from './watched-tree.ts'

/** The number of the command's own execution. */
const FIRST = 1

/** What is known of a command while it is traced. */
export class TracedRun {
  private readonly ctx: Context
  private readonly driver: RunTracer['name']
  private readonly protection: Protection
  private readonly place: TargetPlace
  private readonly session: RunSession
  private readonly allowIoUring: boolean
  private readonly spool: string | undefined
  private readonly recorder: TraceRecorder
  private readonly live: LiveRun
  private readonly changes: HeldChanges | undefined
  private readonly seesChanges: boolean
  /** Whether all changes are told. */
  private readonly isWhole: boolean
  private readonly isWatching: boolean
  private readonly later: string[] = []
  private readonly patterns: RedactPatterns
  private letGo: LetGoWatch | undefined
  private command: Traced | undefined
  private hasEnded = false
  /** What it has left is told. */
  private tellsOn = false
  private isCut = false
  private isBegun = false

  constructor(
    ctx: Context,
    driver: RunTracer['name'],
    protection: Protection,
    session: RunSession,
    place: TargetPlace,
    { allowIoUring = false }: RunOptions,
    patterns: RedactPatterns,
    spool: string | undefined,
  ) {
    const { pending } = protection
    const { seesChanges, canHold } = traitsOf(driver)
    this.ctx = ctx
    this.driver = driver
    this.protection = protection
    this.place = place
    this.session = session
    this.allowIoUring = allowIoUring
    this.spool = spool
    this.seesChanges = seesChanges
    this.isWhole = seesChanges && !allowIoUring
    // Who sees no changes has them watched; on a Mac nobody does.
    this.isWatching = !seesChanges && protection.takesSnapshots && driver !== 'eslogger'
    // The outer run may hold it.
    if (!canHold && driver !== 'none' && protection.takesSnapshots && !isInOuterRun(ctx) && heldPrograms(ctx))
      ctx.notice(`the tracer ${driver} cannot hold a destructive command: no snapshot is taken right before one`)
    const say = (text: string) => this.say(text)
    const quiet: Context = { ...ctx, notice: say, warn: say, progress: undefined }
    ifWritable(() => mkdirSync(join(ctx.timelineDir, 'runs', session.run.id), { recursive: true, mode: 0o700 }))
    this.recorder = new TraceRecorder(quiet, session.run.id, patterns, lines => session.tell(lines))
    this.patterns = patterns
    this.changes = pending && spool !== undefined ? new HeldChanges(ctx.targetPath, pending) : undefined
    this.live = new LiveRun(quiet, session.run.id, {
      release: exec => this.release(exec),
      keepAll: () => this.command?.keepAll(),
      tellsAll: this.isWhole,
      look: onBarrier => this.look(onBarrier),
      barrier: async () => this.command?.barrier(),
      places: () => place.places(),
      note: (exec, text) => this.recorder.note(exec, text),
      isInside: event => this.recorder.isInside(event),
    })
    if (!this.isWhole && !this.isWatching) this.live.goBlind()
    if (!isProtected(protection)) this.live.beginUncaptured()
    if (!protection.takesSnapshots) void this.live.close()
    if (pending) this.live.waitFor(pending.snapshot)
    ctx.heldFiles = () => this.live.heldFiles()
    session.allTold = async () => this.command?.barrier()
    session.traceSoFar = () => this.saveSoFar()
  }

  options(): SuperviseOptions['trace'] {
    return {
      driver: this.driver,
      protect: protectedPlaces(this.ctx),
      watch: this.isWatching ? watchedTree(this.ctx) : undefined,
      allowIoUring: this.allowIoUring,
      spool: this.spool,
      hold: this.protection.takesSnapshots ? heldPrograms(this.ctx) : undefined,
      holdsChanges: this.changes !== undefined,
      onStart: command => this.start(command),
      onEvent: this.seesChanges ? withCoreDumps(event => this.handle(event)) : event => this.handle(event),
      onBatch: () => this.endBatch(),
      onHelperDied: () => this.loseHelper(),
      onLeft: () => {
        this.tellsOn = this.driver !== 'none' && (this.isBegun || !this.changes)
        return this.tellsOn
      },
    }
  }

  /** The command has ended: nothing is captured on the way any more. What could not be said while the terminal was its own is said. */
  async end(): Promise<void> {
    if (this.hasEnded) return
    this.hasEnded = true
    this.ctx.heldFiles = undefined
    this.letGo?.close()
    await this.live.close()
    // Before the last capture begins: what is told from here on may be later than that.
    this.recorder.save()
    this.sayLater()
  }

  /** What it has left is no part of the run any more. */
  async settle(end: ChildEnd, endedAt: number): Promise<Settled> {
    await this.end()
    const left = await this.leave()
    const { id: run } = this.session.run
    const summary = this.recorder.finish()
    if (left) traceLeft(this.ctx, run, this.patterns, left.channel)
    this.sayLater()
    const hasSettled = this.tellsOn && !this.isCut
    const survivors = hasSettled ? left !== undefined : end.survivors
    const running = stillRunning(run, this.isCut ? undefined : hasSettled ? (left?.left ?? []) : end.left)
    const trace = { tracer: this.driver, ...summary, snapshots: this.live.taken, survivors, running }
    // Whoever asks later whose a change was must know whether anything is missing; without it the trace is not relied on.
    if (this.isWhole && this.recorder.isWhole && !this.isCut && !this.place.isLeft)
      ifWritable(() => saveTraceSummary(this.ctx, run, { ...trace, lostChanges: this.recorder.lostChanges }))
    const row = { kind: 'run', what: 'lost', at: this.ctx.now(), run, note: String(trace.lost) } as const
    if (trace.lost > 0) ifWritable(() => this.ctx.db.log.add(row))
    return { trace, touched: this.touched(survivors ? Infinity : hasSettled ? this.ctx.now() : endedAt) }
  }

  /** It could not be brought to its end. */
  async close(): Promise<void> {
    await this.end()
    const left = await this.leave()
    left?.channel.destroy()
    this.recorder.finish()
  }

  /** Who goes on, and is not told any more. */
  private async leave(): Promise<Left | undefined> {
    if (!this.tellsOn) return undefined
    try {
      return await this.command!.leave()
    } catch {
      this.isCut = true
      return undefined
    }
  }

  /** `endedAt`: when nothing of it went on any more. */
  private touched(endedAt: number): Touches | PartlyKnown | undefined {
    const { trees } = this.recorder
    if (this.isComplete) return { touches: trees.now, endedAt }
    if (!this.isWhole) return undefined
    const present = this.place.places()[0]!.tree
    const { cameAt, goneAt, isLeft } = this.place
    const known = cameAt.map((came, tree) => ({ touches: trees.at(tree), came }))
    return { trees: known, present, treeOf: this.live.treeOf, goneAt, isLeft }
  }

  get pendingCommit(): string | undefined {
    return this.live.pendingCommit
  }

  get isComplete(): boolean {
    return this.isWhole && this.recorder.isComplete && !this.isCut && !this.place.isLeft
  }

  private sayLater(): void {
    for (const text of this.later.splice(0)) this.ctx.notice(text)
  }

  private say(text: string): void {
    if (!this.later.includes(text)) this.later.push(text)
  }

  private start(command: Traced): void {
    const { pending } = this.protection
    this.command = command
    const places = () => this.place.places().map(({ path }) => path)
    const touches = () => this.recorder.trees.now
    if (this.isWhole) this.letGo = new LetGoWatch(touches, () => command.look(() => {}), places)
    if (pending) touches().safeAt = Infinity
    void pending?.snapshot.then(() => {
      // What waits must not go on when it is not safe.
      if (pending.failure) void command.stop(0)
      else command.begun()
      this.isBegun = true
      touches().safeAt = this.ctx.now()
    })
    if (this.driver === 'none') this.live.follow(command.root)
  }

  private endBatch(): void {
    this.recorder.settle()
    this.place.settle()
  }

  private handle(told: TraceEvent): void {
    for (const event of this.place.asBefore(told)) this.take(event)
  }

  private take(event: TraceEvent): void {
    if (!isOwnWork(event, this.ctx.targetPath, this.session.isStill)) this.recorder.add(event)
    if (event.type === 'path') this.changes?.handle(event, hold => this.command?.release(hold))
    if (this.protection.takesSnapshots && !this.hasEnded) this.live.handle(event)
  }

  private release(exec: number): void {
    if (exec === FIRST && this.changes) void this.changes.mayBegin.then(() => this.command?.release(exec))
    else this.command?.release(exec)
  }

  /**
   * What comes in unseen makes the rest worth nothing. What is watched is a hint that something changed; what it was, only a
   * look at everything tells.
   */
  private async look(onBarrier: () => void): Promise<Look | undefined> {
    if (this.isWhole || this.isWatching) return this.command?.look(onBarrier)
    // Anything may have changed, and goes on to be so.
    return this.seesChanges ? this.command?.look(() => {}) : undefined
  }

  /** What the trace, saved up to now, has, if that is all. */
  private async saveSoFar(): Promise<LastTouches | undefined> {
    await this.command?.barrier()
    this.recorder.save()
    return this.isComplete ? this.recorder.trees.now : undefined
  }

  private loseHelper(): void {
    this.isCut = true
    ifWritable(() => noteBlind(this.ctx, this.session.run.id))
    this.live.goBlind()
    if (this.changes && !this.isBegun) {
      // What it wants to change waits for ever, or dies of it (native/helper/seccomp-driver.c).
      void this.command?.stop(0)
      this.say('the tracer was killed before all was captured: the command is stopped')
      return
    }
    this.say('the tracer was killed: the command went on, and from there on nothing is traced')
  }
}
