/** The process of a command, seen from outside: whether it lives, has stopped, and how it ended when the helper cannot tell. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { addon } from '../native/addon.ts'
import { signalName } from './decode.ts'
import { FIELD, type Frame } from './frames.ts'

export interface TracedEnd {
  /** Both undefined when the helper died before the command, and nobody could tell. */
  code: number | undefined
  signal: string | undefined
  /** Whether processes of it go on. */
  survivors: boolean
  /** Which, as far as that is known: not all of very many. */
  left: number[]
}

/** As a frame of the helper tells it. */
export function endOf(frame: Frame): TracedEnd {
  const signal = frame.number(FIELD.signal)
  return {
    code: frame.number(FIELD.code),
    signal: signal === undefined ? undefined : signalName(signal),
    ...membersOf(frame),
  }
}

/** Of one that tells who goes on. */
export const membersOf = (frame: Frame): Pick<TracedEnd, 'survivors' | 'left'> => ({
  survivors: frame.number(FIELD.number) !== 0,
  left: pidsOf(frame.field(FIELD.pids)),
})

const pidsOf = (bytes: Buffer = Buffer.alloc(0)): number[] =>
  Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readUInt32LE(i * 4))

const unknownEnd: TracedEnd = { code: undefined, signal: undefined, survivors: false, left: [] }

/**
 * Of a command whose helper has ended before it could begin. What ends that as it ends others (Ctrl-C) was meant for the command.
 * Rejects when it was killed.
 */
export async function unstartedEnd(helper: ChildProcess): Promise<TracedEnd> {
  if (helper.exitCode === null && helper.signalCode === null) await once(helper, 'exit')
  const signal = helper.signalCode ?? undefined
  if (signal === undefined || signal === 'SIGKILL') throw new Error('its tracer was killed before it began')
  return { ...unknownEnd, signal }
}

/** What loses the helper as its parent becomes our child, so that its end can be told. By how many commands that is wanted. */
let adopters = 0

export function startAdopting(): void {
  if (adopters++ === 0) addon.adoptOrphans(true)
}

export function stopAdopting(): void {
  if (--adopters === 0) addon.adoptOrphans(false)
}

/** undefined while it lives. */
export function takeEnd(pid: number): TracedEnd | undefined {
  try {
    const status = addon.takeEnd(pid)
    if (status === undefined) return undefined
    const signal = status & 0x7f
    return signal ? { ...unknownEnd, signal: signalName(signal) } : { ...unknownEnd, code: status >> 8 }
  } catch {
    // Not ours: somebody nearer to it has adopted it.
    return isAlive(pid) ? undefined : unknownEnd
  }
}

/** By what the system says of it; the name in parentheses may hold anything. */
export function isStopped(pid: number | undefined): boolean {
  try {
    return /\) T [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
