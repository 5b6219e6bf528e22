/**
 * The helper program (native/helper): starts a command with the terminal handed through, and tells what it does. It goes
 * on when this process dies, and it stays as long as anything that it started is alive.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { getSystemErrorName } from 'node:util'
import {
  endOf,
  isAlive,
  isStopped,
  membersOf,
  startAdopting,
  stopAdopting,
  type TracedEnd,
  takeEnd,
  unstartedEnd,
} from './command-process.ts'
import { EventDecoder, unseenIn } from './decode.ts'
import { BadFrame, encodeRequest, FIELD, FLAG, FRAME, type Frame, FrameReader, REQUEST } from './frames.ts'
import { helperArguments } from './helper-arguments.ts'
import { inheritedStdio } from './inherited.ts'
import { helperFile } from './probe-helper.ts'
import type { Held, HeldFile, Look } from './trace-event.ts'
import type { TracedOptions } from './traced-options.ts'

/** The helper died and nobody tells us when the command ends: it is looked for in this rhythm. */
const LOOK_MS = 200

/** A command that is traced, whoever does it. */
export type Traced = Omit<TracedCommand, 'isFrozen' | 'freeze' | 'thaw'>

/** What goes on when a run is over. Somebody else may ask on the channel for what it does (REQUEST.follow). */
export type Left = Pick<TracedEnd, 'left'> & { channel: Socket }

export class TracedCommand {
  private readonly options: TracedOptions
  private readonly child: ChildProcess
  private readonly events: Socket
  private readonly decoder = new EventDecoder()
  private readonly outcome = Promise.withResolvers<TracedEnd>()
  private readonly barriers = new Map<number, () => void>()
  private readonly looks = new Map<number, (held: Held | undefined) => void>()
  private held: HeldFile[] = []
  private nextBarrier = 1
  /** Of the command; undefined until it starts. When it stops, the helper sends us SIGCHLD, as if it were our child. */
  pid: number | undefined
  /** They are stopped by us: that is no stop for us to follow. */
  isFrozen = false
  /** It was asked to end all. */
  private graceMs: number | undefined
  private isOver = false
  /** It has ended, and what it has left is told. */
  private readonly afterEnd = Promise.withResolvers<Left | undefined>()
  private hasStopped = false
  /** Of what came together: whether an execution waits for us, and whether there was anything but events, for which somebody may have waited. */
  private hasHeld = false
  private hasAnswered = false

  constructor(options: TracedOptions) {
    this.options = options
    const { inherited } = options
    const stdio: (ReturnType<typeof inheritedStdio>[number] | 'pipe')[] = inheritedStdio(inherited)
    const eventsFd = stdio.includes('ignore') ? stdio.indexOf('ignore') : stdio.length
    stdio[eventsFd] = 'pipe'
    startAdopting()
    this.child = spawn(helperFile()!, helperArguments(options, eventsFd), {
      stdio,
      cwd: options.cwd,
      env: options.env,
    })
    this.events = this.child.stdio[eventsFd] as unknown as Socket
    const reader = new FrameReader(frame => this.receive(frame))
    this.events.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk)
      } catch (error) {
        if (!(error instanceof BadFrame)) throw error
        // A stream that makes no sense is as good as none; the command must not suffer from it.
        this.events.destroy()
      }
      this.endBatch()
    })
    this.events.on('error', () => {})
    this.events.on('close', () => this.lookForEnd())
    this.afterEnd.promise.catch(() => {})
    this.child.on('error', error => this.finish(() => this.outcome.reject(error)))
  }

  /** How the command itself ended. Rejects with the errno of what kept it from starting. */
  get ended(): Promise<TracedEnd> {
    return this.outcome.promise
  }

  /** Whether the command has stopped (Ctrl-Z). A process that is traced by ptrace looks the same in any stop: the helper tells. */
  get isStopped(): boolean {
    return this.hasStopped || isStopped(this.pid)
  }

  /** To the command. */
  kill(signal: NodeJS.Signals): void {
    // Once the helper is dead, nobody passes it on.
    if (!this.child.kill(signal) && this.pid !== undefined && isAlive(this.pid)) process.kill(this.pid, signal)
  }

  /** Lets an execution go on that is held. */
  release(exec: number): void {
    this.request(REQUEST.release, exec)
  }

  /** What the run makes until `begun` is kept, whatever it is, when it goes again. */
  keepAll(): void {
    this.request(REQUEST.keepAll, 0)
  }

  /** What the run changes from here on waits no more. */
  begun(): void {
    this.request(REQUEST.begun, 0)
  }

  /** Returns when everything that happened before the call has been told. */
  barrier(): Promise<void> {
    return this.ask(REQUEST.barrier)
  }

  /** Of the process above all of the command's, whatever leaves its parents. */
  get root(): number | undefined {
    return this.child.pid
  }

  /** Stops all processes of the command; returns when they have. */
  freeze(): Promise<void> {
    this.isFrozen = true
    return this.ask(REQUEST.freeze)
  }

  /** Returns when they go on. */
  async thaw(): Promise<void> {
    await this.ask(REQUEST.thaw)
    this.isFrozen = false
  }

  /** Ends all processes of the command, by force after `graceMs`. Returns when they have ended. */
  async stop(graceMs: number): Promise<void> {
    this.isFrozen = true
    this.graceMs = graceMs
    if (!this.isOver && this.events.destroyed) this.stopAlone(graceMs)
    this.request(REQUEST.stop, graceMs)
    await this.ended.catch(() => {})
  }

  /** The helper is dead: only the command itself can be reached. */
  private stopAlone(graceMs: number): void {
    const send = (signal: NodeJS.Signals) =>
      this.pid !== undefined && isAlive(this.pid) && process.kill(this.pid, signal)
    send('SIGTERM')
    setTimeout(() => send('SIGKILL'), graceMs).unref()
  }

  private ask(request: number): Promise<void> {
    if (this.isOver || this.events.destroyed) return Promise.resolve()
    const number = this.nextBarrier++
    return new Promise(resolve => {
      this.barriers.set(number, resolve)
      this.request(request, number)
    })
  }

  /**
   * Which files could be written unseen. `onBarrier` is called when everything that happened before has been told, in the
   * order of the events. Undefined when the helper is gone.
   */
  look(onBarrier: () => void): Promise<Look | undefined> {
    if (this.isOver || this.events.destroyed) return Promise.resolve(undefined)
    const number = this.nextBarrier++
    const captured = (isAll: boolean) => this.request(isAll ? REQUEST.walked : REQUEST.captured, number)
    return new Promise(resolve => {
      this.barriers.set(number, onBarrier)
      this.looks.set(number, held => resolve(held && { ...held, captured }))
      this.request(REQUEST.look, number)
    })
  }

  /**
   * When the command has ended: what it has left is told until now, and not any more. Undefined when nothing goes on; rejects when the
   * helper was killed, so that not all was told.
   */
  leave(): Promise<Left | undefined> {
    if (!this.events.destroyed) this.events.write(encodeRequest(REQUEST.leave, 0))
    return this.afterEnd.promise
  }

  private request(kind: number, number: number): void {
    if (!this.isOver && !this.events.destroyed) this.events.write(encodeRequest(kind, number))
  }

  /** What is held is let go of first, by who was told of it; but who has an answer counts on all of it. */
  private endBatch(): void {
    if (this.hasHeld && !this.hasAnswered) setImmediate(this.options.onBatch)
    else this.options.onBatch()
    this.hasHeld = this.hasAnswered = false
  }

  private receive(frame: Frame): void {
    const event = this.decoder.decode(frame)
    if (event) {
      this.hasHeld ||= event.type === 'exec' && event.held
      this.options.onEvent(event)
    } else this.answer(frame)
  }

  private answer(frame: Frame): void {
    this.hasAnswered = true
    if (frame.type === FRAME.hello) {
      this.pid = frame.pid
    } else if (frame.type === FRAME.failed) {
      const code = getSystemErrorName(-frame.number(FIELD.number)!)
      this.finish(() => this.outcome.reject(Object.assign(new Error(code), { code })))
    } else if (frame.type === FRAME.end) {
      const end = endOf(frame)
      this.finish(() => this.outcome.resolve(end), end.survivors)
    } else if (frame.type === FRAME.left) {
      this.takeLeave(membersOf(frame))
    } else if (frame.type === FRAME.waits) {
      const end = endOf(frame)
      this.options.record?.onWaiting(frame.number(FIELD.number)!, () => this.finish(() => this.outcome.resolve(end)))
    } else if (frame.type === FRAME.stopped) {
      this.hasStopped = frame.number(FIELD.number) !== 0
      if (this.hasStopped) this.options.onStop()
    } else if (frame.type === FRAME.barrier) {
      const number = frame.number(FIELD.number)!
      this.barriers.get(number)?.()
      this.barriers.delete(number)
    } else if (frame.type === FRAME.held) {
      const path = frame.raw(FIELD.path)!
      this.held.push({ path, mapped: (frame.flags & FLAG.mapped) !== 0, inode: frame.long(FIELD.inode) })
    } else if (frame.type === FRAME.looked) {
      const number = frame.number(FIELD.number)!
      this.looks.get(number)?.({ files: this.held, ...unseenIn(frame) })
      this.looks.delete(number)
      this.held = []
    }
  }

  private finish(settle: () => void, hasLeft = false): void {
    if (this.isOver) return
    this.isOver = true
    this.giveUp()
    settle()
    // What goes on goes on without us. In this order: some helpers end as soon as nobody listens, and leave it to whoever adopts.
    stopAdopting()
    if (!(hasLeft && this.options.onLeft?.())) this.takeLeave({ survivors: false, left: [] })
    this.child.unref()
  }

  private takeLeave({ survivors, left }: Pick<TracedEnd, 'survivors' | 'left'>): void {
    const { events } = this
    this.afterEnd.resolve(survivors ? { left, channel: events } : undefined)
    if (!survivors) events.destroy()
  }

  /** Whoever waits for an answer gets none. */
  private giveUp(): void {
    for (const answer of this.looks.values()) answer(undefined)
    this.looks.clear()
    for (const done of this.barriers.values()) done()
    this.barriers.clear()
  }

  /** The stream ended before the command did: somebody killed the helper. The command lives, as nobody's child of ours. */
  private lookForEnd(): void {
    if (this.isOver) {
      this.afterEnd.reject(new Error('the helper was killed'))
      return
    }
    if (this.pid === undefined) {
      const end = unstartedEnd(this.child)
      void end.catch(() => {}).then(() => this.finish(() => this.outcome.resolve(end)))
      return
    }
    this.giveUp()
    this.options.onHelperDied()
    // It may have died before it could do what it was asked for.
    if (this.graceMs !== undefined) this.stopAlone(this.graceMs)
    const timer = setInterval(() => {
      const end = takeEnd(this.pid!)
      if (!end) return
      clearInterval(timer)
      this.finish(() => this.outcome.resolve(end))
    }, LOOK_MS)
  }
}
