/**
 * A core dump is written by the kernel for a process that a signal ends, without a call that could be told. Where the file lies in the
 * directory that the process was started in, under the name that the kernel gives by itself (`core`, `core.PID`), and last
 * changed when the process ended, it is told as what that process wrote.
 */
import { closeSync, lstatSync, openSync, readSync } from 'node:fs'
import { joinRaw, type Raw, rawToBytes } from '../model/raw-path.ts'
import type { ExecEvent, ExitEvent, PathEvent, TraceEvent } from '../tracers/trace-event.ts'

/** Those that the kernel dumps for, unless they are caught. */
const DUMPS = new Set('QUIT ILL TRAP ABRT BUS FPE SEGV XCPU XFSZ SYS'.split(' ').map(name => `SIG${name}`))
/** The end is told only when the dump is written. */
const AROUND_MS = 1000
/** The clock of files ticks: their times may lie before what made them. */
const TICK_MS = 20

const ELF_MAGIC = '\x7fELF'
const ELF_TYPE_AT = 16
const ELF_CORE = 4

type Started = Pick<ExecEvent, 'at' | 'pid' | 'cwd'>

/** What is to be told, with the core dumps among it, each before the end of its process. */
export function withCoreDumps(tell: (event: TraceEvent) => void): (event: TraceEvent) => void {
  const running = new Map<number, Started>()
  return event => {
    if (event.type === 'exec') {
      if (event.replaces) running.delete(event.replaces)
      running.set(event.id, { at: event.at, pid: event.pid, cwd: event.cwd })
    } else if (event.type === 'exit') {
      const started = running.get(event.id)
      running.delete(event.id)
      const dump = started && dumpOf(started, event)
      if (dump) tell(dump)
    } else if (event.type === 'undone') running.delete(event.id)
    tell(event)
  }
}

function dumpOf({ at: startedAt, pid, cwd }: Started, { id, at, signal }: ExitEvent): PathEvent | undefined {
  if (signal === undefined || !DUMPS.has(signal) || !cwd.startsWith('/')) return undefined
  for (const path of ['core', `core.${pid}`].map(name => joinRaw(cwd, name))) {
    const found = timesOf(path)
    if (!found || Math.abs(found.changed - at) > AROUND_MS) continue
    const told = {
      type: 'path',
      op: 'write',
      at,
      pid,
      thread: pid,
      exec: id,
      path,
      existed: found.made < startedAt - TICK_MS,
    } as const
    const nothing = { to: undefined, hold: undefined, changed: undefined, replaced: undefined } as const
    return {
      ...told,
      ...nothing,
      past: false,
      absent: false,
      directory: false,
      linked: false,
      emptied: false,
      isUnknown: false,
    }
  }
  return undefined
}

/** undefined when it is no core dump. */
function timesOf(path: Raw): { changed: number; made: number } | undefined {
  try {
    const found = lstatSync(rawToBytes(path))
    return found.isFile() && isDump(path) ? { changed: found.mtimeMs, made: found.birthtimeMs } : undefined
  } catch {
    return undefined
  }
}

function isDump(path: Raw): boolean {
  const fd = openSync(rawToBytes(path), 'r')
  try {
    const head = Buffer.alloc(ELF_TYPE_AT + 2)
    readSync(fd, head, 0, head.length, 0)
    return head.toString('latin1', 0, ELF_MAGIC.length) === ELF_MAGIC && head.readUInt16LE(ELF_TYPE_AT) === ELF_CORE
  } finally {
    closeSync(fd)
  }
}
