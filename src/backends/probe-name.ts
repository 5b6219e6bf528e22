/**
 * Names of what a probe makes: they tell whether its process may still be at work. What one that was killed has left goes, and
 * is never taken for a state of a timeline, nor for one of somebody else.
 */
import { randomHex } from '../model/id.ts'
import { isAlive, pidNamespace } from '../store/process-mark.ts'

/** A probe runs few programs, and each has a limit (run-program.ts). */
const LONGEST_MS = 10 * 60_000
/** When, in which namespace of processes, by which of them. */
const PATTERN = /(?:^\.|-)probe-([0-9a-z]+)\.([0-9a-z]+)\.([0-9a-z]+)\.[0-9a-f]+$/

export const newProbeName = (): string =>
  `probe-${[Date.now(), pidNamespace(), process.pid].map(number => number.toString(36)).join('.')}.${randomHex(6)}`

/** `name`: as it was given, after a dot or a hyphen. */
export const isProbe = (name: string): boolean => PATTERN.test(name)

/** Of a process elsewhere only the time tells. */
export function isLeftProbe(name: string): boolean {
  const [at, where, pid] = (PATTERN.exec(name) ?? []).slice(1).map(text => Number.parseInt(text, 36))
  if (at === undefined) return false
  return Date.now() - at > LONGEST_MS || (where === pidNamespace() && !isAlive(pid!))
}
