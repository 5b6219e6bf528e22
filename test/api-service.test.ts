/** The service that every face calls: what it does for a reader that is slow, and for those who have gone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Out } from '../src/api/service.ts'
import { Service } from '../src/api/service.ts'
import { findOperation } from '../src/api/table.ts'
import type { Savepoint } from '../src/index.ts'
import type { Frame } from './support/daemon.ts'
import { runVerbs } from './support/engine-process.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
let service: Service
beforeEach(async () => {
  space = new Workspace('work', { SAVEPOINT_LOCK_WAIT_MS: '120000' })
  space.write('a', 'one\n')
  savepoint = await space.open()
  const { target, timeline } = savepoint
  service = new Service({ target, path: space.dir, home: space.home, timeline }, space.env)
})
afterEach(async () => {
  await service.close()
  space.remove()
})

/** Collects frames; somebody may wait for one. */
class Collected implements Out {
  readonly frames: Frame[] = []
  readonly stop = new AbortController()
  isSlow = false
  /** How often it was asked while it was slow. */
  left = 0
  private wake = () => {}

  get isCrowded() {
    if (this.isSlow) this.left++
    this.wake()
    return this.isSlow
  }

  get signal() {
    return this.stop.signal
  }

  frame(text: string): void {
    this.frames.push(JSON.parse(text))
    this.wake()
  }

  async drained(): Promise<void> {}

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo())
      await new Promise<void>(resolve => {
        this.wake = resolve
      })
  }

  has(isWanted: (frame: Frame) => boolean): boolean {
    return this.frames.some(isWanted)
  }
}

it('a reader that does not keep up is told how much it missed', async () => {
  const out = new Collected()
  const work = service.call({}, 'subscribe', {}, out)
  await out.until(() => out.has(({ event }) => event?.kind === 'following'))
  out.isSlow = true
  await savepoint.snapshot({ label: 'unread' })
  await out.until(() => out.left > 0)
  out.isSlow = false
  // What that led to may be told in pieces.
  for (let i = 0; !out.has(frame => 'left_out' in frame); i++) {
    await savepoint.snapshot({ label: `more ${i}` })
    await out.until(() => out.has(frame => frame.event?.snapshot?.label === `more ${i}`))
  }
  expect(out.frames.find(frame => 'left_out' in frame)).toEqual({ left_out: out.left })
  out.stop.abort()
  await work
  expect(out.frames.at(-1)).toEqual({ ok: true, result: null })
})

const ask = async (op: string, input: object = {}): Promise<Frame> => {
  const out = new Collected()
  await service.call({}, op, input, out)
  return out.frames.at(-1)
}

it('answers as somebody who has just come, whatever it has answered before', async () => {
  const questions = ['head', 'log', 'snapshots', 'branches', 'tags', 'operations', 'show', 'runs']
  const steps = [
    () => savepoint.snapshot({ label: 'first' }),
    () => savepoint.tag('kept', 'first'),
    () => space.write('a', 'two\n') ?? savepoint.snapshot({ label: 'second' }),
    () => savepoint.tag('kept', 'second'),
    () => savepoint.rollback('first'),
    () => savepoint.deleteTag('kept'),
    () => savepoint.delete(['second']),
    () => savepoint.undo(),
  ]
  for (const step of steps) {
    await step()
    const fresh = await space.open()
    for (const question of questions) {
      const { handler, input } = findOperation(question)
      const result = JSON.parse(JSON.stringify(await handler(fresh, input.parse({}))))
      for (let times = 0; times < 2; times++) expect(await ask(question), question).toEqual({ ok: true, result })
    }
    fresh.close()
  }
})

/** As a repair does it, and who brings back a backup: the file of that name is another one. */
const keepTimeline = () => {
  const directory = join(space.home, 'timelines', savepoint.timeline)
  space.sh('mkdir kept; cp -a timeline.sqlite* kept', directory)
  return { bringBack: () => space.sh('rm timeline.sqlite*; mv kept/* .', directory) }
}

it('answers of the timeline that is there now, however often it is asked of the one before', async () => {
  await savepoint.snapshot({ label: 'first' })
  const kept = keepTimeline()
  await savepoint.snapshot({ label: 'second' })
  expect(await ask('head')).toMatchObject({ result: { label: 'second' } })
  const following = new Collected()
  const told = service.call({}, 'subscribe', {}, following)
  await following.until(() => following.frames.length > 0)
  kept.bringBack()
  expect(await ask('head')).toMatchObject({ result: { label: 'first' } })
  expect((await ask('log')).result).toHaveLength(1)
  await told
  expect(following.frames.at(-1)).toMatchObject({ error: { code: 'failed' } })
})

it('leaves it to another process to complete what was interrupted, which may take long', async () => {
  await savepoint.snapshot({ label: 'first' })
  space.write('a', 'two\n')
  const { signal } = await runVerbs(space, [['rollback', 'first']], { failpoint: 'restore:staged' })
  expect(signal).toBe('SIGKILL')
  const { served } = service
  // Whoever completes it is killed there.
  const failing = new Service(served, { ...space.env, SAVEPOINT_FAILPOINT: 'restore:place' })
  for (const op of ['show', 'head', 'read']) {
    const out = new Collected()
    await failing.call({}, op, op === 'read' ? { path: 'a' } : {}, out)
    expect(out.frames.at(-1), op).toMatchObject({ error: { code: 'failed' } })
  }
  await failing.close()
  expect(await ask('head')).toMatchObject({ ok: true, result: { label: 'first' } })
  expect(space.read('a')).toBe('one\n')
})

it('tells of an archive that is gone, which nobody has written down', async () => {
  const archived = await space.open({ backend: 'archive' })
  const { id } = await archived.snapshot()
  expect(await ask('head')).toMatchObject({ result: { id, damage: null } })
  rmSync(archived.nativeUsage(id)!.where)
  expect(await ask('head')).toMatchObject({ result: { id, damage: 'is missing' } })
})

it('reads a file by the rules of now, and a large one or a large change, too', async () => {
  const large = 'x'.repeat(2 * 1024 * 1024)
  space.write('large', large)
  for (let i = 0; i < 600; i++) space.write(`many/${i}`, `${i}\n`)
  await savepoint.snapshot()
  expect(await ask('read', { path: 'large' })).toMatchObject({ result: { content: large } })
  expect((await ask('show')).result.changes).toBeNull()
  space.write('many/0', 'changed\n')
  for (let i = 0; i < 600; i++) space.write(`more/${i}`, `${i}\n`)
  await savepoint.snapshot()
  expect((await ask('show')).result.changes).toHaveLength(601)
  expect(await ask('read', { path: 'a' })).toMatchObject({ result: { content: 'one\n' } })
  writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  exclude:\n    keep: [a]\n')
  expect(await ask('read', { path: 'a' })).toMatchObject({ error: { data: { forbidden: true } } })
})

it('says what is wrong with the rules once, whoever answers', async () => {
  await savepoint.snapshot()
  for (let i = 0; i < 600; i++) space.write(`many/${i}`, `${i}\n`)
  await savepoint.snapshot({ label: 'large' })
  space.write('savepoint.yaml', 'snapshots: [')
  const told = async (op: string, input: object) => {
    const out = new Collected()
    await service.call({}, op, input, out)
    return out.frames.map(({ notice, error, ok }) => (notice ? 'notice' : (error?.code ?? ok)))
  }
  expect(await told('show', { snapshot: 'large' })).toEqual(['notice', true])
  expect(await told('read', { path: 'a' })).toEqual(['notice', true])
  expect(await told('read', { path: 'nowhere' })).toEqual(['notice', 'path.unknown'])
})

it('what waits for its turn when its caller goes is not begun', async () => {
  await savepoint.snapshot()
  const lock = join(space.home, 'timelines', savepoint.timeline, 'lock')
  const holder = spawn('flock', [lock, 'sh', '-c', 'echo held; read x'], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(holder.stdout!, 'data')
  // More than are carried out at a time: the last ones wait.
  const outs = Array.from({ length: 8 }, () => new Collected())
  const calls = outs.map((out, i) => service.call({}, 'snapshot', { label: `number ${i}` }, out))
  const last = outs.at(-1)!
  last.stop.abort()
  holder.stdin!.end('\n')
  await Promise.all(calls)
  expect(last.frames).toMatchObject([{ error: { code: 'cancelled' } }])
  expect(outs.slice(0, -1).every(({ frames }) => frames.at(-1).ok)).toBe(true)
  expect(savepoint.snapshots().map(({ label }) => label)).not.toContain('number 7')
})

it('says that it is ending', async () => {
  await service.close()
  const out = new Collected()
  await service.call({}, 'head', {}, out)
  expect(out.frames).toMatchObject([{ error: { code: 'busy' } }])
})

it('a timeline that could not be opened is tried again by the next who looks', async () => {
  await savepoint.snapshot({ label: 'first' })
  const timelines = join(space.home, 'timelines')
  renameSync(timelines, `${timelines}-elsewhere`)
  expect(await ask('head')).toMatchObject({ error: { code: 'timeline.none' } })
  rmSync(timelines, { recursive: true, force: true })
  renameSync(`${timelines}-elsewhere`, timelines)
  expect(await ask('head')).toMatchObject({ ok: true, result: { label: 'first' } })
})

it('who comes after many that look into files does not wait for all of them', async () => {
  await savepoint.snapshot({})
  let shown = 0
  const shows = Array.from({ length: 200 }, () => service.call({}, 'show', {}, new Collected()).then(() => shown++))
  await turn()
  const out = new Collected()
  await service.call({}, 'head', {}, out)
  expect(out.frames).toMatchObject([{ ok: true }])
  expect(shown).toBeLessThan(shows.length)
  await Promise.all(shows)
})
