/**
 * The server's side of a control connection: one request, frames out. What is asked for is carried out by
 * control-operations.ts, which comes with zod and is loaded for the first request.
 */
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { isTooDeep } from '../model/nesting.ts'
import { CONTROL_VERSION, type Frame, type Hello, MAX_REQUEST_BYTES } from './control-frames.ts'
import type { LineClient, LineHandler } from './line-server.ts'

/** A client that connects and asks nothing. */
export const SILENCE_MS = 30_000

export interface Asked {
  request: unknown
  /** The process that asks. */
  pid: number
  signal: AbortSignal
  send(frame: Frame): void
}

/** Undefined: the run is over. */
export type Answer = (asked: Asked) => Promise<{ result: unknown } | undefined>

/** Greets, and answers the one request that follows. */
export function attendControl(client: LineClient, run: string, answer: Answer): LineHandler {
  const cancellation = new AbortController()
  let isAsked = false
  const send = (frame: Frame | Hello) => {
    if (!('progress' in frame) || !client.isCrowded) client.send(JSON.stringify(frame))
  }
  const finish = (frame: Frame) => {
    send(frame)
    client.end()
  }
  client.signal.addEventListener('abort', () => cancellation.abort())
  send({ savepoint: 'control', version: CONTROL_VERSION, run })
  return {
    onLine(line) {
      const request = parseObject(line)
      if (isAsked && request && 'cancel' in request) return cancellation.abort()
      if (isAsked) return
      isAsked = true
      client.setPatience(0)
      if (!request) return finish(errorFrame(unreadable('it is no JSON object')))
      answer({ request, pid: client.pid, signal: cancellation.signal, send })
        .then(answered => finish(answered ? { ok: true, result: answered.result } : { gone: true }))
        .catch(error => finish(errorFrame(error)))
    },
    onTooLong: () => finish(errorFrame(tooLong())),
  }
}

const unreadable = (why: string): SavepointError => new SavepointError('usage', `Cannot read the request: ${why}`)
export const tooLong = (): SavepointError => unreadable(`a line is longer than ${MAX_REQUEST_BYTES} bytes`)

/** Undefined: it is none, or nested more deeply than anything that is asked for. */
export function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject && !isTooDeep(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

export function errorFrame(error: unknown): Extract<Frame, { error: unknown }> {
  if (error instanceof SavepointError) {
    const { code, message, hint, data } = error
    return { error: { code, message, hint, data } }
  }
  if (errnoOf(error)) return { error: { code: 'io.failed', message: (error as Error).message } }
  return { error: { code: 'bug', message: error instanceof Error ? (error.stack ?? error.message) : String(error) } }
}
