/** `savepoint daemon`: where it listens, who may connect, how it ends, and what a client can do to it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { asOrdinaryUser, giveToUser, savepoint, savepointJson } from './support/built-cli.ts'
import { askOnce, Client, endDaemons, startDaemon } from './support/daemon.ts'
import { isRoot } from './support/machine.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

const SOMEBODY = 54_321

let space: Workspace
beforeEach(() => {
  // Nothing that waits for a lock gives up before the test says so, however busy the machine is.
  space = new Workspace('work', { SAVEPOINT_LOCK_WAIT_MS: '120000' })
  space.write('a', 'a1\n')
})
afterEach(async () => {
  await endDaemons()
  space.remove()
})

const timelineDir = (): string => join(space.home, 'timelines', readdirSync(join(space.home, 'timelines'))[0]!)

describe('its socket', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('lies where only its owner comes, and is gone after %s', async signal => {
    const daemon = await startDaemon(space)
    expect(daemon.socket.startsWith(join(space.home, 'sockets'))).toBe(true)
    expect(statSync(dirname(daemon.socket)).mode & 0o777).toBe(0o700)
    expect(statSync(daemon.socket).mode & 0o777).toBe(0o600)
    const announced = join(timelineDir(), 'daemon.json')
    expect(JSON.parse(readFileSync(announced, 'utf8'))).toEqual({ socket: daemon.socket })
    daemon.child.kill(signal)
    const again = signal === 'SIGINT' ? 'Ctrl-C again' : 'a second SIGTERM'
    const notice = `stopping at the next safe point; ${again} stops at once`
    expect(await daemon.ended).toEqual({ status: 0, signal: null, stderr: `${JSON.stringify({ notice })}\n` })
    expect([daemon.socket, announced].filter(existsSync)).toEqual([])
  })

  it('works where its path is longer than an address may be', async () => {
    const home = join(space.base, 'x'.repeat(90), 'y'.repeat(90))
    mkdirSync(home, { recursive: true })
    const env = { ...space.env, SAVEPOINT_HOME: home }
    await startDaemon(space, { spawn: { env } })
    expect(savepointJson(space, ['ctl', 'snapshot', 'label=x'], { env })).toMatchObject({ label: 'x' })
  })

  it('is served by one daemon; what one that was killed left is replaced', async () => {
    const first = await startDaemon(space)
    const second = savepoint(space, ['daemon', '--json'])
    expect(second.status).toBe(11)
    expect(JSON.parse(second.stderr).error).toMatchObject({
      code: 'busy',
      message: expect.stringContaining(`process ${first.child.pid} does that already`),
      hint: expect.stringContaining('savepoint ctl'),
    })
    first.child.kill('SIGKILL')
    await first.ended
    expect(existsSync(first.socket)).toBe(true)
    // Nobody answers there: the command does it itself.
    expect(savepointJson(space, ['ctl', 'snapshot'])).toMatchObject({ type: 'manual' })
    expect(savepointJson(space, ['ctl', 'snapshot', 'backend=archive'])).toMatchObject({ backend: 'archive' })
    const third = await startDaemon(space)
    expect(third.socket).toBe(first.socket)
    expect((await askOnce(third.socket, { op: 'head' })).at(-1)).toMatchObject({ ok: true, result: { head: true } })
  })

  it.skipIf(!isRoot)('another user cannot reach it, and is turned away where the directories let them in', async () => {
    const daemon = await startDaemon(space)
    const program = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(b'{"op":"head"}\\n')
    print(repr(s.recv(100)))
except OSError as error:
    print(type(error).__name__)`
    const asSomebody = () =>
      spawnSync('python3', ['-c', program, daemon.socket], { uid: SOMEBODY, gid: SOMEBODY, encoding: 'utf8', cwd: '/' })
    expect(asSomebody().stdout).toBe('PermissionError\n')
    for (const directory of [space.base, space.home, dirname(daemon.socket)]) chmodSync(directory, 0o755)
    chmodSync(daemon.socket, 0o666)
    expect(asSomebody().stdout).toMatch(/^(b''|ConnectionResetError|BrokenPipeError)\n$/)
  })

  it('serves an ordinary user', async () => {
    giveToUser(space)
    const daemon = await startDaemon(space, { spawn: asOrdinaryUser.spawn, before: asOrdinaryUser.before })
    const frames = await askOnce(daemon.socket, { op: 'exec', cmd: 'echo two > a; id -u' })
    expect(frames).toContainEqual({ stdout: `${asOrdinaryUser.owner}\n` })
    expect(frames.at(-1)).toMatchObject({ ok: true, exit: 0, counts: { modified: 1 } })
  })
})

it('in a directory that others can enter, it does not begin, and says what to do', () => {
  mkdirSync(join(space.home, 'sockets'), { recursive: true })
  chmodSync(join(space.home, 'sockets'), 0o755)
  const { status, stderr } = savepoint(space, ['daemon'])
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/can be entered by others\n.*chmod 700/),
  })
})

describe('what is not understood', () => {
  it('is refused, and the next request is answered', async () => {
    // Deeper than any stack.
    const nested = '['.repeat(200_000) + ']'.repeat(200_000)
    const daemon = await startDaemon(space)
    const client = new Client(daemon.socket)
    for (const [line, more] of [
      ['{"op":"haed"}', { hint: 'Did you mean "head"?' }],
      ['{"op":"snapshot","lable":"x"}', { hint: 'Did you mean "label"?' }],
      ['{"op":"constructor"}', {}],
      ['{"op":7}', {}],
      ['{}', {}],
      ['not json', {}],
      ['[1]', {}],
      ['\u0000\u0001\ufffd', {}],
      [`{"op":"head","id":${nested}}`, { hint: expect.stringContaining('64 levels') }],
      [`{"op":"show","snapshot":${nested}}`, {}],
      [`{"cancel":${nested}}`, {}],
    ] as const) {
      client.socket.write(`${line}\n`)
      expect({ line, frame: await client.next() }).toMatchObject({ line, frame: { error: { code: 'usage', ...more } } })
      expect(await client.ask({ op: 'log' })).toEqual({ ok: true, result: [] })
    }
    client.end()
  })

  it('a line beyond the limit ends the connection; half a line, and one in pieces, do no harm', async () => {
    const daemon = await startDaemon(space)
    const long = new Client(daemon.socket)
    long.socket.write(`{"op":"snapshot","label":"${'x'.repeat(1_100_000)}"}\n`)
    expect(await long.next()).toMatchObject({ error: { code: 'usage' } })
    await long.closed()
    const half = new Client(daemon.socket)
    half.socket.write('{"op":"snapsh')
    half.socket.end()
    await half.closed()
    const pieces = new Client(daemon.socket)
    for (const part of ['{"op":', '"log"', '}', '\n']) {
      pieces.socket.write(part)
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(await pieces.next()).toEqual({ ok: true, result: [] })
    pieces.end()
  })
})

describe('requests', () => {
  it('with an id are answered side by side, those without in their order', async () => {
    const daemon = await startDaemon(space)
    await askOnce(daemon.socket, { op: 'snapshot', label: 'first' })
    const release = await holdTimeline()
    const client = new Client(daemon.socket)
    client.send({ op: 'snapshot', id: 'slow' }, { op: 'head', id: 7 })
    expect(await client.next(isFinal)).toMatchObject({ id: 7, ok: true })
    release()
    expect(await client.next(isFinal)).toMatchObject({ id: 'slow', ok: true })
    client.send({ op: 'snapshot', label: 'second' }, { op: 'head' }, { op: 'tags' })
    const answers = [await client.next(isFinal), await client.next(isFinal), await client.next(isFinal)]
    expect(answers).toMatchObject([{ result: { label: 'second' } }, { result: { label: 'second' } }, { result: [] }])
    client.end()
  })

  it('that only look are answered while one that changes something is at work', async () => {
    const daemon = await startDaemon(space)
    await askOnce(daemon.socket, { op: 'snapshot', label: 'first' })
    const release = await holdTimeline()
    const client = new Client(daemon.socket)
    client.send({ op: 'rollback', snapshot: 'first', id: 'rollback' })
    for (let i = 0; i < 20; i++) expect(await client.ask({ op: 'head', id: i })).toMatchObject({ id: i, ok: true })
    const others = await Promise.all(Array.from({ length: 100 }, () => askOnce(daemon.socket, { op: 'log' })))
    expect(others.filter(frames => frames.at(-1).result?.length === 1)).toHaveLength(100)
    expect(client.frames.filter(isFinal)).toEqual([])
    release()
    expect(await client.next(isFinal)).toMatchObject({ id: 'rollback', ok: true })
    client.end()
  })

  it('that are cancelled say so', async () => {
    const daemon = await startDaemon(space)
    await askOnce(daemon.socket, { op: 'snapshot' })
    const release = await holdTimeline()
    const client = new Client(daemon.socket)
    client.send({ op: 'snapshot', id: 1 }, { op: 'snapshot', id: 2 }, { cancel: 1 })
    expect(await client.next(isFinal)).toMatchObject({ id: 1, error: { code: 'cancelled' } })
    release()
    expect(await client.next(isFinal)).toMatchObject({ id: 2, ok: true })
    client.end()
  })

  it('whose process is killed are answered, and the next one is carried out', async () => {
    const daemon = await startDaemon(space)
    await askOnce(daemon.socket, { op: 'snapshot' })
    const release = await holdTimeline()
    const client = new Client(daemon.socket)
    client.send({ op: 'snapshot', id: 1 }, { op: 'head', id: 2 })
    await client.next(({ id }) => id === 2)
    for (const pid of workersOf(daemon.child)) process.kill(pid, 'SIGKILL')
    expect(await client.next(isFinal)).toMatchObject({ id: 1, error: { code: 'failed' } })
    release()
    expect(await client.ask({ op: 'snapshot', label: 'after' })).toMatchObject({ result: { label: 'after' } })
    client.end()
  })
})

it('so many clients that there is no room for another: that one is told so, and the others go on', async () => {
  const daemon = await startDaemon(space)
  const clients = Array.from({ length: 256 }, () => new Client(daemon.socket))
  const answered = () => Promise.all(clients.map(client => client.ask({ op: 'tags' })))
  expect((await answered()).filter(({ ok }) => ok)).toHaveLength(256)
  const late = new Client(daemon.socket)
  expect(await late.next()).toMatchObject({ error: { code: 'busy' } })
  await late.closed()
  expect((await answered()).filter(({ ok }) => ok)).toHaveLength(256)
  for (const client of clients) client.end()
  daemon.child.kill('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0, stderr: expect.not.stringContaining('Warning') })
})

describe('a client that never reads', () => {
  it('and ninety-nine others are answered rightly while a rollback of thousands of files runs, which is exact', async () => {
    const gate = join(space.base, 'gate')
    const env = { ...space.env, SAVEPOINT_FAILPOINT: `restore:placing~${gate}` }
    space.sh('for d in $(seq 40); do mkdir d$d; for f in $(seq 75); do echo "$d $f" > d$d/f$f; done; done')
    const daemon = await startDaemon(space, { spawn: { env } })
    await askOnce(daemon.socket, { op: 'snapshot', label: 'first' })
    const before = imageOf(space.dir)
    space.sh('rm -r d1 d2; for f in d*/*; do echo changed > "$f"; done; mkdir new; echo new > new/f')
    const [asker, deaf] = [new Client(daemon.socket), new Client(daemon.socket)]
    asker.send({ op: 'rollback', snapshot: 'first' })
    // From here on it cannot be taken back, and it does not go on before the gate is there.
    await asker.next(frame => frame.unstoppable)
    deaf.socket.pause()
    const asked = Array.from({ length: 5000 }, (_, id) => ({ op: 'log', id }))
    deaf.send(...asked)
    const [waiting, clients] = [6, 92].map(length => Array.from({ length }, () => new Client(daemon.socket)))
    // Nobody waits behind those who have to wait.
    const snapshots = waiting!.map(client => client.ask({ op: 'snapshot' }))
    let meanwhile = {}
    const answering = Promise.all(
      clients!.map(async client => [
        (await client.ask({ op: 'head' })).result.type,
        (await client.ask({ op: 'log' })).result.map(({ label }: { label: string }) => label),
        (await client.ask({ op: 'read', snapshot: 'first', path: 'd1/f7' })).result.content,
        (await client.ask({ op: 'tags' })).result,
      ]),
    )
    const answers = await answering.finally(() => {
      meanwhile = { isOver: asker.frames.some(isFinal), isLarge: memoryOf(daemon.child) > 200 * 1024 }
      mkdirSync(gate)
    })
    const right = ['safety', [null, 'first'], '1 7\n', []]
    expect(answers).toEqual(clients!.map(() => right))
    expect(meanwhile).toEqual({ isOver: false, isLarge: false })
    expect(await asker.next(isFinal)).toMatchObject({ ok: true, result: { files: { created: 150, replaced: 2850 } } })
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect(deaf.isClosed).toBe(false)
    deaf.socket.resume()
    let told = 0
    while (told < asked.length) told += (await deaf.next()).ok ? 1 : Number.NaN
    expect(told).toBe(asked.length)
    expect((await Promise.all(snapshots)).filter(({ ok }) => ok)).toHaveLength(6)
    for (const client of [asker, deaf, ...waiting!, ...clients!]) client.end()
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).stderr).not.toMatch(/warning/i)
  })

  it('neither keeps others waiting nor fills the memory, and gets everything when it reads', async () => {
    const daemon = await startDaemon(space)
    const [deaf, patient, rude] = [1, 2, 3].map(() => new Client(daemon.socket)) as [Client, Client, Client]
    for (const { socket } of [deaf, patient, rude]) socket.pause()
    const size = 3_000_000
    // Without an end: what it writes cannot be kept for somebody who does not read.
    deaf.send({ op: 'exec', cmd: ['yes'] })
    patient.send({ op: 'exec', cmd: `head -c ${size} /dev/zero | tr '\\0' x; echo; echo done >> a` })
    rude.socket.write('garbage\n'.repeat(200_000))
    const isWriting = async () => {
      const running = (await askOnce(daemon.socket, { op: 'ps' })).at(-1).result as { argv: string[] }[]
      return running.some(({ argv }) => argv[0] === 'yes')
    }
    while (!(await isWriting()));
    const answers = await Promise.all(Array.from({ length: 97 }, () => askOnce(daemon.socket, { op: 'status' })))
    expect(answers.filter(frames => frames.at(-1).ok)).toHaveLength(97)
    expect(await isWriting()).toBe(true)
    expect(memoryOf(daemon.child)).toBeLessThan(200 * 1024)
    patient.socket.resume()
    let length = 0
    for (let frame = await patient.next(); !isFinal(frame); frame = await patient.next())
      length += frame.stdout?.length ?? 0
    expect(length).toBe(size + 1)
    expect(space.read('a')).toBe('a1\ndone\n')
    expect([deaf.isClosed, rude.isClosed]).toEqual([false, false])
    for (const client of [deaf, patient, rude]) client.end()
  })
})

const isFinal = (frame: object): boolean => 'ok' in frame || 'error' in frame

/** Keeps everybody from changing the timeline, until it is called. */
async function holdTimeline(): Promise<() => void> {
  const holder: ChildProcess = spawn('flock', [join(timelineDir(), 'lock'), 'sh', '-c', 'echo held; read x'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(holder.stdout!, 'data')
  return () => void holder.stdin!.end('\n')
}

/** In KiB. */
function memoryOf({ pid }: ChildProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
}

function workersOf({ pid }: ChildProcess): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}
