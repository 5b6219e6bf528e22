/** A limit on the size of files (`ulimit -f`), which shows as one error or another: said as what it is. */
import { readFileSync } from 'node:fs'
import { errnoOf } from './errors.ts'

export interface SizeLimit {
  /** Completes "Cannot …: ". */
  message: string
  hint: string
}

/** SQLite had no room for the index of a write-ahead log, which has this size: a limit below it is the reason. */
const SHM_FAILED = 4874
const SHM_BYTES = 32_768

/** Undefined when that is not what `error` is about. SQLite says only that it could not write. */
export function sizeLimitOf(error: unknown): SizeLimit | undefined {
  const isShm = (error as { errcode?: unknown } | undefined)?.errcode === SHM_FAILED
  if (!isShm && !/^(EFBIG|EIO)$/.test(errnoOf(error) ?? '')) return undefined
  const bytes = limitBytes()
  return bytes === undefined || (isShm && Number(bytes) >= SHM_BYTES)
    ? undefined
    : {
        message: `no file may be larger than ${bytes} bytes here (ulimit -f)`,
        hint: 'Raise that limit (`ulimit -f unlimited`), or say the same in another shell; nothing is lost',
      }
}

/** The soft limit of this process; undefined when there is none, or nobody tells. */
function limitBytes(): string | undefined {
  try {
    return /^Max file size\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
  } catch {
    return undefined
  }
}
