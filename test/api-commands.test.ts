/** Commands that are run for programs, what is told of them, and who may ask for what: with a daemon, a live run, or neither. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askSocket } from '../src/api/client.ts'
import { findOperation } from '../src/api/table.ts'
import { endRuns, isRunning, startRun } from './support/background-run.ts'
import { builtCommand, savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import {
  askOnce,
  type BackgroundDaemon,
  Client,
  endDaemons,
  type Frame,
  isLast,
  startDaemon,
} from './support/daemon.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1\n')
})
afterEach(async ({ task }) => {
  // What a failed test has left.
  if (task.result?.state === 'fail')
    for (const { pid } of (await space.open()).processes()) process.kill(pid, 'SIGKILL')
  await endDaemons()
  await endRuns()
  space.remove()
})

const textOf = (frames: Frame[], stream: 'stdout' | 'stderr') =>
  Buffer.concat(
    frames
      .filter(frame => stream in frame)
      .map(frame => Buffer.from(frame[stream], frame.encoding === 'base64' ? 'base64' : 'utf8')),
  )

/** Whether the table says that such a frame may come. */
const fits = (op: string, frame: Frame): boolean =>
  'notice' in frame || 'progress' in frame || findOperation(op).frames!.strict().safeParse(frame).success

/** Follows the timeline from now on. */
async function subscriber({ socket }: BackgroundDaemon): Promise<Client> {
  const client = new Client(socket)
  client.send({ op: 'subscribe' })
  expect(await client.next()).toEqual({ event: { kind: 'following', cursor: expect.any(String) } })
  return client
}

const isEvent = (kind: string, action?: string) => (frame: Frame) =>
  frame.event?.kind === kind && (action === undefined || frame.event.action === action)

describe('exec', () => {
  it('tells what a command writes, and ends with its exit code and the state it left', async () => {
    const daemon = await startDaemon(space)
    const frames = await askOnce(daemon.socket, {
      op: 'exec',
      cmd: 'echo out; echo err > /dev/stderr; echo two > a; exit 3',
    })
    expect([textOf(frames, 'stdout').toString(), textOf(frames, 'stderr').toString()]).toEqual(['out\n', 'err\n'])
    for (const frame of frames.slice(0, -1)) expect(fits('exec', frame)).toBe(true)
    const { snapshot, run } = frames.at(-1)
    expect(frames.at(-1)).toEqual({
      ok: true,
      exit: 3,
      signal: null,
      run: expect.stringMatching(/^run_/),
      snapshot: expect.stringMatching(/^snap_/),
      head: snapshot,
      counts: { added: 0, modified: 1, deleted: 0 },
      stopped: null,
    })
    expect(savepointJson(space, ['runs'])).toMatchObject([{ id: run, exit_code: 3, after: snapshot }])
    expect((await askOnce(daemon.socket, { op: 'undo' })).at(-1)).toMatchObject({ ok: true })
    expect(space.read('a')).toBe('a1\n')
  })

  it('takes a program with arguments, where it is to start, and any bytes', async () => {
    const daemon = await startDaemon(space)
    space.sh('mkdir sub')
    const where = await askOnce(daemon.socket, { op: 'exec', cmd: ['pwd'], cwd: 'sub' })
    expect(textOf(where, 'stdout').toString()).toBe(`${space.at('sub')}\n`)
    const bytes = await askOnce(daemon.socket, { op: 'exec', cmd: "printf 'a\\377\\0b'; printf '\\303' >&2" })
    expect(textOf(bytes, 'stdout')).toEqual(Buffer.from('a\xff\0b', 'latin1'))
    expect(bytes.find(frame => 'stdout' in frame)).toEqual({ stdout: expect.any(String), encoding: 'base64' })
    expect(textOf(bytes, 'stderr')).toEqual(Buffer.from([0xc3]))
    const missing = await askOnce(daemon.socket, { op: 'exec', cmd: ['no-such-program'] })
    expect(missing.at(-1)).toMatchObject({ error: { code: 'command.not-found' } })
  })

  it('says why a command cannot be started, and leaves no run that seems to go on', async () => {
    const { socket } = await startDaemon(space)
    const started = async (request: object) => (await askOnce(socket, { op: 'exec', ...request })).at(-1)
    for (const [cwd, why] of [
      ['nowhere', 'there is no such file or directory'],
      ['a', 'it is no directory'],
    ])
      expect(await started({ cmd: 'true', cwd })).toMatchObject({
        error: { code: 'command.failed-to-start', message: `Cannot start a command in ${cwd}: ${why}` },
      })
    expect(savepointJson(space, ['runs'])).toEqual([])
    expect(await started({ cmd: 'x'.repeat(500_000) })).toMatchObject({
      error: { code: 'command.failed-to-start', message: expect.stringContaining('arguments are too long') },
    })
    expect(savepointJson(space, ['runs'])).toMatchObject([{ exit_code: 125, ended_at: expect.any(String) }])
    for (const op of ['exec', 'spawn'])
      expect((await askOnce(socket, { op, cmd: 'echo a\0b' })).at(-1)).toMatchObject({ error: { code: 'usage' } })
  })

  it('does not hand the token of HTTP to what it runs', async () => {
    const token = 'only for those who ask'
    const env = { ...space.env, SAVEPOINT_HTTP_TOKEN: token, OTHER: 'handed down' }
    const { socket } = await startDaemon(space, { spawn: { env }, args: ['--http', '0'] })
    const frames = await askOnce(socket, { op: 'exec', cmd: ['env'] })
    expect(textOf(frames, 'stdout').toString()).toContain('OTHER=handed down\n')
    expect(JSON.stringify(frames)).not.toMatch(/HTTP_TOKEN|only for those/)
  })

  it('answers although a process that it left holds its output', async () => {
    const daemon = await startDaemon(space)
    const frames = await askOnce(daemon.socket, { op: 'exec', cmd: 'sleep 300 & echo $!' })
    expect(frames.at(-1)).toMatchObject({ ok: true, exit: 0 })
    const pid = Number(textOf(frames, 'stdout'))
    expect((await askOnce(daemon.socket, { op: 'ps' })).at(-1).result).toMatchObject([{ pid, argv: ['sleep', '300'] }])
    expect((await askOnce(daemon.socket, { op: 'kill', pid, signal: 'KILL' })).at(-1)).toMatchObject({ ok: true })
  })

  it.each([
    ['cancelled', (client: Client) => client.send({ cancel: true })],
    ['left alone', (client: Client) => client.end()],
    ['orphaned by kill -9 of the daemon', (_: Client, { child }: BackgroundDaemon) => child.kill('SIGKILL')],
    ['stopped by the end of the daemon', (_: Client, { child }: BackgroundDaemon) => child.kill('SIGTERM')],
  ])('%s, its processes end and its run is recorded', async (_, stop) => {
    const daemon = await startDaemon(space)
    const client = new Client(daemon.socket)
    client.send({ op: 'exec', cmd: 'echo two > a; (sleep 300) & echo $$ $!; wait' })
    const pids = (await client.next(frame => 'stdout' in frame)).stdout.trim().split(' ').map(Number)
    stop(client, daemon)
    await eventually(async () => (await Promise.all(pids.map(isRunning))).every(isAlive => !isAlive))
    const timeline = await space.open()
    await eventually(() => timeline.runs()[0]!.endedAt !== undefined)
    expect(timeline.head()).toMatchObject({ type: 'final', counts: { modified: 1 } })
    client.end()
  })
})

describe('spawn, ps and kill', () => {
  it('a command goes on without its caller and without the daemon; only its processes are seen', async () => {
    const daemon = await startDaemon(space)
    const spawned = { op: 'spawn', cmd: 'echo hello; exec sleep 300', output: 'log' }
    const answer = (await askOnce(daemon.socket, spawned)).at(-1)
    expect(answer).toMatchObject({ ok: true, result: { run: expect.stringMatching(/^run_/) } })
    daemon.child.kill('SIGTERM')
    expect(await daemon.ended).toMatchObject({ status: 0 })
    const timeline = await space.open()
    await eventually(() => timeline.processes().some(({ argv }) => argv[0] === 'sleep'))
    expect(space.read('log')).toBe('hello\n')
    const [{ pid, start }] = savepointJson(space, ['ctl', 'ps'])
    expect(timeline.processes()).toMatchObject([{ run: answer.result.run, argv: ['sleep', '300'], pid, start }])
    expect(() => timeline.signalProcess(pid, { start: start + 1 })).toThrow('it is no process of a run of this target')
    expect(() => timeline.signalProcess(process.pid)).toThrow(expect.objectContaining({ code: 'process.unknown' }))
    const wrong = (signal: string) => () => timeline.signalProcess(pid, { signal })
    expect(wrong('TREM')).toThrow(expect.objectContaining({ code: 'usage', hint: 'Did you mean SIGTERM?' }))
    expect(wrong('0')).toThrow(expect.objectContaining({ code: 'usage', hint: expect.stringContaining('SIGKILL') }))
    for (const signal of ['cont', 'SIGCONT', '18'])
      expect(timeline.signalProcess(pid, { signal })).toMatchObject({ pid })
    expect(await isRunning(pid)).toBe(true)
    expect(savepointJson(space, ['ctl', 'kill', `pid=${pid}`, `start=${start}`])).toMatchObject({ pid, start })
    await eventually(() => timeline.runs()[0]!.endedAt !== undefined)
    expect(timeline.runs()[0]).toMatchObject({ signal: 'SIGTERM' })
  })
})

describe('the output of spawn', () => {
  it('is a file, or nothing is started: nobody waits for a pipe, and no room for commands is lost', async () => {
    const daemon = await startDaemon(space)
    space.sh('mkfifo pipe; mkdir d')
    const store = join(space.home, 'store', 'format.json')
    symlinkSync(store, space.at('link'))
    const before = readFileSync(store, 'utf8')
    const wrong: [output: string, why: string][] = [
      ['pipe', 'it is no file'],
      ['/dev/null', 'it is no file'],
      ['d', 'it is a directory'],
      ['no/where', 'there is no such file or directory'],
      ['link', 'it lies in the store'],
    ]
    const client = new Client(daemon.socket)
    for (const [output, why] of wrong) {
      const { error } = await client.ask({ op: 'spawn', cmd: 'echo x', output })
      expect(error).toMatchObject({
        code: 'command.failed-to-start',
        message: `Cannot write what the command says to ${output}: ${why}`,
        hint: expect.stringContaining('"output" is a file'),
      })
    }
    // More of them than there may be commands at a time.
    for (let i = 0; i < 65; i++) await client.ask({ op: 'spawn', cmd: 'echo x', output: 'd' })
    expect(readFileSync(store, 'utf8')).toBe(before)
    expect(await client.ask({ op: 'runs' })).toMatchObject({ result: [] })
    expect(await client.ask({ op: 'spawn', cmd: 'echo hello', output: 'd/log' })).toMatchObject({ ok: true })
    await eventually(() => existsSync(space.at('d/log')) && space.read('d/log') === 'hello\n')
    const timeline = await space.open()
    await eventually(() => timeline.runs()[0]!.endedAt !== undefined)
    client.end()
  })
})

describe('subscribe and trace', () => {
  it('tell what happens as it happens, whoever does it', async () => {
    const daemon = await startDaemon(space)
    const client = await subscriber(daemon)
    savepoint(space, ['run', '--', 'sh', '-c', 'echo two > a'])
    const told: Frame[] = []
    client.onFrame = frame => void told.push(frame)
    // In this order, always: `next` forgets what comes before.
    expect(await client.next(isEvent('run', 'started'))).toMatchObject({ event: { exit_code: null } })
    expect(await client.next(isEvent('file'))).toMatchObject({ event: { path: 'a', action: 'modified' } })
    expect(await client.next(isEvent('operation'))).toMatchObject({ event: { operation: { kind: 'run' } } })
    expect(await client.next(isEvent('run', 'ended'))).toMatchObject({ event: { exit_code: 0 } })
    await askOnce(daemon.socket, { op: 'snapshot', label: 'mine' })
    const labelled = (frame: Frame) => frame.event?.snapshot?.label === 'mine'
    const { event } = await client.next(labelled)
    expect(await client.next(isEvent('head'))).toEqual({ event: { kind: 'head', head: event.id } })
    client.send({ cancel: true })
    expect(await client.next(isLast)).toEqual({ ok: true, result: null })
    expect(told.filter(frame => !isLast(frame) && !fits('subscribe', frame))).toEqual([])
    client.end()
  })

  it('trace follows a run until it ends', async () => {
    const daemon = await startDaemon(space)
    const run = await startRun(space, 'read x; /bin/echo followed; exit 4')
    const client = new Client(daemon.socket)
    client.send({ op: 'trace', follow: true })
    run.say('go')
    const echo = await client.next(frame => frame.execution?.argv.includes('followed'))
    expect(fits('trace', echo)).toBe(true)
    expect(echo).toMatchObject({ execution: { run: run.id, exit_code: 0 } })
    expect(await client.next(isLast)).toMatchObject({ ok: true, result: { run: { id: run.id, exit_code: 4 } } })
    client.end()
  })

  it('a live run that is asked itself tells its own end, too', async () => {
    const run = await startRun(space, 'read x; /bin/echo two > a; exit 4')
    const socket = readdirSync(join(space.home, 'sockets')).find(name => name.startsWith(run.id))!
    const [tracing, following] = [1, 2].map(() => new Client(join(space.home, 'sockets', socket)))
    const told: Frame[] = []
    tracing!.onFrame = frame => void told.push(frame)
    tracing!.send({ op: 'trace', follow: true })
    following!.send({ op: 'subscribe' })
    await following!.next()
    run.say('go')
    expect(await tracing!.next(isLast)).toMatchObject({ ok: true, result: { run: { exit_code: 4 } } })
    expect(told.flatMap(({ execution }) => execution?.exit_code ?? []).sort()).toEqual([0, 4])
    expect(await following!.next(isEvent('snapshot'))).toMatchObject({ event: { type: 'final' } })
    expect(await following!.next(isEvent('run', 'ended'))).toMatchObject({ event: { exit_code: 4 } })
    expect(await following!.next(isLast)).toEqual({ ok: true, result: null })
    await run.ended
  })
})

describe('a process of a run', () => {
  it('may not undo its protection through the daemon, and is not stopped by what it asks for', async () => {
    const daemon = await startDaemon(space)
    const theirs = (await askOnce(daemon.socket, { op: 'snapshot', label: 'theirs' })).at(-1)
    const script = `
      env -u SAVEPOINT_RUN ${savepointInShell} ctl gc 2>&1
      ${savepointInShell} ctl delete snapshots=${theirs.result.id} 2>&1
      ${savepointInShell} ctl snapshot label=own; echo two > a
      ${savepointInShell} ctl rollback snapshot=own >/dev/null && cat a; echo alive`
    const run = await startRun(space, script)
    const { stdout } = await run.ended
    expect(stdout.match(/this is a process of run_\w+/g)).toHaveLength(2)
    expect(stdout).toContain(`"run": "${run.id}"`)
    expect(stdout).toMatch(/a1\nalive\n$/)
  })
})

describe('a live run', () => {
  const socketOf = (id: string): string => {
    const timeline = join(space.home, 'timelines', readdirSync(join(space.home, 'timelines'))[0]!)
    return JSON.parse(readFileSync(join(timeline, 'runs', id, 'control.json'), 'utf8')).socket
  }

  it('serves the same operations on its socket', async () => {
    const run = await startRun(space, 'echo two > a; READY; read x; exit 5')
    const client = new Client(socketOf(run.id))
    expect(await client.ask({ op: 'head' })).toMatchObject({ ok: true, result: { type: 'pre-run' } })
    expect(await client.ask({ op: 'changes' })).toMatchObject({ result: { changes: [{ path: 'a' }] } })
    expect(await client.ask({ op: 'snapshot', label: 'x' })).toMatchObject({ result: { label: 'x', head: true } })
    expect(await client.ask({ op: 'haed' })).toMatchObject({ error: { code: 'usage' } })
    expect(savepointJson(space, ['ctl', 'ps']).map(({ run }: { run: string }) => run)).toContain(run.id)
    run.say('')
    expect(await run.ended).toMatchObject({ status: 5 })
    await client.closed()
  })

  it('is stopped by a rollback that is asked for there, which is answered all the same', async () => {
    const run = await startRun(space, 'echo two > a; READY; sleep 300')
    const client = new Client(socketOf(run.id))
    expect(await client.ask({ op: 'undo' })).toMatchObject({
      ok: true,
      result: { operation: { kind: 'run' }, restore: { files: { replaced: 1 } } },
    })
    expect(await run.ended).toMatchObject({ signal: 'SIGTERM' })
    expect(space.read('a')).toBe('a1\n')
  })
})

describe('ctl', () => {
  it('in a subdirectory it says what it is about', () => {
    space.write('sub/b')
    savepoint(space, ['snapshot', '-m', 'one'])
    space.sh('echo two > a; echo two > sub/b')
    const args = ['ctl', 'rollback', 'snapshot=one', 'dry_run=true']
    const { stdout, stderr } = savepoint(space, args, { cwd: space.at('sub') })
    expect(stderr).toMatch(
      /^savepoint: using the timeline of .*work \(above\): paths start there, and all of it is meant\n$/,
    )
    expect(JSON.parse(stdout).files.replaced).toBe(2)
    expect(savepoint(space, [...args, '-t', space.dir], { cwd: space.at('sub') }).stderr).toBe('')
  })

  it('who only looks does not wait for a server that does not even take notice', async () => {
    const server = createServer().listen(join(space.base, 'deaf'))
    const stop = new AbortController()
    const ask = { onFrame: () => {}, signal: stop.signal, isHarmless: true }
    const asked = askSocket(join(space.base, 'deaf'), { op: 'head' }, ask)
    const [connection] = await once(server, 'connection')
    stop.abort()
    await expect(asked).rejects.toMatchObject({ code: 'cancelled' })
    connection.destroy()
    server.close()
  })

  it('lists the operations, reads its words, and works without anybody to ask', () => {
    expect(savepoint(space, ['ctl']).stdout).toMatch(/^rollback +brings files back/m)
    expect(savepointJson(space, ['ctl'])).toContainEqual(expect.objectContaining({ name: 'exec' }))
    expect(savepointJson(space, ['ctl', 'snapshot', 'label=one two'])).toMatchObject({ label: 'one two' })
    const { status, stdout, stderr } = savepoint(space, [
      'ctl',
      'exec',
      '--',
      'sh',
      '-c',
      'echo out; echo err >&2; exit 9',
    ])
    expect({ status, stdout, stderr: stderr.trim() }).toEqual({ status: 9, stdout: 'out\n', stderr: 'err' })
  })

  it('drops nothing of what it was told', () => {
    const twice = savepoint(space, ['ctl', 'exec', 'cmd=touch b', '--', 'touch', 'c'])
    expect(twice).toMatchObject({ status: 2, stderr: expect.stringContaining('two commands are given') })
    expect(space.read('c')).toBeUndefined()
    savepoint(space, ['ctl', 'snapshot', 'label=one'])
    savepoint(space, ['ctl', 'tag', 'name=kept'])
    const tagged = savepoint(space, ['ctl', 'tag', 'name=kept', 'snapshot=one', 'delete=true'])
    expect(tagged).toMatchObject({ status: 2, stderr: expect.stringContaining('by its name alone') })
    expect(savepointJson(space, ['ctl', 'tags'])).toHaveLength(1)
    savepoint(space, ['ctl', 'tag', 'name=kept', 'delete=true'])
    expect(savepointJson(space, ['ctl', 'tags'])).toHaveLength(0)
  })

  it('says what an operation takes', () => {
    expect(savepoint(space, ['ctl', 'help', 'rollback']).stdout).toMatch(
      /^rollback: brings .*\n {2}snapshot +a text \(required\) .*\n {2}paths +a list of texts\n/,
    )
    expect(savepointJson(space, ['ctl', 'help', 'kill'])).toMatchObject({ parameters: { required: ['pid'] } })
  })

  it('stops what it runs when nobody reads any more, and by Ctrl-C', async () => {
    const script = `{ ${savepointInShell} ctl exec -- yes; echo $? >&2; } | head -n 1`
    const options = { cwd: space.dir, env: space.env, encoding: 'utf8' } as const
    expect(spawnSync('sh', ['-c', script], options)).toMatchObject({ stdout: 'y\n', stderr: '143\n' })
    const [program, ...args] = builtCommand
    const words = [...args, 'ctl', 'exec', '-q', '--', 'sh', '-c', 'echo $$; exec sleep 300']
    const child = spawn(program!, words, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
    const pid = Number(await once(child.stdout, 'data'))
    child.kill('SIGINT')
    expect(await once(child, 'close')).toEqual([130, null])
    expect(await isRunning(pid)).toBe(false)
  })

  it.each([
    [['haed'], 2, 'Did you mean "head"?'],
    [['snapshot', 'x'], 2, 'neither key=value nor'],
    [['head'], 10, 'not protected yet'],
    [['rollback'], 2, '"snapshot" is missing'],
    [['rollback', 'snapshot=x', 'dry_run=maybe'], 2, 'It takes true or false: only say'],
    [['snapshot', 'label=a', 'label=b'], 2, 'takes one value'],
    [['exec'], 2, 'a command line for sh, or a program'],
  ])('%j is refused', (words, exit, text) => {
    const { status, stderr } = savepoint(space, ['ctl', ...words])
    expect({ status, stderr }).toEqual({ status: exit, stderr: expect.stringContaining(text) })
  })
})

async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 50))
}
