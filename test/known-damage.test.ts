/** What somebody has found damaged in the store is known from then on: no other copy goes, and what is still there is stored again. */
import { closeSync, globSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { addon } from '../src/native/addon.ts'
import { archivesOf, onBtrfs, useScene } from './support/backend-scene.ts'
import { savepoint as runCli } from './support/built-cli.ts'
import { flipIn, noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const LOCK_EXCLUSIVE = 2
const LARGE = 20 * 1024 * 1024

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
  mkdirSync(space.home, { recursive: true })
})

const configure = (snapshots: string) => writeFileSync(join(space.home, 'config.yaml'), `snapshots: ${snapshots}\n`)

/** Not read yet. */
const keep = async (label: string) => (await space.open({ leaveUnread: true })).snapshot({ label })

const inHome = (pattern: string): string[] => globSync(pattern, { cwd: space.home }).map(path => join(space.home, path))

/** The content of the first snapshot, in the block that was written first. */
function flipFirst(): void {
  const [pack] = inHome('store/packs/*.pack')
  const bytes = readFileSync(pack!)
  bytes[5000]! ^= 1
  writeFileSync(pack!, bytes)
}

/** Their names, by which they are told from others. */
const kept = () => scene.kept(space).map(path => basename(path))

onDisk('verify looks before native_max applies, and what it finds damaged stays beyond that', async () => {
  configure('{retention: {native_max: 2}}')
  const content = noise(300_000, 1)
  space.write('a', content)
  const one = await keep('one')
  await space.open()
  space.write('a', noise(300_000, 2))
  await keep('two')
  await space.open()
  flipFirst()
  const three = await keep('three')
  const looked = runCli(space, ['verify'])
  expect([looked.status, looked.stdout]).toEqual([
    14,
    expect.stringContaining(`${one.id} has lost 1 path: btrfs keeps`),
  ])
  expect(looked.stderr).toContain(`${one.id} stays in btrfs, beyond its limit: the store has lost parts of it`)
  const four = await keep('four')
  expect(runCli(space, ['log']).stderr).toContain(`${one.id} stays in btrfs`)
  expect(kept().sort()).toEqual([one.id, three.id, four.id].sort())
  await keep('five')
  const repaired = runCli(space, ['verify', '--repair'])
  expect([repaired.status, repaired.stdout]).toEqual([0, expect.stringContaining(`what ${one.id} had lost is stored`)])
  // Then it applies at once.
  expect(kept()).toHaveLength(2)
  expect(kept()).not.toContain(one.id)
  expect((await space.open()).read('one', 'a').equals(content)).toBe(true)
})

onDisk('so it is with what a restore has met', async () => {
  configure('{retention: {native_max: 1}}')
  space.write('a', noise(300_000, 1))
  const one = await keep('one')
  const savepoint = await space.open()
  space.write('a', 'other\n')
  flipFirst()
  await expect(savepoint.rollback('one')).rejects.toMatchObject({ code: 'store.damaged' })
  await keep('two')
  await space.open()
  expect(kept()).toContain(one.id)
  expect(space.notices.join()).toContain(`${one.id} stays in btrfs, beyond its limit: the store has lost parts of it`)
})

onDisk('so it is with what gc has met, which says in a sentence what it left', async () => {
  space.write('a', noise(300_000, 1))
  const one = await keep('one')
  for (let i = 0; i < 5; i++) space.write(`junk${i}`, noise(300_000, i + 2))
  await keep('junk')
  space.sh('rm junk*; echo other > a')
  await keep('two')
  const savepoint = await space.open()
  await (await space.open({ now: () => Date.now() - 8 * 24 * 3600 * 1000 })).delete(['junk'])
  flipFirst()
  await expect(savepoint.gc()).rejects.toMatchObject({
    code: 'store.damaged',
    message: expect.stringMatching(/^Cannot free all that is not needed: pack \w+\.pack is damaged$/),
    hint: expect.stringContaining('`savepoint verify` tells what is damaged'),
  })
  configure('{retention: {native_max: 1}}')
  await keep('three')
  await space.open()
  expect(kept()).toContain(one.id)
})

test('gc leaves a damaged pack as it is, frees what others have, and does all else', async () => {
  space = new Workspace()
  try {
    const weekAgo = { now: () => Date.now() - 8 * 24 * 3600 * 1000 }
    const savepoint = await space.open(weekAgo)
    space.write('a', noise(100_000, 1))
    space.write('junk', noise(400_000, 2))
    await savepoint.snapshot({ label: 'one' })
    const [first] = inHome('store/packs/*.pack')
    // As a writer beside us holds it: the next one goes to another pack.
    const held = openSync(first!, 'r')
    addon.flock(held, LOCK_EXCLUSIVE)
    space.write('b', noise(200_000, 3))
    space.write('junk', noise(1_000_000, 4))
    await savepoint.snapshot({ label: 'two' })
    closeSync(held)
    space.sh('rm junk')
    await savepoint.snapshot({ label: 'three' })
    await savepoint.delete(['one', 'two'])
    flipIn(first!)
    const sizes = () => new Map(inHome('store/packs/*.pack').map(path => [path, statSync(path).size]))
    const before = sizes()
    const after = await space.open()
    await expect(after.gc()).rejects.toMatchObject({ code: 'store.damaged', data: { pack: basename(first!) } })
    expect([before.size, sizes().size, sizes().get(first!)]).toEqual([2, 2, before.get(first!)])
    const total = (of: Map<string, number>) => [...of.values()].reduce((sum, bytes) => sum + bytes)
    expect(total(before) - total(sizes())).toBeGreaterThan(900_000)
    expect(after.operations().at(-1)!.summary).toMatch(/^gc: 2 snapshots forgotten, [1-9]/)
    expect(after.read('three', 'b').equals(noise(200_000, 3))).toBe(true)
  } finally {
    space.remove()
  }
})

onDisk('a purge finds a changed clone, also where nobody has looked; it is made again from what is there', async () => {
  space.write('large', noise(LARGE, 1))
  space.write('key')
  const one = await keep('one')
  const savepoint = await space.open()
  const [clone] = inHome('store/clones/*')
  flipIn(clone!)
  await expect(savepoint.purge('key')).rejects.toMatchObject({
    message: expect.stringContaining(`the store has lost parts of ${one.id}`),
  })
  expect(kept()).toEqual([one.id])
  // What the last capture saw is not relied on: this one reads it, although it has not changed.
  await savepoint.snapshot({ label: 'two' })
  expect(savepoint.read('one', 'large').equals(noise(LARGE, 1))).toBe(true)
  await savepoint.purge('key')
  expect([kept(), (await savepoint.verify()).problems]).toEqual([[], []])
})

onDisk('an archive stays beyond max_count where a clone was changed', async () => {
  configure('{backend: archive, retention: {max_count: 1}}')
  space.write('large', noise(LARGE, 1))
  const savepoint = await space.open()
  const one = await savepoint.snapshot({ label: 'one' })
  flipIn(inHome('store/clones/*')[0]!)
  space.write('large', 'other\n')
  await savepoint.snapshot({ label: 'two' })
  expect(archivesOf(space)).toHaveLength(2)
  expect(space.notices.join()).toContain(`${one.id} stays in archive, beyond its limit`)
  expect((await savepoint.verify({ repair: true })).problems).toEqual([])
  expect(savepoint.read('one', 'large').equals(noise(LARGE, 1))).toBe(true)
})

test('an unchanged file is stored again by the next snapshot, once somebody has found its content damaged', async () => {
  space = new Workspace()
  try {
    space.write('a', noise(300_000, 1))
    const savepoint = await space.open()
    await savepoint.snapshot({ label: 'one' })
    flipFirst()
    expect((await savepoint.verify()).problems).not.toEqual([])
    await savepoint.snapshot({ label: 'two' })
    const bytes = () => statSync(inHome('store/packs/*.pack')[0]!).size
    expect([(await savepoint.verify()).problems, bytes() > 600_000]).toEqual([[], true])
    // Nothing was repaired, then: that is neither said nor recorded.
    expect(space.notices).toContain('1 damaged place in the packs: nothing that is needed lies there')
    expect((await savepoint.verify()).repaired).toEqual([])
    expect(savepoint.operations().map(({ kind }) => kind)).not.toContain('repair')
    const healed = bytes()
    space.write('b')
    await savepoint.snapshot({ label: 'three' })
    expect(bytes() - healed).toBeLessThan(10_000)
    expect(savepoint.read('one', 'a').equals(noise(300_000, 1))).toBe(true)
  } finally {
    space.remove()
  }
})
