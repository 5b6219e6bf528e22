/** What a run destroyed, and the store had no room for: it waits where it is, is named, and is taken up when there is room. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { doctor } from '../src/index.ts'
import { run } from './support/backend-scene.ts'
import { canMount, gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const MB = 1_000_000
let space: Workspace
beforeEach(() => {
  space = new Workspace()
  mkdirSync(space.home)
  run('mount', '-t', 'tmpfs', '-o', 'size=44m,mode=700', 'none', space.home)
  writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 1 MB\n')
  space.write('old', 'old\n')
})
afterEach(() => {
  run('umount', '-l', space.home)
  space.remove()
})

const onSmallDisk = (title: string, work: () => Promise<void>) =>
  gated(canMount, 'root, to mount a small filesystem', title, work)

const spools = () =>
  readdirSync(join(space.home, 'timelines'), { recursive: true, encoding: 'utf8' }).filter(path =>
    path.endsWith('/kept'),
  )

/** Three versions of 8 MB are destroyed, and the end has a file that finds no room: the spool is left. */
async function leaveSpool() {
  const savepoint = await space.open()
  const destroy = 'for i in 1 2 3; do head -c 8000000 /dev/urandom > t; cp t ../t$i; rm t; done'
  await savepoint.run({ command: ['sh', '-c', `${destroy}; echo 1 > s; rm s; head -c 50000000 /dev/urandom > big`] })
  expect(spools()).toHaveLength(1)
  rmSync(space.at('big'))
  return savepoint
}

const hasVersions = (savepoint: Awaited<ReturnType<typeof leaveSpool>>) => {
  const kept = savepoint.snapshots().filter(({ type, label }) => type === 'kept' && label !== 's')
  const held = kept.map(({ id }) => savepoint.read(id, 't').subarray(0, 64).toString('hex'))
  const made = [1, 2, 3].map(i => space.sh(`head -c 64 ../t${i} | od -An -v -tx1 | tr -d ' \n'`))
  expect(held.sort()).toEqual(made.sort())
}

onSmallDisk('gc takes it up with room for one, and what is live stays HEAD', async () => {
  const savepoint = await leaveSpool()
  const head = (await savepoint.status()).head?.id
  expect(space.notices.join('\n')).toMatch(
    /4 files that run_\w+ destroyed wait for room in the store, in '.+\/kept' \(24 MB\)/,
  )
  writeFileSync(join(space.home, 'others'), randomBytes(8 * MB))
  await savepoint.gc()
  expect(spools()).toEqual([])
  hasVersions(savepoint)
  expect(await savepoint.status()).toMatchObject({ head: { id: head }, changes: [] })
  expect((await savepoint.verify()).problems).toEqual([])
})

onSmallDisk('what finds no room stays, is named, and the next run takes it up', async () => {
  const savepoint = await leaveSpool()
  const filler = join(space.home, 'others')
  writeFileSync(filler, randomBytes(13 * MB))
  space.notices.length = 0
  await savepoint.gc()
  const said = /3 files that run_\w+ destroyed wait for room in the store, in '(.+\/kept)' \(24 MB\); with room for one/
  const [, place] = said.exec(space.notices.join('\n'))!
  expect(existsSync(place!)).toBe(true)
  const checks = (await doctor({ home: space.home, cwd: space.dir, env: space.env })).checks
  expect(checks).toContainEqual(expect.objectContaining({ state: 'warning', detail: expect.stringContaining(place!) }))
  rmSync(filler)
  await savepoint.run({ command: ['true'] })
  expect(spools()).toEqual([])
  hasVersions(savepoint)
})

onSmallDisk('the end of a run is captured although there is no room for what it destroyed', async () => {
  writeFileSync(join(space.home, 'others'), randomBytes(13 * MB))
  const savepoint = await space.open()
  const destroy = 'for i in 1 2 3; do head -c 8000000 /dev/urandom > t; cp t ../t$i; rm t; done'
  const { after } = await savepoint.run({ command: ['sh', '-c', `${destroy}; echo new > old`] })
  expect(savepoint.read(after!.id, 'old').toString()).toBe('new\n')
  expect(space.notices.join('\n')).toContain('there is no room for all that the run destroyed on the way')
  await savepoint.undo()
  expect(space.read('old')).toBe('old\n')
  rmSync(join(space.home, 'others'))
  await savepoint.gc()
  expect(spools()).toEqual([])
  hasVersions(savepoint)
})

onSmallDisk('what cannot even be kept there is named at the end of the run', async () => {
  space.write('.savepointignore', 'ignored\n')
  const savepoint = await space.open()
  const wait = 'touch ../ready; until [ -e ../go ]; do sleep 0.02; done'
  const destroy = 'mkdir d; echo work > d/y; echo i > ignored; rm -rf d ignored'
  const running = savepoint.run({ command: ['sh', '-c', `${wait}; ${destroy}`] })
  await vi.waitUntil(() => existsSync(join(space.base, 'ready')), { timeout: 30_000 })
  spawnSync('dd', ['if=/dev/zero', `of=${join(space.home, 'others')}`])
  writeFileSync(join(space.base, 'go'), '')
  await running
  expect(space.notices.join('\n')).toMatch(
    /1 file that the run replaced or removed could not be kept, and may be in no snapshot: d\/y$/m,
  )
})
