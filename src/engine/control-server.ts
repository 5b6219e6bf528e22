/**
 * The server's side of a control socket: who may ask, lines in, frames out, limits. What is asked for is carried out by
 * control-operations.ts, which comes with zod and is loaded for the first request.
 */
import { chmodSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { addon } from '../native/addon.ts'
import { CONTROL_VERSION, type Frame, type Hello, lineReader, MAX_REQUEST_BYTES } from './control-frames.ts'
import { withSocketPath } from './control-place.ts'

const MAX_CLIENTS = 128
/** A client that connects and asks nothing. */
const SILENCE_MS = 30_000
/** A reader that takes nothing: what nobody waits for is left out beyond the first, and it is let go beyond the second. */
const CROWDED_BYTES = 256 * 1024
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** How long an answer may take to be read when the run is over. */
const LAST_WORDS_MS = 1000

export interface Asked {
  request: unknown
  /** The process that asks. */
  pid: number
  signal: AbortSignal
  send(frame: Frame): void
}

/** Undefined: the run is over. */
export type Answer = (asked: Asked) => Promise<{ result: unknown } | undefined>

export interface ControlServer {
  /** Takes no more, and returns when what was asked is answered, and read or nobody reads it. */
  close(): Promise<void>
}

export async function serveControl(socket: string, run: string, answer: Answer): Promise<ControlServer> {
  const clients = new Set<Socket>()
  const answers = new Set<Promise<unknown>>()
  const track = <T>(work: Promise<T>): Promise<T> => {
    answers.add(work)
    return work.finally(() => answers.delete(work))
  }
  const server = createServer(client => {
    client.on('error', () => client.destroy())
    if (clients.size >= MAX_CLIENTS || !mayAsk(client)) return void client.destroy()
    clients.add(client)
    client.on('close', () => clients.delete(client))
    attend(client, run, asked => track(answer(asked)))
  })
  await listen(server, socket)
  chmodSync(socket, 0o600)
  return {
    async close() {
      server.close()
      await Promise.allSettled(answers)
      // They are written by whoever waits for them, a moment later.
      await nextTurn()
      const left = [...clients].map(client => new Promise(resolve => client.once('close', resolve)))
      for (const client of clients) client.destroySoon()
      await Promise.race([Promise.all(left), pause(LAST_WORDS_MS, undefined, { ref: false })])
    },
  }
}

const listen = (server: Server, socket: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    withSocketPath(socket, address => server.listen(address, () => resolve()))
  })

function peerOf(client: Socket): { pid: number; uid: number } | undefined {
  const { fd } = (client as Socket & { _handle?: { fd?: number } })._handle ?? {}
  return fd === undefined || fd < 0 ? undefined : addon.peerOf(fd)
}

/** The directory of the socket keeps others out already; this is for one that was opened by mistake. */
function mayAsk(client: Socket): boolean {
  const uid = peerOf(client)?.uid
  return uid !== undefined && (uid === process.getuid!() || uid === 0)
}

function attend(client: Socket, run: string, answer: Answer): void {
  const { pid } = peerOf(client)!
  const cancellation = new AbortController()
  let isAsked = false
  const send = (frame: Frame | Hello) => {
    if (client.destroyed || !client.writable) return
    if ('progress' in frame && client.writableLength > CROWDED_BYTES) return
    client.write(`${JSON.stringify(frame)}\n`)
    if (client.writableLength > MAX_WAITING_BYTES) client.destroy()
  }
  const finish = (frame: Frame) => {
    send(frame)
    client.end()
  }
  const refuse = (message: string) =>
    finish(toFrame(new SavepointError('usage', `Cannot read the request: ${message}`)))
  const read = lineReader(
    MAX_REQUEST_BYTES,
    line => {
      const request = parse(line)
      if (isAsked && request && 'cancel' in request) return cancellation.abort()
      if (isAsked) return
      isAsked = true
      client.setTimeout(0)
      if (!request) return refuse('it is no JSON object')
      answer({ request, pid, signal: cancellation.signal, send })
        .then(answered => finish(answered ? { ok: true, result: answered.result } : { gone: true }))
        .catch(error => finish(toFrame(error)))
    },
    () => refuse(`a line is longer than ${MAX_REQUEST_BYTES} bytes`),
  )
  client.on('data', read)
  client.on('close', () => cancellation.abort())
  client.setTimeout(SILENCE_MS, () => client.destroy())
  send({ savepoint: 'control', version: CONTROL_VERSION, run })
}

function parse(line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function toFrame(error: unknown): Frame {
  if (error instanceof SavepointError) {
    const { code, message, hint, data } = error
    return { error: { code, message, hint, data } }
  }
  if (errnoOf(error)) return { error: { code: 'io.failed', message: (error as Error).message } }
  return { error: { code: 'bug', message: error instanceof Error ? (error.stack ?? error.message) : String(error) } }
}
