/** S6, T2: several processes on one timeline and on one store; locks of the living and of the dead; kills at random. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { open } from '../src/index.ts'
import { tryLock } from '../src/store/file-lock.ts'
import { finishVerbs, runVerbs, startVerbs } from './support/engine-process.ts'
import { expectNoLeftovers } from './support/fault-scene.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const NO_WAITING = { SAVEPOINT_LOCK_WAIT_MS: '0' }

let workspace: Workspace
const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  workspace.remove()
})

const lockOf = (timeline: string) => join(workspace.home, 'timelines', timeline, 'lock')

/** A process that holds flock on a file until it is killed. */
async function holdLock(file: string): Promise<ChildProcess> {
  const script = `import fcntl,os,sys,time
f=open(sys.argv[1],'r+'); fcntl.flock(f, fcntl.LOCK_EX); f.truncate(0); f.write(str(os.getpid())+' take a snapshot\\n'); f.flush()
print('held', flush=True); time.sleep(1000)`
  const child = spawn('python3', ['-c', script, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  await once(child.stdout!, 'data')
  return child
}

describe('S6 the lock of a timeline', () => {
  test('of a living process is respected: busy, with its pid and what it does', async () => {
    workspace = new Workspace()
    workspace.write('a')
    const savepoint = await workspace.open({ env: { ...workspace.env, ...NO_WAITING } })
    await savepoint.snapshot()
    const holder = await holdLock(lockOf(savepoint.timeline))
    const busy = {
      code: 'busy',
      message: expect.stringContaining(`process ${holder.pid} is at work (take a snapshot)`),
    }
    for (const attempt of [
      () => savepoint.snapshot(),
      () => savepoint.rollback('HEAD'),
      () => savepoint.undo(),
      () => savepoint.prune(),
    ]) {
      await expect(attempt()).rejects.toMatchObject(busy)
    }
    // Questions are answered meanwhile.
    const status = await savepoint.status()
    expect(status.writer).toEqual({ pid: holder.pid, purpose: 'take a snapshot' })
    expect(savepoint.log()).toHaveLength(1)
    expect((await savepoint.changes()).changes).toEqual([])
  })

  test('of a dead process is taken over at once', async () => {
    workspace = new Workspace()
    workspace.write('a')
    const savepoint = await workspace.open({ env: { ...workspace.env, ...NO_WAITING } })
    await savepoint.snapshot()
    const holder = await holdLock(lockOf(savepoint.timeline))
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    await savepoint.snapshot({ label: 'after' })
    expect(savepoint.head().label).toBe('after')
    expect((await savepoint.status()).writer).toBeUndefined()
    expect(readFileSync(lockOf(savepoint.timeline), 'utf8')).toMatch(new RegExp(`^${process.pid} `))
  })
})

test('several processes snapshot one timeline at once: each waits its turn, none is lost', async () => {
  workspace = new Workspace()
  for (let i = 0; i < 50; i++) workspace.write(`f${i}`, noise(20_000, i))
  await (await workspace.open()).snapshot()
  const results = await Promise.all(
    [1, 2, 3].map(i =>
      runVerbs(workspace, [['snapshot', { label: `p${i}a` }], ['status'], ['snapshot', { label: `p${i}b` }]]),
    ),
  )
  expect(results.map(result => result.error)).toEqual([undefined, undefined, undefined])
  const savepoint = await workspace.open()
  const snapshots = savepoint.snapshots()
  expect(
    snapshots
      .map(snapshot => snapshot.label)
      .slice(1)
      .sort(),
  ).toEqual(['p1a', 'p1b', 'p2a', 'p2b', 'p3a', 'p3b'])
  // One line of descent: nobody worked on an outdated HEAD.
  expect(snapshots.slice(1).map(snapshot => snapshot.parent)).toEqual(
    snapshots.slice(0, -1).map(snapshot => snapshot.id),
  )
  expect((await savepoint.verify()).problems).toEqual([])
})

test('questions from several processes while another one captures: all are answered', async () => {
  workspace = new Workspace()
  for (let i = 0; i < 400; i++) workspace.write(`d${i % 20}/f${i}`, noise(2_000, i))
  await (await workspace.open()).snapshot()
  workspace.write('changed', 'x')
  const rounds = (verb: string) => Array.from({ length: 12 }, () => [verb] as [string])
  const results = await Promise.all([
    runVerbs(workspace, rounds('snapshot')),
    runVerbs(workspace, rounds('status')),
    runVerbs(workspace, rounds('changes')),
  ])
  expect(results.map(result => result.error)).toEqual([undefined, undefined, undefined])
  expectNoLeftovers(workspace)
})

/** Another target with a timeline in the same home. */
function secondTarget(): string {
  const directory = join(workspace.base, 'second')
  mkdirSync(directory)
  appendFileSync(join(directory, 'file'), noise(400_000, 77))
  return directory
}

test('two timelines in one store are captured at once, while a third process collects', async () => {
  workspace = new Workspace()
  const second = secondTarget()
  for (let i = 0; i < 30; i++) workspace.write(`f${i}`, noise(60_000, i))
  const first = await workspace.open()
  await first.snapshot({ label: 'start' })
  const takes = (name: string) =>
    Array.from({ length: 5 }, (_, i) => ['snapshot', { label: `${name}${i}` }] as [string, unknown])
  const results = await Promise.all([
    runVerbs(workspace, takes('a')),
    runVerbs(workspace, takes('b'), { cwd: second }),
    runVerbs(workspace, [['gc'], ['gc']]),
  ])
  expect(results.map(result => result.error?.code).filter(code => code !== undefined && code !== 'busy')).toEqual([])
  for (const cwd of [workspace.dir, second]) {
    const savepoint = await workspace.open({ cwd })
    expect(savepoint.snapshots().length).toBeGreaterThanOrEqual(5)
    expect((await savepoint.verify()).problems).toEqual([])
  }
})

test('a timeline that is made while gc waits keeps what it captures', async () => {
  workspace = new Workspace()
  workspace.write('a')
  const first = await workspace.open()
  await first.snapshot()
  const reader = tryLock(join(workspace.home, 'store/gc.lock'), 'shared', 'hold gc')!
  const collecting = first.gc()
  // By then it has listed the timelines, and waits for the reader.
  await new Promise(setImmediate)
  const second = secondTarget()
  const made = await open({ cwd: second, home: workspace.home, env: workspace.env, create: true })
  await made.snapshot({ label: 'new' })
  reader.release()
  await collecting
  expect((await made.verify()).problems).toEqual([])
  expect(made.read('new', 'file').equals(noise(400_000, 77))).toBe(true)
  made.close()
})

test('gc refuses to free anything while a timeline cannot be read', async () => {
  workspace = new Workspace()
  const second = secondTarget()
  const other = await workspace.open({ cwd: second })
  await other.snapshot({ label: 'precious' })
  const first = await workspace.open()
  workspace.write('a')
  await first.snapshot()
  const record = join(workspace.home, 'timelines', other.timeline, 'target.json')
  const content = readFileSync(record)
  rmSync(record)
  await expect(first.gc()).rejects.toMatchObject({
    code: 'store.damaged',
    hint: expect.stringMatching(/Nothing was deleted/),
  })
  appendFileSync(record, content)
  await first.gc()
  expect(other.read('precious', 'file').equals(noise(400_000, 77))).toBe(true)
  // One that is being made has its database, and no record yet.
  const born = join(workspace.home, 'timelines', 'born')
  mkdirSync(born)
  copyFileSync(join(record, '..', 'timeline.sqlite'), join(born, 'timeline.sqlite'))
  await first.gc()
})

test('R13 killed at random times while it snapshots, rolls back and collects: history stays whole', async () => {
  workspace = new Workspace()
  for (let i = 0; i < 40; i++) workspace.write(`d${i % 4}/f${i}`, noise(5_000, i))
  await (await workspace.open()).snapshot({ label: 'base' })
  const base = imageOf(workspace.dir)
  let killed = 0
  for (let round = 0; round < 8; round++) {
    workspace.write(`d${round % 4}/f${round}`, noise(5_000, 1000 + round))
    rmSync(workspace.at(`d${(round + 1) % 4}`), { recursive: true, force: true })
    const child = startVerbs(workspace, [['snapshot'], ['rollback', 'base'], ['undo'], ['gc'], ['rollback', 'base']])
    const finished = finishVerbs(child)
    // The first answer says that it is at work; from there on any moment may be its last.
    await Promise.race([once(child.stdout!, 'data'), finished])
    // Soon in every second round: not all may be over before, on a machine that is fast.
    const timer = setTimeout(() => child.kill('SIGKILL'), Math.random() * (round % 2 === 0 ? 10 : 250))
    if ((await finished).signal === 'SIGKILL') killed++
    clearTimeout(timer)
    const savepoint = await workspace.open()
    expect((await savepoint.verify()).problems).toEqual([])
    // So that there is something to roll back: what a dead process left of a file goes when that file is written again.
    workspace.write('d0/f0', `round ${round}`)
    await savepoint.rollback('base')
    expect(differences(base, imageOf(workspace.dir))).toEqual([])
    expectNoLeftovers(workspace)
  }
  expect(killed).toBeGreaterThan(0)
})
