/**
 * One connection of the socket protocol (frames.ts): requests in, frames out. Requests with an `id` are carried out side by
 * side, and their frames carry it; those without one after the other. A client that does not read is not read either.
 */

import { cancelled } from '../errors/errors.ts'
import { type Face, type LineClient, type LineHandler, parseObject, runOf, SavepointError, tooLong } from '../index.ts'
import { MAX_DEPTH } from '../model/nesting.ts'
import { errorText, withId } from './frames.ts'
import type { Out, Service } from './service.ts'

/** Of one client, begun; beyond that it is not read until one is answered, and what was read with the last of them waits. */
const MAX_REQUESTS = 64
/** It is in every frame of the answer. */
const MAX_ID = 1000
/** A client that asks nothing, and waits for nothing, is let go. */
const IDLE_MS = 10 * 60_000

export const faceOf = (service: Service): Face => ({
  attend: client => new Session(client, service),
  close: () => service.close(),
})

/** To those for whom there is no room. */
export function turnAway(client: LineClient): void {
  const error = new SavepointError('busy', 'Cannot answer: too many clients are connected', { hint: 'Try again later' })
  client.send(errorText(error))
}

class Session implements LineHandler {
  private readonly client: LineClient
  private readonly service: Service
  /** By what `cancel` names: the id as text, or undefined. */
  private readonly working = new Map<AbortController, string | undefined>()
  private order: Promise<void> = Promise.resolve()
  /** Read, and not begun. */
  private readonly waiting: { request: Record<string, unknown>; stop: AbortController }[] = []

  constructor(client: LineClient, service: Service) {
    this.client = client
    this.service = service
    client.setPatience(IDLE_MS)
    client.signal.addEventListener('abort', () => this.cancel(undefined))
  }

  onTooLong(): void {
    this.client.send(errorText(tooLong()))
    this.client.end()
  }

  onLine(line: string): void {
    if (line.trim() === '') return
    const request = parseObject(line)
    if (!request) {
      const error = new SavepointError('usage', 'Cannot read the request: it is no JSON object', {
        hint: `One object per line, at most ${MAX_DEPTH} levels deep: {"op":"head"}`,
      })
      this.client.send(errorText(error))
      this.restIfUnread()
    } else if (!('op' in request) && 'cancel' in request) this.cancel(request.cancel)
    else if ((nameOf(request.id)?.length ?? 0) > MAX_ID)
      this.client.send(
        errorText(new SavepointError('usage', `Cannot answer: "id" is longer than ${MAX_ID} characters`)),
      )
    else if (this.working.size >= MAX_REQUESTS) this.waiting.push({ request, stop: new AbortController() })
    else void this.take(request, new AbortController())
  }

  private async take({ op, id, ...input }: Record<string, unknown>, stop: AbortController): Promise<void> {
    const name = nameOf(id)
    this.working.set(stop, name)
    this.client.setPatience(0)
    if (this.working.size >= MAX_REQUESTS) this.client.setReading(false)
    const before = this.order
    const work = (name === undefined ? before : Promise.resolve()).then(() => this.answer(op, input, name, stop.signal))
    if (name === undefined) this.order = work
    await work
    this.working.delete(stop)
    const next = this.waiting.shift()
    if (next) void this.take(next.request, next.stop)
    else if (this.working.size < MAX_REQUESTS) this.client.setReading(true)
    if (this.working.size === 0) this.client.setPatience(IDLE_MS)
  }

  private async answer(op: unknown, input: object, id: string | undefined, signal: AbortSignal): Promise<void> {
    const { client } = this
    // Whoever has not read the last answer gets no further one made.
    await client.drained()
    if (client.signal.aborted) return
    if (signal.aborted) return client.send(withId(errorText(cancelled()), id))
    const out: Out = {
      frame: text => client.send(withId(text, id)),
      get isCrowded() {
        return client.isCrowded
      },
      drained: () => client.drained(),
      signal,
    }
    // To find out takes longer than most answers: only for what asks for rights.
    const caller = {
      get run() {
        return runOf(client.pid)
      },
    }
    await this.service.call(caller, op, input, out)
  }

  /** Whoever asks and does not read is not read, either. */
  private restIfUnread(): void {
    if (!this.client.isCrowded) return
    this.client.setReading(false)
    void this.client.drained().then(() => this.client.setReading(this.working.size < MAX_REQUESTS))
  }

  /** One, or all of them. */
  private cancel(id: unknown): void {
    const name = id === undefined || id === true ? undefined : JSON.stringify(id)
    const isMeant = (own: string | undefined) => name === undefined || name === own
    for (const [stop, own] of this.working) if (isMeant(own)) stop.abort()
    for (const { request, stop } of this.waiting) if (isMeant(nameOf(request.id))) stop.abort()
  }
}

const nameOf = (id: unknown): string | undefined => (id === undefined ? undefined : JSON.stringify(id))
