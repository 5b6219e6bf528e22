/** What a process has at its standard input. */
import { statSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'

/** Whether it may read something from a file, a pipe or a socket: not from a terminal or /dev/null. In doubt it may. */
export function isFed(pid: number): boolean {
  try {
    return !statSync(`/proc/${pid}/fd/0`).isCharacterDevice()
  } catch (error) {
    return errnoOf(error) !== 'ENOENT'
  }
}
