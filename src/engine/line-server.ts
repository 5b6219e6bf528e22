/**
 * A unix socket that answers its own user only: lines in, lines out, and limits so that no client can keep the others
 * waiting or fill the memory. What the lines mean is for those who serve it: control-server.ts, and the api above.
 */
import { chmodSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { addon } from '../native/addon.ts'
import { lineReader, MAX_REQUEST_BYTES } from './control-frames.ts'
import { withSocketPath } from './control-place.ts'

/** More at once are turned away. */
const MAX_CLIENTS = 256
/** So much waits for a client that reads slowly before it is let go, and for all of them together. */
const MAX_WAITING_BYTES = 96 * 1024 * 1024
const MAX_ALL_WAITING_BYTES = 256 * 1024 * 1024
/** From here on a client reads too slowly: what can wait does, and what nobody waits for is left out. */
const CROWDED_BYTES = 256 * 1024
/** How long a last answer may take to be read when the server closes. */
const LAST_WORDS_MS = 1000

export interface LineClient {
  /** The process that connected, as the system saw it. */
  readonly pid: number
  /** Aborted when it has gone. */
  readonly signal: AbortSignal
  /** It has not read what it was sent. */
  readonly isCrowded: boolean
  /** Nothing happens when it has gone. */
  send(line: string): void
  /** Returns when it has read most of what it was sent, or has gone. */
  drained(): Promise<void>
  /** Its lines wait, or come again. */
  setReading(isReading: boolean): void
  /** Lets it go after so long without a line from it, and while nothing is sent; 0: never. */
  setPatience(ms: number): void
  /** Lets it go when it has read everything. */
  end(): void
}

export interface LineHandler {
  onLine(line: string): void
  /** A line exceeds the limit: nothing more is told. */
  onTooLong(): void
}

/** Who answers on a socket. */
export interface Face {
  attend(client: LineClient): LineHandler
  /** Takes on nothing more, and returns when what has to be completed is. */
  close(): Promise<void>
}

export interface LineServer {
  /** Takes no more clients, and lets those go that are there, after what they were sent. */
  close(): Promise<void>
}

export async function serveLines(
  socket: string,
  attend: (client: LineClient) => LineHandler,
  onCrowd: (client: LineClient) => void = () => {},
): Promise<LineServer> {
  const clients = new Set<Socket>()
  const server = createServer(socket => {
    socket.on('error', () => socket.destroy())
    const pid = mayAsk(socket)
    if (pid === undefined) return void socket.destroy()
    const client = toClient(socket, pid, clients)
    if (clients.size >= MAX_CLIENTS) {
      onCrowd(client)
      return client.end()
    }
    clients.add(socket)
    socket.on('close', () => clients.delete(socket))
    const handler = attend(client)
    socket.on(
      'data',
      lineReader(
        MAX_REQUEST_BYTES,
        line => handler.onLine(line),
        () => handler.onTooLong(),
      ),
    )
  })
  await listen(server, socket)
  chmodSync(socket, 0o600)
  return {
    async close() {
      server.close()
      const left = [...clients].map(client => new Promise(resolve => client.once('close', resolve)))
      for (const client of clients) client.destroySoon()
      await Promise.race([Promise.all(left), pause(LAST_WORDS_MS, undefined, { ref: false })])
      for (const client of clients) client.destroy()
    },
  }
}

const listen = (server: Server, socket: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    withSocketPath(socket, address => server.listen(address, () => resolve()))
  })

function toClient(socket: Socket, pid: number, all: ReadonlySet<Socket>): LineClient {
  const gone = new AbortController()
  socket.on('close', () => gone.abort())
  socket.on('timeout', () => socket.destroy())
  // However many wait for it, they wait for one event.
  let waited: Promise<void> | undefined
  const room = () => {
    waited ??= new Promise<void>(resolve => {
      const go = () => {
        socket.off('drain', go).off('close', go)
        waited = undefined
        resolve()
      }
      socket.on('drain', go).on('close', go)
    })
    return waited
  }
  return {
    pid,
    signal: gone.signal,
    get isCrowded() {
      return socket.writableLength > CROWDED_BYTES
    },
    send(line) {
      if (socket.destroyed || !socket.writable) return
      socket.write(`${line}\n`)
      if (socket.writableLength > MAX_WAITING_BYTES || (this.isCrowded && sumOf(all) > MAX_ALL_WAITING_BYTES))
        socket.destroy()
    },
    async drained() {
      while (this.isCrowded && !socket.destroyed) await room()
    },
    setReading: isReading => void (isReading ? socket.resume() : socket.pause()),
    setPatience: ms => void socket.setTimeout(ms),
    end: () => void socket.end(),
  }
}

const sumOf = (clients: ReadonlySet<Socket>): number =>
  [...clients].reduce((sum, { writableLength }) => sum + writableLength, 0)

/** The directory of the socket keeps others out already; this is for one that was opened by mistake. */
function mayAsk(client: Socket): number | undefined {
  const { fd } = (client as Socket & { _handle?: { fd?: number } })._handle ?? {}
  if (fd === undefined || fd < 0) return undefined
  const { pid, uid } = addon.peerOf(fd)
  return uid === process.getuid!() || uid === 0 ? pid : undefined
}
