/**
 * What goes over a control connection: one JSON object per line. The client begins with `{"hello": "control"}`, and the server
 * greets with `Hello`; the client sends one request, `{"op": …, parameters}`, and perhaps `{"cancel": true}`; the server sends
 * `Frame`s, the last of which has `ok` or `error`.
 */
import type { ErrorCode } from '../errors/errors.ts'
import type { Progress } from './results.ts'

/** Another number means that the two do not understand each other. */
export const CONTROL_VERSION = 2
/** What a control connection begins with. */
export const CONTROL_HELLO = 'control'
/** Of a line, both ways. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024
/** Of a request: the server takes no more. */
export const MAX_REQUEST_BYTES = 1024 * 1024

export interface Hello {
  savepoint: 'control'
  version: number
  run: string
}

export type Frame =
  | { notice: string }
  | { progress: Progress }
  /** From `true` to `false` a cancellation has no effect. */
  | { unstoppable: boolean }
  /** Of `trace`: a line of exec.jsonl. */
  | { event: unknown }
  | { ok: true; result?: unknown }
  | { error: { code: ErrorCode; message: string; hint?: string; data?: Record<string, unknown> } }
  /** The run ends at this moment: nothing was done, and it can be done without it. */
  | { gone: true }

/** Cuts a stream into lines. `onTooLong` is called once, when one exceeds the limit; then nothing more is told. */
export function lineReader(limit: number, onLine: (line: string) => void, onTooLong: () => void) {
  let parts: Buffer[] = []
  let length = 0
  let isOver = false
  return (chunk: Buffer): void => {
    for (let rest = chunk; !isOver && rest.length > 0; ) {
      const end = rest.indexOf(0x0a)
      const part = end < 0 ? rest : rest.subarray(0, end)
      length += part.length
      if (length > limit) {
        isOver = true
        onTooLong()
        return
      }
      parts.push(part)
      if (end < 0) return
      const line = Buffer.concat(parts).toString()
      parts = []
      length = 0
      onLine(line)
      rest = rest.subarray(end + 1)
    }
  }
}
