/**
 * What `eslogger exec fork exit` of macOS prints, one JSON object per line for every process of the machine, as events of
 * the processes below one that is watched. The format is not promised by Apple (eslogger(1) says so): whatever is not as
 * expected counts as lost, and nothing throws. Written after recorded lines; untested on a Mac.
 */
import { StringDecoder } from 'node:string_decoder'
import { nameOf, type Raw, rawFromText } from '../model/raw-path.ts'
import { signalName } from './decode.ts'
import type { TraceEvent } from './trace-event.ts'

/** As the helper of Linux has it (native/helper). */
const MAX_ARGV_BYTES = 32 * 1024
/** A line with a large environment; beyond it something is wrong. */
const MAX_LINE_CHARS = 16 * 1024 * 1024
/** Before the path of a script: its interpreter, and what the first line gives to it. */
const MAX_INTERPRETER_WORDS = 4

interface Process {
  exec: number
  parent: number
  depth: number
  /** `exec` is its own, not that of the process which forked it. */
  executed: boolean
}

export class EsloggerParser {
  private readonly onEvent: (event: TraceEvent) => void
  private readonly text = new StringDecoder('utf8')
  private rest = ''
  private isTooLong = false
  private readonly processes = new Map<number, Process>()
  private readonly waiting = new Map<number, () => void>()
  private lastExec = 0
  private lastNumber: number | undefined

  constructor(onEvent: (event: TraceEvent) => void) {
    this.onEvent = onEvent
  }

  /** From now on `pid` and all that it starts are told. Before anything of it has been pushed. */
  watch(pid: number): void {
    this.processes.set(pid, { exec: 0, parent: 0, depth: 0, executed: false })
  }

  /** Calls `done` once when the end of process `pid`, which may be anybody's, comes along. */
  whenEnded(pid: number, done: () => void): void {
    this.waiting.set(pid, done)
  }

  /** How many processes with an execution of their own have not ended. */
  get alive(): number {
    return [...this.processes.values()].filter(({ executed }) => executed).length
  }

  push(chunk: Buffer): void {
    const lines = (this.rest + this.text.write(chunk)).split('\n')
    this.rest = lines.pop()!
    for (const line of lines) {
      if (this.isTooLong) this.isTooLong = false
      else if (line.trim() !== '') this.take(line)
    }
    if (this.rest.length <= MAX_LINE_CHARS) return
    if (!this.isTooLong) this.lose(1)
    this.isTooLong = true
    this.rest = ''
  }

  private take(line: string): void {
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      this.lose(1)
      return
    }
    this.count(numberAt(message, 'global_seq_num'))
    const pid = numberAt(message, 'process', 'audit_token', 'pid')
    const at = timeOf(textAt(message, 'time'))
    const child = numberAt(message, 'event', 'fork', 'child', 'audit_token', 'pid')
    const stat = numberAt(message, 'event', 'exit', 'stat')
    const exec = valueAt(message, 'event', 'exec')
    if (pid === undefined || at === undefined) this.lose(1)
    else if (child !== undefined) this.fork(pid, child)
    else if (stat !== undefined) this.exit(pid, at, stat)
    else if (exec !== undefined) this.exec(pid, at, exec)
    else this.lose(1)
  }

  /** The system numbers what it sends; a gap is what it could not send, whoever it was about. */
  private count(number: number | undefined): void {
    if (number === undefined) return
    if (this.lastNumber !== undefined && number > this.lastNumber + 1) this.lose(number - this.lastNumber - 1)
    this.lastNumber = number
  }

  private lose(count: number): void {
    this.onEvent({ type: 'lost', pid: 0, count, why: 'overflow' })
  }

  private fork(parent: number, child: number): void {
    const above = this.processes.get(parent)
    if (above) this.processes.set(child, { ...above, executed: false })
  }

  private exec(pid: number, at: number, exec: unknown): void {
    const ppid = numberAt(exec, 'target', 'ppid') ?? 0
    // Its fork may be among what was lost.
    if (!this.processes.has(pid)) this.fork(ppid, pid)
    const process = this.processes.get(pid)
    if (!process) return
    const words = valueAt(exec, 'args')
    const args = Array.isArray(words) ? words.filter(word => typeof word === 'string') : []
    const script = textAt(exec, 'script', 'path')
    const program = script ?? textAt(exec, 'target', 'executable', 'path')
    if (program === undefined || !Array.isArray(words)) {
      this.lose(1)
      return
    }
    const { argv, truncated } = bounded(script === undefined ? args : withoutInterpreter(args, script))
    const replaces = process.executed ? process.exec : undefined
    if (!process.executed) {
      process.parent = process.exec
      process.depth = process.exec === 0 ? 0 : process.depth + 1
    }
    process.exec = ++this.lastExec
    process.executed = true
    this.onEvent({
      type: 'exec',
      id: process.exec,
      at,
      pid,
      ppid,
      parent: process.parent,
      depth: process.depth,
      replaces,
      program: rawFromText(program),
      argv,
      truncated: truncated || args.length < words.length,
      cwd: rawFromText(textAt(exec, 'cwd', 'path') ?? ''),
      setuid: false,
      held: false,
      detached: false,
      env: [],
    })
  }

  private exit(pid: number, at: number, stat: number): void {
    const process = this.processes.get(pid)
    this.processes.delete(pid)
    if (process?.executed) {
      // As wait(2) has it.
      const signal = stat & 0x7f
      const code = signal === 0 ? (stat >> 8) & 0xff : undefined
      const name = signal === 0 ? undefined : signalName(signal)
      this.onEvent({ type: 'exit', id: process.exec, at, code, signal: name })
    }
    this.waiting.get(pid)?.()
    this.waiting.delete(pid)
  }
}

/** The arguments of a script as they were given: the system puts its interpreter before them. */
function withoutInterpreter(args: string[], script: string): string[] {
  const at = args.slice(0, MAX_INTERPRETER_WORDS).findIndex((arg, i) => i > 0 && nameOf(arg) === nameOf(script))
  return at < 0 ? args : args.slice(at)
}

function bounded(args: string[]): { argv: Raw[]; truncated: boolean } {
  const argv: Raw[] = []
  let room = MAX_ARGV_BYTES
  for (const arg of args) {
    const raw = rawFromText(arg)
    if (raw.length + 1 > room) {
      if (room > 1) argv.push(raw.slice(0, room - 1))
      return { argv, truncated: true }
    }
    argv.push(raw)
    room -= raw.length + 1
  }
  return { argv, truncated: false }
}

/** `2025-01-02T03:04:05.123456789Z` in milliseconds, with fractions. */
function timeOf(text: string | undefined): number | undefined {
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z$/.exec(text ?? '')
  return parts ? Date.parse(`${parts[1]}Z`) + Number(parts[2] ?? 0) * 1000 : undefined
}

function valueAt(value: unknown, ...keys: string[]): unknown {
  for (const key of keys) value = (value as Record<string, unknown> | null | undefined)?.[key]
  return value ?? undefined
}

function numberAt(value: unknown, ...keys: string[]): number | undefined {
  const found = valueAt(value, ...keys)
  return Number.isSafeInteger(found) ? (found as number) : undefined
}

function textAt(value: unknown, ...keys: string[]): string | undefined {
  const found = valueAt(value, ...keys)
  return typeof found === 'string' ? found : undefined
}
