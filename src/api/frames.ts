/**
 * The frames of the protocol: one JSON object per line. A request is `{"op": …, parameters, "id"?: …}`, and
 * `{"cancel": true}` or `{"cancel": id}`; the answer is any number of `notice`, `progress`, `stdout`, `stderr`, `event` and
 * `execution` frames and a last one with `ok` or `error`. Workers speak it, too, so that their lines are passed on as they are.
 */
import { errorFrame, type Progress, SavepointError } from '../index.ts'
import type { Operation } from './operation.ts'

/** Of one answer. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

export const errorText = (error: unknown): string => JSON.stringify(errorFrame(error))

/** The last frame of an operation that succeeded; of one whose answer is too long, an error that says so. */
export function answerText({ name, isFlat }: Operation, answer: unknown): string {
  const text = JSON.stringify(isFlat ? { ok: true, ...(answer as object) } : { ok: true, result: answer ?? null })
  if (Buffer.byteLength(text) <= MAX_ANSWER_BYTES) return text
  return errorText(
    new SavepointError('failed', `Cannot answer ${name}: it would be more than ${MAX_ANSWER_BYTES} bytes`, {
      hint: 'Ask for less: a path, a limit, one snapshot. What it does is done',
    }),
  )
}

export const progressJson = ({ phase, files, bytes, totalFiles, totalBytes }: Progress) => ({
  phase,
  files,
  bytes,
  total_files: totalFiles ?? null,
  total_bytes: totalBytes ?? null,
})

/** Whether nothing comes after it. */
export const isLast = (frame: string): boolean => frame.startsWith('{"ok":') || frame.startsWith('{"error":')

/** The frame as an answer to the request that was called so. */
export const withId = (frame: string, id: string | undefined): string =>
  id === undefined ? frame : frame === '{}' ? `{"id":${id}}` : `{"id":${id},${frame.slice(1)}`
