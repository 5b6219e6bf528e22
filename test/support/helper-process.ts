/** The helper program by itself, without a timeline: what it tells of a command, or of a control group. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { EventDecoder } from '../../src/tracers/decode.ts'
import { encodeRequest, FIELD, FRAME, type Frame, FrameReader, REQUEST } from '../../src/tracers/frames.ts'
import type { ExecEvent, ExitEvent, TraceEvent } from '../../src/tracers/trace-event.ts'

export const helperFile = fileURLToPath(new URL('../../build/savepoint-helper', import.meta.url))

/** Where the control groups of version 2 are. */
export const cgroups = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/mounts', 'utf8'))?.[1]

export class HelperProcess {
  readonly events: TraceEvent[] = []
  onEvent: ((event: TraceEvent) => void) | undefined
  readonly child: ChildProcess
  /** What it tells first: from then on it watches. */
  readonly started: Promise<void>
  private readonly socket: Socket
  private readonly waiting = new Map<number, () => void>()

  /** `before` is put in front of the helper: `unshare …`. */
  constructor(args: string[], { cwd, before = [] }: { cwd?: string; before?: string[] } = {}) {
    const [program, ...rest] = [...before, helperFile, '--events', '3', ...args]
    this.child = spawn(program!, rest, { cwd, stdio: ['ignore', 'inherit', 'inherit', 'pipe'] })
    this.socket = this.child.stdio[3] as Socket
    const decoder = new EventDecoder()
    const hello = Promise.withResolvers<void>()
    this.started = hello.promise
    const receive = (frame: Frame) => {
      const event = decoder.decode(frame)
      if (event) this.events.push(event)
      if (event) this.onEvent?.(event)
      if (frame.type === FRAME.hello) hello.resolve()
      // It waits until we have taken note.
      if (frame.type === FRAME.end) this.socket.end()
      if (frame.type === FRAME.barrier) this.waiting.get(frame.number(FIELD.number)!)?.()
    }
    const reader = new FrameReader(receive)
    this.socket.on('data', chunk => reader.push(chunk))
    // A helper that is told to end may do so while we still write.
    this.socket.on('error', () => {})
  }

  get executions(): ExecEvent[] {
    return this.events.filter(event => event.type === 'exec')
  }

  /** How the execution ended whose arguments begin so. */
  endOf(start: string): ExitEvent | undefined {
    const { id } = this.executions.find(({ argv }) => argv.join(' ').startsWith(start))!
    return this.events.find(event => event.type === 'exit' && event.id === id) as ExitEvent | undefined
  }

  get lost(): number {
    return this.events.reduce((sum, event) => sum + (event.type === 'lost' ? event.count : 0), 0)
  }

  /** Everything that happened before the call has been told. */
  barrier(): Promise<void> {
    return this.ask(REQUEST.barrier)
  }

  /** One of the requests that are answered. */
  async ask(request: number): Promise<void> {
    const number = this.waiting.size + 1
    await new Promise<void>(resolve => {
      this.waiting.set(number, resolve)
      this.socket.write(encodeRequest(request, number))
    })
  }

  /** Until it ends by itself, and all that it told is here. */
  async finished(): Promise<void> {
    await once(this.child, 'close')
  }
}
