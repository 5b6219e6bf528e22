/** The control socket of a live run: who may ask, what is understood, and what happens when nobody answers. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { type BackgroundRun, startRun, useRuns } from './support/background-run.ts'
import { savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import { isRoot } from './support/machine.ts'
import type { Workspace } from './support/workspace.ts'

const SOMEBODY = 54_321

let space: Workspace
useRuns(made => {
  space = made
})

function controlFile(run: BackgroundRun): string {
  const [timeline] = readdirSync(join(space.home, 'timelines'))
  return join(space.home, 'timelines', timeline!, 'runs', run.id, 'control.json')
}
const socketOf = (run: BackgroundRun): string => JSON.parse(readFileSync(controlFile(run), 'utf8')).socket

/** Sends `text` and collects the lines that come back until the other end closes. */
async function ask(run: BackgroundRun, text: string, onLine: (socket: Socket) => void = () => {}) {
  const socket = connect(socketOf(run))
  // biome-ignore lint/suspicious/noExplicitAny: whatever it answers; the tests say what they expect
  const lines: any[] = []
  const reader = createInterface(socket).on('line', line => {
    lines.push(JSON.parse(line))
    onLine(socket)
  })
  socket.on('error', () => {})
  socket.write(`{"hello":"control"}\n${text}`)
  await once(reader, 'close')
  return lines
}

it('lies where only its owner comes, greets, and is gone with the run', async () => {
  const run = await startRun(space, 'read x')
  const socket = socketOf(run)
  expect(socket.startsWith(join(space.home, 'sockets'))).toBe(true)
  expect(statSync(dirname(socket)).mode & 0o777).toBe(0o700)
  expect(statSync(socket).mode & 0o777).toBe(0o600)
  const [hello, answer] = await ask(run, '{"op":"status"}\n')
  expect(hello).toEqual({ savepoint: 'control', version: 2, run: run.id })
  expect(answer).toMatchObject({
    ok: true,
    result: { run: run.id, pid: run.child.pid, command: ['sh', '-c', expect.any(String)] },
  })
  run.say('')
  await run.ended
  expect([existsSync(socket), existsSync(controlFile(run))]).toEqual([false, false])
})

it('in $XDG_RUNTIME_DIR if that is ours alone; else in the home', async () => {
  const runtime = join(space.base, 'runtime')
  mkdirSync(runtime, { mode: 0o700 })
  const env = { ...space.env, XDG_RUNTIME_DIR: runtime }
  const inside = await startRun(space, 'read x', { spawn: { env } })
  expect(socketOf(inside)).toBe(join(runtime, 'savepoint', `${inside.id}.sock`))
  chmodSync(runtime, 0o755)
  const other = await startRun(space, 'read x', { spawn: { env } })
  expect(socketOf(other)).toBe(join(space.home, 'sockets', `${other.id}.sock`))
})

it('where the path is longer than an address may be, it works all the same', async () => {
  const home = join(space.base, 'x'.repeat(90), 'y'.repeat(90))
  mkdirSync(home, { recursive: true })
  const env = { ...space.env, SAVEPOINT_HOME: home }
  const run = await startRun(space, 'read x', { spawn: { env } })
  expect(savepoint(space, ['snapshot'], { env }).status).toBe(0)
  expect(space.sh(`cat '${home}'/timelines/*/lock`)).toMatch(new RegExp(`^${run.child.pid} `))
})

describe('what is not understood is refused, and says what is', () => {
  it.each([
    ['{"op":"snapsot"}\n', 'usage', 'Did you mean "snapshot"?'],
    ['{"op":"snapshot","lable":"x"}\n', 'usage', 'Did you mean "label"?'],
    ['{"op":"rollback"}\n', 'usage', expect.stringContaining('Known:')],
    ['{"op":"constructor"}\n', 'usage', expect.any(String)],
    ['not json\n', 'usage', undefined],
    ['[1]\n', 'usage', undefined],
    [`{"op":"snapshot","label":"${'x'.repeat(1_100_000)}"}\n`, 'usage', undefined],
    ['{"op":"rollback","ref":"nowhere"}\n', 'snapshot.unknown', expect.any(String)],
  ])('%.40s', async (line, code, hint) => {
    const run = await startRun(space, 'read x; echo alive')
    const answers = await ask(run, line)
    expect(answers.at(-1).error).toMatchObject({ code, ...(hint === undefined ? {} : { hint }) })
    expect(savepointJson(space, ['snapshots'])).toHaveLength(1)
    run.say('')
    expect((await run.ended).stdout).toContain('alive')
  })
})

it('a hundred clients at once, one of which never reads and one never asks', async () => {
  const run = await startRun(space, 'read x; echo alive')
  const idle = connect(socketOf(run))
  const deaf = connect(socketOf(run))
  deaf.pause()
  deaf.write('{"hello":"control"}\n{"op":"trace"}\n')
  const answers = await Promise.all(Array.from({ length: 98 }, () => ask(run, '{"op":"status"}\n')))
  expect(answers.filter(lines => lines[1]?.ok)).toHaveLength(98)
  for (const socket of [idle, deaf]) socket.destroy()
  run.say('')
  expect((await run.ended).stdout).toContain('alive')
})

it('trace tells what is executed as it is, and ends with the run', async () => {
  const run = await startRun(space, 'read x; /bin/echo secret-free; read y')
  let told = false
  const lines = await ask(run, '{"op":"trace"}\n', () => {
    if (!told) run.say('go')
    else run.say('end')
    told = true
  })
  await run.ended
  const executed = lines.flatMap(({ event }) => (event?.type === 'exec' ? [event.argv] : []))
  expect(executed).toContainEqual(['/bin/echo', 'secret-free'])
  expect(lines.at(-1)).toEqual({ ok: true })
})

it('shutdown ends the run, and says so to whoever is at its terminal', async () => {
  const run = await startRun(space, 'sleep 300')
  expect((await ask(run, '{"op":"shutdown","why":"a test"}\n')).at(-1)).toEqual({ ok: true })
  expect(await run.ended).toMatchObject({
    signal: 'SIGTERM',
    stderr: expect.stringContaining('stopped for `savepoint a test`'),
  })
})

describe('a process of the run', () => {
  it('takes snapshots of its run, deletes only those, and stops nothing', async () => {
    const script = `${savepointInShell} snapshot -m own
      ${savepointInShell} snapshot -m last >/dev/null
      ${savepointInShell} delete own && echo DELETED
      ${savepointInShell} delete $1 2>&1; ${savepointInShell} gc 2>&1; ${savepointInShell} prune --keep 1 2>&1
      env -u SAVEPOINT_RUN ${savepointInShell} gc 2>&1; echo alive`
    const { id } = savepointJson(space, ['snapshot', '-m', 'theirs'])
    const run = await startRun(space, script.replace('$1', id))
    const { stdout } = await run.ended
    expect(stdout).toContain('DELETED')
    expect(stdout.match(/this is a process of run_\w+/g)).toHaveLength(4)
    expect(stdout).toContain('alive')
    const own = savepointJson(space, ['snapshots']).find((each: { label: string }) => each.label === 'last')
    expect(own.run).toBe(run.id)
  })

  it('may not end it', async () => {
    const program = `const s=require('net').connect(process.argv[1]);s.on('data',d=>process.stdout.write(d));s.write('{"hello":"control"}\\n{"op":"shutdown"}\\n')`
    const run = await startRun(
      space,
      `read x; '${process.execPath}' -e "${program.replaceAll('"', '\\"')}" "$x"; echo alive`,
    )
    run.say(socketOf(run))
    const { stdout } = await run.ended
    expect(stdout).toContain('"code":"run.inside"')
    expect(stdout).toContain('alive')
  })
})

describe('nobody answers', () => {
  it('a supervisor that was killed: the command does it itself, and the socket goes with the run', async () => {
    const run = await startRun(space, 'printf a2 > a; READY; read x')
    const socket = socketOf(run)
    run.child.kill('SIGKILL')
    await run.ended
    expect(existsSync(socket)).toBe(true)
    expect(savepoint(space, ['snapshot'])).toMatchObject({ status: 0, stderr: '' })
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect([existsSync(socket), space.read('a')]).toEqual([false, 'a1'])
  })

  it('one that cannot be found: the files go back under it, and that is said', async () => {
    savepoint(space, ['snapshot', '-m', 'good'])
    const run = await startRun(space, 'printf a2 > a; READY; read x; cat a')
    rmSync(controlFile(run))
    const { status, stderr } = savepoint(space, ['rollback', 'good'])
    expect({ status, stderr }).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(new RegExp(`${run.id} \\(sh -c .* goes on: it has no control socket`)),
    })
    run.say('')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('a1') })
  })
})

it.skipIf(!isRoot)('another user is turned away, even where the directories let them in', async () => {
  const run = await startRun(space, 'read x')
  const socket = socketOf(run)
  for (const directory of [space.base, space.home, dirname(socket)]) chmodSync(directory, 0o755)
  chmodSync(socket, 0o666)
  const program = `
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
print(repr(s.recv(100)))`
  const { stdout, stderr } = spawnSync('python3', ['-c', program, socket], {
    uid: SOMEBODY,
    gid: SOMEBODY,
    encoding: 'utf8',
    cwd: '/',
  })
  expect({ stdout, stderr }).toEqual({ stdout: "b''\n", stderr: '' })
})
