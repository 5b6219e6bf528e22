/**
 * Marks what a process makes beside that of others, so that whoever comes next can tell what one that was killed has left. A number
 * alone does not: processes of several containers may share a directory, and each has its own numbers.
 */
import { lstatSync, readlinkSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'

/** Nothing of what is marked is worked at for so long without a change of it. */
const LONGEST_MS = 24 * 60 * 60 * 1000

/** What `processMark` gives, as a part of a pattern with two groups. Without the second: of an older Savepoint. */
export const PROCESS_MARK = '(\\d+)(?:\\.([0-9a-z]+))?'

export const processMark = (): string => `${process.pid}.${markOfNamespace()}`

const markOfNamespace = (): string => pidNamespace().toString(36)

/** Of a process elsewhere only the time tells. */
export function isAbandoned(path: string, [, pid, where]: readonly (string | undefined)[]): boolean {
  if (where === markOfNamespace()) return !isAlive(Number(pid))
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat !== undefined && Date.now() - stat.mtimeMs > LONGEST_MS
}

/** Which numbers of processes are meant. 0 where the system does not tell. */
export function pidNamespace(): number {
  try {
    return Number(/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? 0)
  } catch {
    return 0
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errnoOf(error) === 'EPERM'
  }
}
