/**
 * Carries out the operations of the table for a process that serves a target, whoever asks and over whatever: what takes a
 * moment here, mostly on a timeline that is open; the rest in processes of its own (workers.ts), so that nobody who only looks
 * waits for a capture or a rollback. Every face that outlives a request calls this.
 */
import { setImmediate as others } from 'node:timers/promises'
import { cancelled } from '../errors/errors.ts'
import { type Savepoint, SavepointError, type ServedTarget } from '../index.ts'
import { Answers } from './answers.ts'
import { answerText, errorText } from './frames.ts'
import type { Operation } from './operation.ts'
import { Reader } from './reader.ts'
import { checkInput, findOperation } from './table.ts'
import { Turns } from './turns.ts'
import { Workers } from './workers.ts'

/** One after the other; the rest is for those that wait, for a filesystem for example. */
const FEW_SHORT = 1
const MAX_SHORT = 8

/** Who asks. */
export interface Caller {
  /** It is a process of this run: what it may do is less, and nothing is stopped for it. */
  run?: string | undefined
}

/** Where the frames of an answer go. */
export interface Out {
  /** A frame of frames.ts, as text without a line end. */
  frame(text: string): void
  /** It takes less than comes: what can wait should. */
  readonly isCrowded: boolean
  drained(): Promise<void>
  /** Nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

export class Service {
  readonly served: ServedTarget
  private readonly reader: Reader
  private readonly workers: Workers
  private readonly answers = new Answers()
  private readonly short = new Turns(FEW_SHORT, MAX_SHORT)
  /** Answers that are on their way, and whether they would ever end by themselves. */
  private readonly calls = new Map<Promise<void>, { stop: AbortController; isEndless: boolean }>()
  private isClosed = false

  constructor(served: ServedTarget, env: NodeJS.ProcessEnv) {
    this.served = served
    this.reader = new Reader(served, env)
    this.workers = new Workers(env)
  }

  /** Never rejects: the last frame has `ok` or `error`. */
  async call(caller: Caller, op: unknown, input: unknown, out: Out): Promise<void> {
    const stop = new AbortController()
    let signal: AbortSignal | undefined
    const own: Out = {
      frame: text => out.frame(text),
      get isCrowded() {
        return out.isCrowded
      },
      drained: () => out.drained(),
      get signal() {
        signal ??= AbortSignal.any([out.signal, stop.signal])
        return signal
      },
    }
    const state = { stop, isEndless: false }
    const work = this.answer(caller, op, input, own, state)
      .catch(errorText)
      .then(last => out.frame(last))
    this.calls.set(work, state)
    await work.finally(() => this.calls.delete(work))
  }

  /** Commands that callers wait for are stopped, and what only looks; what changes something is completed. */
  async close(): Promise<void> {
    this.isClosed = true
    for (const { stop, isEndless } of this.calls.values()) if (isEndless) stop.abort()
    await Promise.allSettled(this.calls.keys())
    this.workers.close()
    this.reader.close()
  }

  private async answer(
    caller: Caller,
    op: unknown,
    given: unknown,
    out: Out,
    state: { isEndless: boolean },
  ): Promise<string> {
    if (typeof op !== 'string')
      throw new SavepointError('usage', 'Cannot tell what to do: "op" is no text', { hint: '{"op":"head"}' })
    const operation = findOperation(op)
    const input = checkInput(operation, given)
    if (this.isClosed)
      throw new SavepointError('busy', `Cannot ${operation.name}: this process is ending`, { hint: 'Start it again' })
    state.isEndless = operation.effect === 'read' || operation.starts === 'attached'
    const told = isMomentary(operation, input) ? await this.look(operation, input, out) : undefined
    if (told !== undefined) return told
    if (out.signal.aborted) throw cancelled()
    const answer = await this.lookShortly(operation, input, out)
    if (answer !== undefined) return answer
    const request = { op: operation.name, input, target: this.served.path, home: this.served.home }
    return this.workers.carryOut(operation, request, caller, out)
  }

  /** undefined: what was interrupted has to be completed first, which is nothing for a moment. */
  private look(operation: Operation, input: Record<string, unknown>, out: Out): Promise<string | undefined> {
    let left = 0
    const send = (frame: Record<string, unknown>) => {
      // A reader that does not keep up is told later how much it missed.
      if (out.isCrowded) return void left++
      if (left > 0) out.frame(JSON.stringify({ left_out: left }))
      left = 0
      out.frame(JSON.stringify(frame))
    }
    const call = {
      send,
      get signal() {
        return out.signal
      },
      outlive: () => {},
    }
    return this.reader.use<string | undefined>(savepoint => {
      if (!operation.follows?.(input) && savepoint.isInterrupted()) return undefined
      const make = async () => answerText(operation, await operation.handler(savepoint, input, call))
      if (!operation.isOfHistory) return make()
      return this.answers.answer(savepoint, `${operation.name} ${JSON.stringify(input)}`, make)
    })
  }

  /** What is long only now and then; undefined: this time it is. */
  private async lookShortly(operation: Operation, input: Record<string, unknown>, out: Out) {
    const { isLong, handler } = operation
    if (operation.effect !== 'read' || typeof isLong !== 'function') return undefined
    const notices: string[] = []
    let isOurs = true
    const look = async (savepoint: Savepoint) => {
      isOurs = !savepoint.isInterrupted() && !isLong(savepoint, input)
      return isOurs ? answerText(operation, await handler(savepoint, input)) : undefined
    }
    const turn = await this.short.take()
    try {
      // Each takes a millisecond or two: where hundreds come at once, whoever comes after them is heard in between.
      await others()
      if (out.signal.aborted) throw cancelled()
      return await this.reader.once(look, { onNotice: notice => void notices.push(notice) })
    } finally {
      this.short.give(turn)
      // Otherwise a worker says them.
      if (isOurs) for (const notice of notices) out.frame(JSON.stringify({ notice }))
    }
  }
}

const isMomentary = ({ effect, isLong, follows }: Operation, input: Record<string, unknown>): boolean =>
  effect === 'read' && (!isLong || follows?.(input) === true)
