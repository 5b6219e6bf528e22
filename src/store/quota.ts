/** A quota that is used up: no count of free bytes shows it, and SQLite does not tell it from a disk that has failed. */
import { rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import { temporaryName } from './durable.ts'

/** Writes so much into the directory, and takes it away again before a disk has seen it. Throws what is in the way. */
export function tryToWrite(directory: string, bytes: number): void {
  const probe = temporaryName(join(directory, 'room'))
  try {
    writeFileSync(probe, Buffer.alloc(bytes), { mode: 0o600, flag: 'wx' })
  } finally {
    rmSync(probe, { force: true })
  }
}

/** SQLITE_IOERR_WRITE. Of all that can be in the way of a write it knows only a full disk by name. */
const WRITE_FAILED = 778
const PROBE_BYTES = 64 * 1024

/** What SQLite said of the database in `file`, as what it was; the error itself when it was something else. */
export function asQuota(error: unknown, file: string): unknown {
  if ((error as { errcode?: number }).errcode !== WRITE_FAILED) return error
  try {
    tryToWrite(dirname(file), PROBE_BYTES)
    return error
  } catch (refused) {
    return errnoOf(refused) === 'EDQUOT' ? refused : error
  }
}
