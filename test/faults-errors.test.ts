/** R12, S4: a write that fails instead of a process that dies. Clear errors, the workspace as it was, nothing half listed. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { runCli } from './support/cli.ts'
import { runVerbs } from './support/engine-process.ts'
import { expectIntact, expectNoLeftovers, type FaultScene, faultScene } from './support/fault-scene.ts'
import { canMount, gated } from './support/machine.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const codeOf: Record<string, string> = { ENOSPC: 'disk.full', EIO: 'io.failed', EACCES: 'io.failed' }

let workspace: Workspace | undefined
let unmount = () => {}
afterEach(() => {
  unmount()
  workspace?.remove()
  unmount = () => {}
  workspace = undefined
})

describe('a rollback in which a write fails', () => {
  test.each([
    ['restore:staged', 'ENOSPC'],
    ['restore:displace', 'EIO'],
    ['restore:displaced#4', 'EIO'],
    ['restore:place', 'EACCES'],
    ['restore:place#4', 'ENOSPC'],
    ['store:before-sync', 'EIO'],
    ['capture:before-commit', 'EIO'],
  ])('at %s with %s: everything is back as it was', async (point, errno) => {
    const scene = await openScene()
    const { error } = await runVerbs(workspace!, [['rollback', 'one']], { failpoint: `${point}@${errno}` })
    expect(error).toMatchObject({ code: codeOf[errno], isOurs: true })
    expect(error!.message).toMatch(/^Cannot /)
    if (point.startsWith('restore')) expect(error!.hint).toMatch(/back as it was/)
    expect(differences(scene.live, imageOf(workspace!.dir))).toEqual([])
    expectNoLeftovers(workspace!)
    const savepoint = await workspace!.open()
    expect(workspace!.notices).toEqual([])
    expect(savepoint.operations()).toEqual([])
    await savepoint.rollback('one')
    expect(differences(scene.one, imageOf(workspace!.dir))).toEqual([])
    await expectIntact(savepoint, scene)
  })

  test.each([
    ['restore:placed', 'ENOSPC'],
    ['restore:rescued', 'EIO'],
    ['restore:cleaned', 'EACCES'],
    ['capture:committed#2', 'EIO'],
  ])(
    'after everything is in place (%s, %s): says that it is to be completed, and the next command does it',
    async (point, errno) => {
      const scene = await openScene()
      const { error } = await runVerbs(workspace!, [['rollback', 'one']], { failpoint: `${point}@${errno}` })
      expect(error).toMatchObject({ code: codeOf[errno], isOurs: true })
      if (point.startsWith('restore')) expect(error!.hint).toMatch(/next savepoint command completes it/)
      const savepoint = await workspace!.open()
      expect(workspace!.notices.join()).toMatch(/completed a rollback/)
      expect(differences(scene.one, imageOf(workspace!.dir))).toEqual([])
      expectNoLeftovers(workspace!)
      await savepoint.undo()
      expect(differences(scene.live, imageOf(workspace!.dir))).toEqual([])
    },
  )

  test('for whose record there is no room: refused before the first change, or carried out without', async () => {
    const scene = await openScene()
    const failing = { failpoint: 'snapshot:before-row@ENOSPC' }
    const { error } = await runVerbs(workspace!, [['rollback', 'one']], failing)
    expect(error).toMatchObject({ code: 'disk.full', hint: expect.stringMatching(/Nothing was changed.*--no-safety/) })
    expect(differences(scene.live, imageOf(workspace!.dir))).toEqual([])
    expectNoLeftovers(workspace!)
    const without = await runVerbs(workspace!, [['rollback', 'one', { noSafety: true }]], failing)
    expect([without.error, without.notices.join()]).toEqual([undefined, expect.stringMatching(/cannot be undone/)])
    expect(differences(scene.one, imageOf(workspace!.dir))).toEqual([])
  })

  test('for which the whole state before finds no room: it saves what it touches, and can be undone', async () => {
    const scene = await openScene()
    const { error, notices } = await runVerbs(workspace!, [['rollback', 'one']], {
      failpoint: 'store:before-sync@ENOSPC',
    })
    expect([error, notices]).toEqual([undefined, []])
    expect(differences(scene.one, imageOf(workspace!.dir))).toEqual([])
    const savepoint = await workspace!.open()
    await savepoint.undo()
    expect(differences(scene.live, imageOf(workspace!.dir))).toEqual([])
    await expectIntact(savepoint, scene)
  })

  test('whose recovery fails too: one can look around, and it is completed once the cause is gone', async () => {
    const scene = await openScene()
    expect((await runVerbs(workspace!, [['rollback', 'one']], { failpoint: 'restore:place#2' })).signal).toBe('SIGKILL')
    const failing = { failpoint: 'store:before-sync@EIO' }
    const look = await runVerbs(workspace!, [['snapshots']], failing)
    expect(look.error).toBeUndefined()
    expect(look.notices.join()).toMatch(/not completed yet: .*EIO/)
    const change = await runVerbs(workspace!, [['snapshot']], failing)
    expect(change.error ?? change.notices.join()).toBeTruthy()
    await workspace!.open()
    expect(differences(scene.one, imageOf(workspace!.dir))).toEqual([])
    expectNoLeftovers(workspace!)
  })
})

async function openScene(): Promise<FaultScene> {
  const scene = await faultScene()
  workspace = scene.workspace
  return scene
}

test('R11 an interrupted rollback whose content the store has lost is given up, and stands in nobody’s way', async () => {
  await openScene()
  await runVerbs(workspace!, [['rollback', 'one']], { failpoint: 'restore:journal' })
  const packs = join(workspace!.home, 'store/packs')
  const pack = readdirSync(packs)[0]!
  workspace!.write('kept', 'still editing')
  writeFileSync(join(packs, pack), Buffer.alloc(64))
  const savepoint = await workspace!.open()
  expect(workspace!.notices.join()).toMatch(/cannot be completed|not completed yet/)
  expect(savepoint.snapshots().map(snapshot => snapshot.label)).toContain('one')
  expect(workspace!.read('kept')).toBe('still editing')
})

describe('a snapshot in which a write fails', () => {
  test.each([
    ['store:before-sync', 'ENOSPC'],
    ['store:before-index', 'EIO'],
    ['capture:before-root', 'EACCES'],
    ['capture:before-commit', 'ENOSPC'],
  ])('at %s with %s: none is listed, and the next one is whole', async (point, errno) => {
    workspace = new Workspace()
    workspace.write('a', noise(100_000, 1))
    const { error } = await runVerbs(workspace, [['snapshot']], { failpoint: `${point}@${errno}` })
    expect(error).toMatchObject({ code: codeOf[errno], isOurs: true })
    const savepoint = await workspace.open()
    expect(savepoint.snapshots()).toEqual([])
    await savepoint.snapshot({ label: 'whole' })
    expect(savepoint.read('whole', 'a').equals(noise(100_000, 1))).toBe(true)
    expect((await savepoint.verify()).problems).toEqual([])
    expectNoLeftovers(workspace)
  })
})

/** A home on a filesystem of its own. */
function smallHome(megabytes: number): Workspace {
  workspace = new Workspace()
  mkdirSync(workspace.home)
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'none', workspace.home])
  const { home } = workspace
  unmount = () => void spawnSync('umount', ['-l', home])
  writeFileSync(join(home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 0\n')
  return workspace
}

gated(
  canMount,
  'root, to mount a small filesystem',
  'a store whose disk fills up lists no partial snapshot, and goes on when there is room',
  async () => {
    const place = smallHome(8)
    const savepoint = await place.open()
    place.write('small', noise(1_000_000, 1))
    await savepoint.snapshot({ label: 'fits' })
    place.write('huge', noise(16_000_000, 2))
    for (let i = 0; i < 3; i++)
      await expect(savepoint.snapshot({ label: 'too much' })).rejects.toMatchObject({ code: 'disk.full' })
    expect(savepoint.snapshots().map(snapshot => snapshot.label)).toEqual(['fits'])
    rmSync(place.at('huge'))
    place.write('small', 'edited')
    await savepoint.rollback('fits')
    expect(place.read('small')).toBe(noise(1_000_000, 1).toString('utf8'))
    await savepoint.snapshot({ label: 'again' })
    expect((await savepoint.verify()).problems).toEqual([])
    expect(readdirSync(join(place.home, 'store/packs'))).toHaveLength(1)
  },
)

gated(
  canMount,
  'root, to mount a small filesystem',
  'many small files on a full disk (index and timeline too): always a clear error',
  async () => {
    const place = smallHome(3)
    const savepoint = await place.open()
    const codes = new Set<string>()
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 150; i++) place.write(`d${round}/f${i}`, noise(1500, round * 1000 + i))
      try {
        await savepoint.snapshot({ label: `r${round}` })
      } catch (error) {
        codes.add((error as { code: string }).code)
      }
    }
    expect([...codes]).toEqual(['disk.full'])
    const listed = savepoint.snapshots().length
    expect(listed).toBeGreaterThan(0)
    expect((await savepoint.verify()).problems).toEqual([])
  },
)

gated(
  canMount,
  'root, to mount a small filesystem',
  'a new file that the store has no room for: it stays and that is said, and --no-safety deletes it',
  async () => {
    const place = smallHome(12)
    const savepoint = await place.open()
    place.write('a', 'one')
    await savepoint.snapshot({ label: 'one' })
    place.write('a', 'two')
    place.write('new', noise(20_000_000, 1))
    place.write('dir/new', noise(20_000_000, 2))
    const kept = ['dir/new', 'new'].map(path => ({ path, why: 'no-room' }))
    expect((await savepoint.rollback('one', { dryRun: true })).leftAlone).toEqual([])
    expect(place.notices.join()).toMatch(/no room to save the present content of dir\/new, new first: .*left alone/)
    expect((await savepoint.rollback('one')).leftAlone).toEqual(kept)
    expect([place.read('a'), statSync(place.at('new')).size]).toEqual(['one', 20_000_000])
    const shown = runCli(place, ['rollback', 'one'])
    expect(shown.status).toBe(3)
    expect(shown.stdout).toMatch(
      /^Nothing was changed\nLeft alone \(2\):\n.*could not be stored first.*\n.*\n.*--no-safety/,
    )
    expect((await savepoint.rollback('one', { noSafety: true })).leftAlone).toEqual([])
    expect(readdirSync(place.dir)).toEqual(['a'])
    expect((await savepoint.verify()).problems).toEqual([])
  },
)

gated(
  canMount,
  'root, to mount a small filesystem',
  'an edited file that the store has no room for: left alone, and --no-safety overwrites it',
  async () => {
    const place = smallHome(12)
    const savepoint = await place.open()
    place.write('large', noise(5_000_000, 1))
    await savepoint.snapshot({ label: 'one' })
    await savepoint.snapshot({ label: 'two' })
    const then = imageOf(place.dir)
    place.write('large', noise(20_000_000, 2))
    expect((await savepoint.rollback('one')).leftAlone).toEqual([{ path: 'large', why: 'no-room' }])
    // That is to be asked for again.
    expect(savepoint.head().label).toBe('two')
    expect((await savepoint.rollback('one', { noSafety: true })).leftAlone).toEqual([])
    expect(place.notices.join()).toMatch(/state before is NOT saved/)
    // Of a state before that is none.
    expect(place.notices.join()).not.toContain('for want of room')
    expect(differences(then, imageOf(place.dir))).toEqual([])
  },
)

test('S4 below the floor captures stop and say so; rolling back still works', async () => {
  workspace = new Workspace()
  workspace.write('a', 'one')
  await (await workspace.open()).snapshot({ label: 'one' })
  writeFileSync(join(workspace.home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 4000 TB\n')
  workspace.write('a', 'two')
  const savepoint = await workspace.open()
  await expect(savepoint.snapshot()).rejects.toMatchObject({
    code: 'disk.full',
    hint: expect.stringMatching(/Rolling back still works/),
  })
  expect((await savepoint.status()).counts.modified).toBe(1)
  const { safety } = await savepoint.rollback('one')
  expect(workspace.read('a')).toBe('one')
  expect(savepoint.read(safety!.id, 'a').toString()).toBe('two')
  await savepoint.undo()
  expect(workspace.read('a')).toBe('two')
  expect(existsSync(workspace.at('.savepoint'))).toBe(false)
})

test('max_store_bytes stops captures and names what to delete', async () => {
  workspace = new Workspace()
  workspace.write('a', noise(200_000, 1))
  const { id } = await (await workspace.open()).snapshot()
  writeFileSync(join(workspace.home, 'config.yaml'), 'snapshots:\n  max_store_bytes: 100 kB\n')
  const savepoint = await workspace.open()
  await expect(savepoint.snapshot()).rejects.toMatchObject({ code: 'disk.full', hint: expect.stringContaining(id) })
})

test('a capture that fails leaves none of its bytes behind', async () => {
  const space = new Workspace()
  try {
    space.write('a', randomBytes(4 * 1024 * 1024))
    const { error } = await runVerbs(space, [['snapshot']], { failpoint: 'store:before-index@ENOSPC' })
    expect(error?.code).toBe('disk.full')
    const packs = join(space.home, 'store/packs')
    expect(readdirSync(packs).reduce((sum, name) => sum + statSync(join(packs, name)).size, 0)).toBeLessThan(1000)
    const savepoint = await space.open()
    await savepoint.snapshot()
    expect((await savepoint.verify()).problems).toEqual([])
  } finally {
    space.remove()
  }
})
