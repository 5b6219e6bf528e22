/** The HTTP face on a real server: with curl, and with its own document held against a validator. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Daemon, startDaemon } from '../src/api/daemon.ts'
import { httpApp } from '../src/api/http.ts'
import { type HttpServer, parseAddress, serveHttp, tokenFor } from '../src/api/http-server.ts'
import { openApiDocument } from '../src/api/openapi.ts'
import type { Operation } from '../src/api/operation.ts'
import { operations } from '../src/api/table.ts'
import type { Savepoint } from '../src/index.ts'
import { builtCommand, savepointJson } from './support/built-cli.ts'
import { cliCommand } from './support/cli.ts'
import { endDaemons, startDaemon as startBackgroundDaemon } from './support/daemon.ts'
import { gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const TOKEN = 'a token of this test'
let space: Workspace
let savepoint: Savepoint
let daemon: Daemon
let server: HttpServer
let host: string
beforeAll(async () => {
  space = new Workspace()
  space.write('a', 'one\n')
  space.write('.env', 'KEY=1\n')
  savepoint = await space.open()
  await savepoint.snapshot({ label: 'first' })
  daemon = await startDaemon({ cwd: space.dir, home: space.home, env: space.env })
  server = await serveHttp({ host: '127.0.0.1', port: 0 }, daemon.service, TOKEN, '0')
  host = server.url.slice('http://'.length)
})
afterAll(async () => {
  await server.close()
  await daemon.close()
  space.remove()
})

const authorized = { authorization: `Bearer ${TOKEN}` }
const ask = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(`http://${host}${path}`, { ...init, headers: { ...authorized, ...init.headers } })
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: (await response.json()) as Record<string, unknown>,
  }
}
const post = (path: string, body: unknown) => ask(path, { method: 'POST', body: JSON.stringify(body) })

describe('the document', () => {
  it('is OpenAPI 3.1, says a validator, and has every operation', async () => {
    const { body } = await ask('/openapi.json')
    const result = await new Validator().validate(structuredClone(body) as Record<string, unknown>)
    expect([result.valid, result.errors ?? []]).toEqual([true, []])
    expect(Object.keys(body.paths as object)).toEqual(operations.map(({ name }) => `/v1/${name}`))
  })

  it('refers to nothing that it does not have', () => {
    const document = openApiDocument('0') as { components: { schemas: Record<string, unknown> } }
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference!)
    const known = Object.keys(document.components.schemas).map(name => `#/components/schemas/${name}`)
    expect(references.filter(reference => !known.includes(reference))).toEqual([])
    expect(references.length).toBeGreaterThan(20)
  })
})

it('what reads is asked with GET or POST', async () => {
  expect(await ask('/v1/snapshots?limit=1')).toMatchObject({ status: 200, body: [{ label: 'first' }] })
  expect(await post('/v1/snapshots', { limit: 1 })).toMatchObject({ status: 200, body: [{ label: 'first' }] })
  expect((await ask('/v1/read?snapshot=first&path=a')).body).toMatchObject({ content: 'one\n' })
  expect((await ask('/v1/diff?from=first&paths=a&paths=b')).body).toMatchObject({ changes: [] })
  expect((await ask('/v1/trace?failed=true')).status).toBe(404)
})

it('what changes something is not', async () => {
  space.write('a', 'two\n')
  expect(await ask('/v1/snapshot')).toMatchObject({ status: 405, body: { hint: 'Use POST' } })
  expect(await post('/v1/commit', { label: 'second' })).toMatchObject({ status: 200, body: { label: 'second' } })
  expect(await post('/v1/rollback', { snapshot: 'first' })).toMatchObject({ body: { files: { replaced: 1 } } })
  expect(space.read('a')).toBe('one\n')
  expect((await post('/v1/undo', {})).status).toBe(200)
  expect(space.read('a')).toBe('two\n')
})

it.each([
  ['/v1/rollback', '{"snapshot":"nothing"}', 404, 'snapshot.unknown'],
  ['/v1/rollback', '{"snapshott":"x"}', 400, 'usage'],
  ['/v1/rolback', '{}', 404, 'usage'],
  ['/v1/read', '{"path":".env"}', 403, 'failed'],
  ['/v1/rollback', '{"snapshot":', 400, 'usage'],
  ['/v1/show', `{"snapshot":${'['.repeat(99)}${']'.repeat(99)}}`, 400, 'usage'],
  ['/v1/events', '{"limit":"many"}', 400, 'usage'],
  ['/v1/revert', '{"path":"../outside"}', 400, 'path.outside'],
  ['/v1/kill', '{"pid":1}', 404, 'process.unknown'],
  ['/v1/exec', '{"cmd":"true","cwd":"nowhere"}', 409, 'command.failed-to-start'],
])('POST %s %s is a problem of status %i', async (path, body, status, code) => {
  const answer = await ask(path, { method: 'POST', body })
  expect(answer).toMatchObject({ status, type: 'application/problem+json', body: { status, code } })
})

it.each([
  ['GET', '/v1/snapshot', 405, 'POST'],
  ['PUT', '/v1/head', 405, 'GET, HEAD, POST'],
  ['DELETE', '/v1/snapshot', 405, 'POST'],
  ['OPTIONS', '/v1/head', 405, 'GET, HEAD, POST'],
  ['PUT', '/v1/nothing', 404, null],
  ['GET', '/', 404, null],
])('%s %s is answered with %i, and what is allowed', async (method, path, status, allow) => {
  const response = await fetch(`http://${host}${path}`, { method, headers: authorized })
  expect([response.status, response.headers.get('allow')]).toEqual([status, allow])
  expect(await response.json()).toMatchObject({ status, code: 'usage', hint: expect.any(String) })
})

it.each(['__proto__', 'constructor', 'toString'])('a parameter %s is one that does not exist', async name =>
  expect(await ask(`/v1/show?${name}=1`)).toMatchObject({ status: 400, body: { hint: 'show takes: snapshot' } }),
)

it('a parameter that is no list is not taken twice', async () => {
  expect(await ask('/v1/show?snapshot=first&snapshot=HEAD')).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining('"snapshot" is a list, and takes one value') },
  })
})

describe('who may ask', () => {
  it('whoever has the token, however the word before it is written', async () => {
    for (const word of ['Bearer', 'bearer', 'BEARER']) {
      const headers = { authorization: `${word} ${TOKEN}` }
      expect((await fetch(`http://${host}/v1/head`, { headers })).status).toBe(200)
    }
  })

  it('nobody without the token', async () => {
    for (const authorization of ['', 'Bearer', 'Bearer wrong', `Basic ${TOKEN}`, `Bearer ${TOKEN} `.padEnd(60, 'x')]) {
      const response = await fetch(`http://${host}/v1/head`, { headers: authorization ? { authorization } : {} })
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    }
  })

  /** fetch sets these by itself. */
  const raw = (headers: Record<string, string>, port = Number(host.split(':')[1])) =>
    new Promise<number>((resolve, reject) => {
      request({ port, host: '127.0.0.1', path: '/v1/head', headers: { ...authorized, ...headers } }, response => {
        response.resume()
        resolve(response.statusCode!)
      })
        .on('error', reject)
        .end()
    })

  it('no foreign page, by name or by origin', async () => {
    expect(await raw({ host })).toBe(200)
    expect(await raw({ host: 'rebound.example' })).toBe(403)
    expect(await raw({ host, origin: 'https://elsewhere.example' })).toBe(403)
    expect(await raw({ host, origin: `http://${host}` })).toBe(200)
  })

  it('where it listens everywhere, by any name, and still no foreign page', async () => {
    const open = await serveHttp({ host: '0.0.0.0', port: 0 }, daemon.service, TOKEN, '0')
    const port = Number(open.url.split(':').at(-1))
    expect(await raw({ host: 'this.machine.example' }, port)).toBe(200)
    expect(await raw({ host: 'this.machine.example', origin: 'https://elsewhere.example' }, port)).toBe(403)
    await open.close()
  })

  it('so many at a time; further connections are closed, and the others answered', async () => {
    // One that nobody else is connected to.
    const alone = await serveHttp({ host: '127.0.0.1', port: 0 }, daemon.service, TOKEN, '0')
    const connected = async () => {
      const socket = connect(Number(alone.url.split(':').at(-1)), '127.0.0.1')
      socket.on('error', () => {})
      await once(socket, 'connect')
      return socket
    }
    const many = await Promise.all(Array.from({ length: 256 }, connected))
    const late = await connected()
    await once(late.resume(), 'close')
    const [first] = many
    first!.write(`GET /openapi.json HTTP/1.1\r\nhost: ${alone.url.slice('http://'.length)}\r\n\r\n`)
    expect(String(await once(first!, 'data'))).toMatch(/^HTTP\/1.1 200 OK/)
    for (const socket of many) socket.destroy()
    await alone.close()
  })

  it('a body that is too large is refused', async () => {
    expect((await post('/v1/snapshot', { label: 'x'.repeat(2 ** 21) })).status).toBe(413)
  })
})

describe('server-sent events', () => {
  /** The events of an answer, until it ends or `enough`. */
  async function events(path: string, body: unknown, enough: (seen: string[]) => boolean = () => false) {
    const stop = new AbortController()
    const headers = { ...authorized, accept: 'text/event-stream' }
    const init = { method: 'POST', headers, body: JSON.stringify(body), signal: stop.signal }
    const response = await fetch(`http://${host}${path}`, init)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    const seen: { event: string; data: Record<string, unknown> }[] = []
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end))!
        seen.push({ event: event!, data: JSON.parse(data!) })
        text = text.slice(end + 2)
      }
      if (enough(seen.map(({ event }) => event))) break
    }
    stop.abort()
    return seen
  }

  it('a command: what it writes, and how it ended', async () => {
    const seen = await events('/v1/exec', { cmd: 'echo out; echo err >&2; echo three > a; exit 3' })
    expect(seen).toContainEqual({ event: 'stdout', data: { stdout: 'out\n' } })
    expect(seen).toContainEqual({ event: 'stderr', data: { stderr: 'err\n' } })
    expect(seen.at(-1)).toMatchObject({ event: 'end', data: { ok: true, exit: 3, counts: { modified: 1 } } })
    expect((await post('/v1/undo', {})).status).toBe(200)
    expect(space.read('a')).toBe('two\n')
  })

  it('what happens, as it happens, until the caller goes', async () => {
    const following = events('/v1/subscribe', {}, kinds => kinds.includes('event'))
    const again = setInterval(() => void post('/v1/tag', { name: `t${Math.random()}`.replace('.', '') }), 200)
    const seen = await following.finally(() => clearInterval(again))
    expect(seen.find(({ event }) => event === 'event')?.data).toHaveProperty('event')
  })

  it('an error is the last of them', async () => {
    const seen = await events('/v1/rollback', { snapshot: 'nothing' })
    expect(seen.at(-1)).toMatchObject({ event: 'error', data: { error: { code: 'snapshot.unknown' } } })
  })

  it('nothing is begun for whoever asks for the headers alone', async () => {
    const asked: string[] = []
    const carryOut = async ({ name }: Operation) => void asked.push(name)
    const app = httpApp({ carryOut, token: TOKEN, hosts: new Set(), version: '0' })
    const headers = { ...authorized, host: 'x', accept: 'text/event-stream' }
    const response = await app.request('/v1/subscribe', { method: 'HEAD', headers })
    expect([response.status, response.headers.get('content-type'), asked]).toEqual([200, 'text/event-stream', []])
  })

  it('what never ends is not answered in one piece', async () =>
    expect(await post('/v1/subscribe', {})).toMatchObject({
      status: 406,
      body: { hint: expect.stringContaining('Accept') },
    }))
})

it('a process of a run is known as one: it may not delete what protects it', async () => {
  const script = `fetch('http://${host}/v1/delete', { method: 'POST', headers: { authorization: 'Bearer ${TOKEN}' }, body: '{"snapshots":["first"]}' }).then(r => r.json()).then(b => process.stdout.write(b.code))`
  const { promise, resolve } = Promise.withResolvers<string>()
  const { execFile } = await import('node:child_process')
  const run = [...cliCommand.slice(1), 'run', '-q', '--', process.execPath, '-e', script]
  execFile(cliCommand[0]!, run, { cwd: space.dir, env: space.env }, (_, out) => resolve(out))
  expect(await promise).toBe('run.inside')
  expect((await ask('/v1/show?snapshot=first')).status).toBe(200)
})

it('the page shows every route and runs no script', async () => {
  const text = await (await fetch(`http://${host}/docs`)).text()
  for (const { name } of operations) expect(text).toContain(`/v1/${name}<`)
  expect(text).not.toContain('<script')
})

const hasCurl = spawnSync('curl', ['--version']).status === 0
gated(hasCurl, 'curl', 'curl gets the same', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { execFile } = await import('node:child_process')
  execFile('curl', ['-sS', '-H', `Authorization: Bearer ${TOKEN}`, `http://${host}/v1/head`], (_, out) => resolve(out))
  expect(JSON.parse(await promise)).toMatchObject({ head: true })
})

describe('where it listens', () => {
  it.each([
    ['7070', { host: '127.0.0.1', port: 7070 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['[::1]:80', { host: '::1', port: 80 }],
  ])('%s', (text, wanted) => expect(parseAddress(text)).toEqual(wanted))

  it.each(['', 'host', 'host:', '::1:80', 'host:70000', ':80'])('"%s" is refused', text =>
    expect(() => parseAddress(text)).toThrow(expect.objectContaining({ code: 'usage' })),
  )

  it('a port that is taken is told', async () => {
    const port = Number(host.split(':')[1])
    await expect(serveHttp({ host: '127.0.0.1', port }, daemon.service, TOKEN, '0')).rejects.toMatchObject({
      code: 'io.failed',
      message: `Cannot listen on 127.0.0.1:${port}: somebody else does`,
    })
  })
})

describe('the token', () => {
  const here = { host: '127.0.0.1', port: 0 }

  it('is made once, and only its owner can read it', () => {
    const home = join(space.base, 'new home')
    const first = tokenFor(home, here, {})
    expect([first.isNew, first.value.length]).toEqual([true, 64])
    expect(statSync(join(home, 'http-token')).mode & 0o777).toBe(0o600)
    expect(tokenFor(home, here, {})).toEqual({ ...first, isNew: false })
    writeFileSync(join(home, 'http-token'), 'short')
    expect(() => tokenFor(home, here, {})).toThrow(/too short/)
    // What a link leads to is another's.
    const other = join(space.base, 'not ours')
    writeFileSync(other, 'x'.repeat(64), { mode: 0o644 })
    rmSync(join(home, 'http-token'))
    symlinkSync(other, join(home, 'http-token'))
    expect(() => tokenFor(home, here, {})).toThrow(/no file/)
    expect(statSync(other).mode & 0o777).toBe(0o644)
  })

  it('is the one of the user, where others can reach the server it must be', () => {
    const given = { SAVEPOINT_HTTP_TOKEN: 'x'.repeat(16) }
    for (const address of [here, { host: '0.0.0.0', port: 0 }])
      expect(tokenFor(space.home, address, given)).toEqual({ value: 'x'.repeat(16), isNew: false, file: undefined })
    for (const host of ['0.0.0.0', '::', '192.168.1.2', 'example.org', '127.example.org', '127.0.0.1.example.org'])
      expect(() => tokenFor(space.home, { host, port: 0 }, {})).toThrow(/others could reach it/)
    expect(() => tokenFor(space.home, here, { SAVEPOINT_HTTP_TOKEN: 'short' })).toThrow(/too short/)
    for (const token of ['twenty letters, one ü', ' with a space before', 'with a line after it\n'])
      expect(() => tokenFor(space.home, here, { SAVEPOINT_HTTP_TOKEN: token })).toThrow(/no header can carry it/)
  })
})

describe('savepoint daemon --http', () => {
  const start = (...args: string[]) => {
    const [program, ...before] = builtCommand
    const child = spawn(program!, [...before, 'daemon', ...args], { cwd: other.dir, env: other.env })
    children.push(child)
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    const next = async () => (await lines.next()).value as string
    return { child, next }
  }
  const children: ChildProcess[] = []
  let other: Workspace
  beforeAll(() => {
    other = new Workspace()
    other.write('a')
  })
  afterAll(async () => {
    await endDaemons()
    for (const child of children.filter(each => each.exitCode === null)) {
      child.kill()
      await once(child, 'close')
    }
    other.remove()
  })

  it('says where, shows a new token once, and ends with the daemon', async () => {
    const first = start('--http', '0')
    await first.next()
    const [, url] = /^HTTP at (http:\/\/127\.0\.0\.1:\d+), /.exec(await first.next())!
    const [, token] = /: ([0-9a-f]{64}) \(kept in/.exec(await first.next())!
    const response = await fetch(`${url}/v1/status`, { headers: { authorization: `Bearer ${token}` } })
    expect(await response.json()).toMatchObject({ target: other.dir, snapshots: 0 })
    first.child.kill()
    await once(first.child, 'close')
    await expect(fetch(`${url}/docs`)).rejects.toThrow()
    const second = start('--http', 'localhost:0', '--json')
    const file = join(other.home, 'http-token')
    expect(JSON.parse(await second.next())).toMatchObject({
      http: expect.stringMatching(/^http:\/\/localhost:\d+$/),
      http_token: null,
      http_token_file: file,
    })
    second.child.kill()
    await once(second.child, 'close')
    const third = start('--http', '0')
    await third.next()
    await third.next()
    expect(await third.next()).toBe(`The token is the one in ${file}`)
    third.child.kill()
    await once(third.child, 'close')
    rmSync(file)
    const fourth = start('--http', '0', '--json')
    expect(JSON.parse(await fourth.next()).http_token).toBe(readFileSync(file, 'utf8').trim())
    fourth.child.kill()
    await once(fourth.child, 'close')
  })

  it('answers what it has begun before it ends', async () => {
    const gate = join(other.base, 'gate')
    const env = { ...other.env, SAVEPOINT_HTTP_TOKEN: TOKEN, SAVEPOINT_FAILPOINT: `restore:placing~${gate}` }
    const { http, child, ended } = await startBackgroundDaemon(other, { args: ['--http', '0'], spawn: { env } })
    const headers = { ...authorized, accept: 'text/event-stream' }
    const asking = (path: string, body: object) =>
      fetch(`${http}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    await (await asking('/v1/snapshot', { label: 'first' })).text()
    other.write('a', 'changed')
    const following = (await asking('/v1/subscribe', {})).text()
    const rollback = await asking('/v1/rollback', { snapshot: 'first' })
    let told = ''
    for await (const chunk of rollback.body!.pipeThrough(new TextDecoderStream())) {
      told += chunk
      // It does not go on before the gate is there.
      if (!told.includes('event: unstoppable') || existsSync(gate)) continue
      child.kill()
      await once(child.stderr!, 'data')
      expect(await following).toMatch(/event: end\ndata: \{"ok":true,"result":null\}\n\n$/)
      mkdirSync(gate)
    }
    expect(told).toMatch(/event: end\ndata: \{"ok":true,.*\n\n$/)
    expect(await ended).toMatchObject({ status: 0 })
    expect(other.read('a')).toBe('a\n')
  })

  it.each([
    ['nowhere', 2],
    ['0.0.0.0:0', 2],
  ])('--http %s is refused, and no daemon is left', async (address, status) => {
    const { child } = start('--http', address)
    const [code] = await once(child, 'close')
    expect(code).toBe(status)
    expect(savepointJson(other, ['ctl', 'tags'])).toEqual([])
  })
})
