/** `daemon --http HOST:PORT`: where it listens, and the token that callers need. */
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { join } from 'node:path'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { errnoWords, SavepointError } from '../errors/errors.ts'
import { runOf } from '../index.ts'
import { randomHex } from '../model/id.ts'
import type { Daemon } from './daemon.ts'
import { type Carrier, httpApp } from './http.ts'
import type { Service } from './service.ts'
import { tcpPeer } from './tcp-peer.ts'

const TOKEN_BYTES = 32
const MIN_TOKEN_CHARS = 16
/** Whoever holds them, with a token or without. Further ones are closed at once. */
const MAX_CONNECTIONS = 256
/** For the last answers, to those who do not read them. */
const PARTING_MS = 2000

export interface Address {
  host: string
  port: number
}

/** `HOST:PORT`, `[IPv6]:PORT` or `PORT`, which is on this machine alone. */
export function parseAddress(text: string): Address {
  const [, six, name, digits] = /^(?:\[([^\]]+)\]:|([^:]+):)?(\d+)$/.exec(text) ?? []
  const port = Number(digits)
  if (digits === undefined || port > 65535)
    throw new SavepointError('usage', `Cannot listen on "${text}": it is no HOST:PORT`, {
      hint: 'For example 127.0.0.1:7070; port 0 is any free one',
    })
  return { host: six ?? name ?? '127.0.0.1', port }
}

const isAnywhere = (host: string): boolean => host === '0.0.0.0' || host === '::'
/** Not what a name only begins with: `127.example.org` may be anywhere. */
const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

/** Other letters are written in many ways, and spaces around it are cut off. */
const canBeSent = (token: string): boolean => /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(token)

export interface Token {
  value: string
  /** Made just now: whoever started the server has not seen it yet. */
  isNew: boolean
  /** Where it is kept; undefined for that of the user. */
  file: string | undefined
}

/** That of the user; else the one of this home, made when there is none. Beyond this machine only one that the user chose. */
export function tokenFor(home: string, { host }: Address, env: NodeJS.ProcessEnv): Token {
  const given = env.SAVEPOINT_HTTP_TOKEN
  if (given !== undefined && given !== '') {
    const why =
      given.length < MIN_TOKEN_CHARS ? 'it is too short' : canBeSent(given) ? undefined : 'no header can carry it'
    if (why === undefined) return { value: given, isNew: false, file: undefined }
    throw new SavepointError('config.invalid', `Cannot use SAVEPOINT_HTTP_TOKEN: ${why}`, {
      hint: `It takes ${MIN_TOKEN_CHARS} ASCII characters or more, for example of \`openssl rand -hex 32\``,
    })
  }
  if (!isLoopback(host))
    throw new SavepointError('usage', `Cannot listen on ${host}: others could reach it, and no token was given`, {
      hint: 'Set SAVEPOINT_HTTP_TOKEN, or listen on 127.0.0.1',
    })
  mkdirSync(home, { recursive: true, mode: 0o700 })
  return keptToken(join(home, 'http-token'))
}

function keptToken(file: string): Token {
  const value = randomHex(TOKEN_BYTES)
  try {
    writeFileSync(file, `${value}\n`, { mode: 0o600, flag: 'wx' })
    return { value, isNew: true, file }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const kept = readPrivate(file)
  if (kept.length >= MIN_TOKEN_CHARS) return { value: kept, isNew: false, file }
  throw new SavepointError('config.invalid', `Cannot use the token in ${file}: it is too short, or no file`, {
    hint: `Delete the file: the next start makes a new one`,
  })
}

/** What a link leads to is not ours to close to others. Anything but a file has no text. */
function readPrivate(file: string): string {
  if (lstatSync(file).isSymbolicLink()) return ''
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(fd).isFile()) return ''
    fchmodSync(fd, 0o600)
    return readFileSync(fd, 'utf8').trim()
  } finally {
    closeSync(fd)
  }
}

export interface HttpServer {
  /** As a browser writes it. */
  url: string
  /** The service is closed before: what it answers in the end is still sent. */
  close(): Promise<void>
}

export async function serveHttp(
  address: Address,
  service: Service,
  token: string,
  version: string,
): Promise<HttpServer> {
  const hosts = new Set<string>()
  const carryOut: Carrier = (operation, input, out, context) =>
    service.call({ run: operation.effect === 'read' ? undefined : runOfCaller(context) }, operation.name, input, out)
  const server = createServer(getRequestListener(httpApp({ carryOut, token, hosts, version }).fetch))
  server.maxConnections = MAX_CONNECTIONS
  const answering = new Set<Promise<void>>()
  server.on('request', (_, response) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    answering.add(promise)
    response.once('close', () => {
      answering.delete(promise)
      resolve()
    })
  })
  await listen(server, address)
  const { port } = server.address() as AddressInfo
  const named = isIP(address.host) === 6 ? `[${address.host}]` : address.host
  const names = isLoopback(address.host) ? [named, 'localhost', '127.0.0.1', '[::1]'] : [named]
  if (!isAnywhere(address.host)) for (const name of names) hosts.add(`${name}:${port}`)
  return {
    url: `http://${named}:${port}`,
    async close() {
      const closed = new Promise(resolve => server.close(resolve))
      const enough = setTimeout(() => server.closeAllConnections(), PARTING_MS)
      await Promise.all(answering)
      clearTimeout(enough)
      server.closeAllConnections()
      await closed
    },
  }
}

/** A process of a run has less rights, by whatever way it asks. */
function runOfCaller({ env }: Context): string | undefined {
  const pid = tcpPeer((env as HttpBindings).incoming.socket)
  return pid === undefined ? undefined : runOf(pid)
}

async function listen(server: Server, { host, port }: Address): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject).listen(port, host, resolve)
  await promise.catch(cause => {
    const why = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'somebody else does' : errnoWords(cause)
    throw new SavepointError('io.failed', `Cannot listen on ${host}:${port}: ${why ?? String(cause)}`, {
      hint: 'Port 0 takes any free one',
      cause,
    })
  })
}

/** Beside the socket of a daemon. */
export async function serveDaemon(address: Address, { service, close }: Daemon, version: string) {
  const { home } = service.served
  try {
    const token = tokenFor(home, address, process.env)
    const server = await serveHttp(address, service, token.value, version)
    return { ...server, token }
  } catch (error) {
    await close()
    throw error
  }
}
