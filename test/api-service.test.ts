/** The service that every face calls: what it does for a reader that is slow, and for those who have gone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Out } from '../src/api/service.ts'
import { Service } from '../src/api/service.ts'
import type { Savepoint } from '../src/index.ts'
import type { Frame } from './support/daemon.ts'
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
  const head = async () => {
    const out = new Collected()
    await service.call({}, 'head', {}, out)
    return out.frames.at(-1)
  }
  const timelines = join(space.home, 'timelines')
  renameSync(timelines, `${timelines}-elsewhere`)
  expect(await head()).toMatchObject({ error: { code: 'timeline.none' } })
  rmSync(timelines, { recursive: true, force: true })
  renameSync(`${timelines}-elsewhere`, timelines)
  expect(await head()).toMatchObject({ ok: true, result: { label: 'first' } })
})
