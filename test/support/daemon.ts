/** `savepoint daemon` going on while a test asks it, and a client of its protocol. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { builtCommand } from './built-cli.ts'
import type { Workspace } from './workspace.ts'

export interface BackgroundDaemon {
  child: ChildProcess
  socket: string
  /** Where it answers HTTP, if it does. */
  http: string | undefined
  ended: Promise<{ status: number | null; signal: string | null; stderr: string }>
}

const started: ChildProcess[] = []

export async function startDaemon(
  space: Workspace,
  options: { spawn?: SpawnOptions; before?: string[]; args?: string[] } = {},
): Promise<BackgroundDaemon> {
  const command = [...(options.before ?? []), ...builtCommand, 'daemon', '--json', ...(options.args ?? [])]
  const child = spawn(command[0]!, command.slice(1), {
    cwd: space.dir,
    env: space.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options.spawn,
  })
  started.push(child)
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  const ended = once(child, 'close').then(([status, signal]) => ({ status, signal, stderr }))
  const ready = once(createInterface(child.stdout!), 'line') as Promise<[string]>
  const [line] = await Promise.race([
    ready,
    ended.then(() => {
      throw new Error(`the daemon ended before it was ready: ${stderr}`)
    }),
  ])
  const { socket, http } = JSON.parse(line)
  return { child, socket, http, ended }
}

/** What a failed test has left, too. */
export async function endDaemons(): Promise<void> {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGTERM')
    await once(child, 'close')
  }
}

// biome-ignore lint/suspicious/noExplicitAny: whatever it answers; the tests say what they expect
export type Frame = any

/** One connection. Frames are kept until somebody waits for them. */
export class Client {
  readonly socket: Socket
  readonly frames: Frame[] = []
  private readonly waiting: (() => void)[] = []
  isClosed = false
  /** Hears each, whoever waits for it. */
  onFrame: (frame: Frame) => void = () => {}

  constructor(path: string) {
    this.socket = connect(path)
    this.socket.on('error', () => {})
    createInterface(this.socket)
      // It says the errors of the socket once more.
      .on('error', () => {})
      .on('line', line => {
        const frame = JSON.parse(line)
        this.onFrame(frame)
        this.frames.push(frame)
        this.wake()
      })
      .on('close', () => {
        this.isClosed = true
        this.wake()
      })
  }

  send(...requests: object[]): void {
    for (const request of requests) this.socket.write(`${JSON.stringify(request)}\n`)
  }

  /** The first frame that is wanted, and all before it are forgotten. Throws when the other end closes first. */
  async next(isWanted: (frame: Frame) => boolean = () => true): Promise<Frame> {
    for (;;) {
      const found = this.frames.findIndex(isWanted)
      if (found >= 0) return this.frames.splice(0, found + 1).at(-1)
      if (this.isClosed) throw new Error(`the connection was closed; it had said ${JSON.stringify(this.frames)}`)
      await new Promise<void>(resolve => this.waiting.push(resolve))
    }
  }

  /** Asks, and gives the last frame of the answer. */
  async ask(request: object): Promise<Frame> {
    this.send(request)
    return this.next(isLast)
  }

  closed(): Promise<void> {
    return this.isClosed ? Promise.resolve() : new Promise(resolve => this.socket.once('close', () => resolve()))
  }

  end(): void {
    this.socket.destroy()
  }

  private wake(): void {
    for (const go of this.waiting.splice(0)) go()
  }
}

export const isLast = (frame: Frame): boolean => 'ok' in frame || 'error' in frame

/** One question on a connection of its own: all frames of the answer. */
export async function askOnce(path: string, request: object): Promise<Frame[]> {
  const client = new Client(path)
  const frames: Frame[] = []
  client.send(request)
  do frames.push(await client.next())
  while (!isLast(frames.at(-1)))
  client.end()
  return frames
}
