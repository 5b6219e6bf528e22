/** Damage to the store: it is found, named, mended where packs still have the bytes, and never spreads (R11, X4). */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { readFile as readFileLater } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { expectNoLeftovers } from './support/fault-scene.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

let workspace: Workspace
let savepoint: Savepoint
let image: Map<string, string>

beforeEach(async () => {
  workspace = new Workspace()
  savepoint = await workspace.open()
  for (let i = 0; i < 10; i++) workspace.write(`d${i % 3}/f${i}`, noise(100_000, i))
  workspace.write('text', 'text '.repeat(1000))
  await savepoint.snapshot({ label: 'before' })
  // More than a block holds, and the only new content: it lies in a block of its own.
  workspace.write('d1/alone', noise(900_000, 10))
  await savepoint.snapshot({ label: 'one' })
  image = imageOf(workspace.dir)
})
afterEach(() => workspace.remove())

const storeFile = (...names: string[]) => join(workspace.home, 'store', ...names)
const onlyPack = () => storeFile('packs', readdirSync(storeFile('packs'))[0]!)

function flip(file: string, at: number): void {
  const bytes = readFileSync(file)
  bytes[at]! ^= 0x10
  writeFileSync(file, bytes)
}

async function expectRestorable(ref = 'one'): Promise<void> {
  const again = await workspace.open()
  rmSync(workspace.at('d1'), { recursive: true })
  workspace.write('text', 'changed')
  await again.rollback(ref)
  expect(differences(image, imageOf(workspace.dir))).toEqual([])
  expect((await again.verify()).problems).toEqual([])
}

test('a pack that was cut off and repaired: what is appended since is found by the next repair', async () => {
  truncateSync(onlyPack(), readFileSync(onlyPack()).length - 400_000)
  await (await workspace.open()).verify({ repair: true })
  const again = await workspace.open()
  const { root } = await again.snapshot({ label: 'again' })
  workspace.write('more', noise(900_000, 11))
  await again.snapshot({ label: 'more' })
  rmSync(workspace.at('more'))
  expect((await again.verify()).problems).toEqual([])
  expect((await again.verify({ repair: true })).problems).toEqual([])
  rmSync(workspace.at('d1'), { recursive: true })
  await again.rollback('again')
  expect([again.head().root, differences(image, imageOf(workspace.dir))]).toEqual([root, []])
})

test('a block whose length is damaged: a repair finds all that come after it', async () => {
  const file = onlyPack()
  const bytes = readFileSync(file)
  // How long the payload of the first block is; the others are whole.
  const at = bytes.indexOf('BLK1') + 8
  bytes.writeUInt32LE(bytes.readUInt32LE(at) + 300_000, at)
  writeFileSync(file, bytes)
  const { problems } = await (await workspace.open()).verify()
  expect(problems.filter(({ what }) => what.startsWith('pack '))).toHaveLength(1)
})

test('a pack that is missing: coverage does not say that a snapshot has what was in it', async () => {
  const [before] = readdirSync(storeFile('packs'))
  rmSync(storeFile('packs', before!))
  const notices: string[] = []
  const again = await workspace.open({ onNotice: notice => notices.push(notice) })
  const found = await again.coverages(['text', 'd1', '.'])
  expect(found.map(({ covered, current, latest }) => [covered, current, latest])).toEqual(
    found.map(() => [true, false, undefined]),
  )
  expect(notices).toEqual([expect.stringMatching(/^the store is damaged/)])
  await again.snapshot()
  expect((await again.coverages(['text', '.'])).map(({ current }) => current)).toEqual([true, true])
})

describe('coverage', () => {
  const answers = async (...paths: string[]) => {
    const notices: string[] = []
    const again = await workspace.open({ onNotice: notice => notices.push(notice) })
    const found = await again.coverages(paths)
    again.close()
    return { current: found.map(({ current }) => current), versions: found.map(({ versions }) => versions), notices }
  }

  test('of a block that is damaged: answers, and counts only what can be brought back', async () => {
    savepoint.close()
    // The first block: contents and, behind them, trees of the first snapshot.
    for (let at = 100; at < 1_000_000; at += 20_000) flip(onlyPack(), at)
    const { current, versions, notices } = await answers('.', 'text', 'd1/alone', 'd0')
    expect(current).toEqual([false, false, true, false])
    expect(versions).toEqual([0, 0, 1, 0])
    expect(notices).toEqual([expect.stringMatching(/^the store is damaged/)])
  })

  test.each([
    ['a file', 'd1/alone', 900_000],
    ['a chunk of a large file', 'large', 3_000_000],
  ])(
    'between a repair and the snapshot after it: what was lost of %s is in none, and is stored again',
    async (_, name, size) => {
      workspace.write(name, noise(size, 99))
      const { length } = readFileSync(onlyPack())
      await savepoint.snapshot({ label: 'two' })
      savepoint.close()
      flip(onlyPack(), length + Math.floor(size / 2))
      const again = await workspace.open()
      expect((await again.verify({ repair: true })).problems).not.toEqual([])
      for (let i = 0; i < 2; i++) {
        expect(await answers('.', name, 'text')).toMatchObject({ current: [false, false, true] })
        await again.status()
      }
      await again.snapshot()
      expect((await again.verify()).problems).toEqual([])
      again.close()
      expect(await answers('.', name, 'text')).toMatchObject({ current: [true, true, true], notices: [] })
    },
  )

  test('after a repair while a run goes on: the run stores again what was lost', async () => {
    const { length } = readFileSync(onlyPack())
    workspace.sh('mkfifo ready go', workspace.base)
    // Before each of these `rm` it takes a snapshot, from what it has seen before.
    const once = (text: string) => `echo ${text} > text; mkdir some; rm -rf some`
    const script = `${once('a')}; echo > ../ready; read line < ../go; ${once('b')}`
    const running = savepoint.run({ command: ['sh', '-c', script] })
    await readFileLater(join(workspace.base, 'ready'))
    flip(onlyPack(), length - 450_000)
    const again = await workspace.open()
    expect((await again.verify({ repair: true })).problems).not.toEqual([])
    workspace.sh('echo > go', workspace.base)
    await running
    expect((await again.verify()).problems).toEqual([])
    expect(await again.coverage('.')).toMatchObject({ current: true })
  })

  test('without an index: nothing is in a snapshot', async () => {
    savepoint.close()
    for (const name of readdirSync(storeFile())) if (name.startsWith('index')) rmSync(storeFile(name))
    expect(await answers('.', 'text')).toMatchObject({ current: [false, false] })
  })
})

describe('the index', () => {
  test('that was deleted: verify says so and breaks nothing, --repair makes it anew', async () => {
    savepoint.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(storeFile(`index.sqlite${suffix}`), { force: true })
    const again = await workspace.open()
    const { problems } = await again.verify()
    expect(problems.map(problem => problem.what).join()).toMatch(/index does not find \d+ intact objects.*--repair/)
    await expect(again.gc()).rejects.toMatchObject({ code: 'store.damaged' })
    const { repaired, problems: left } = await again.verify({ repair: true })
    expect([repaired.length, left]).toEqual([1, []])
    await expectRestorable()
  })

  test.each(['garbage all over', ''])(
    'that holds %j: a clear error; repair makes it anew and leaves nothing of the old one',
    async content => {
      savepoint.close()
      for (const suffix of ['-wal', '-shm']) rmSync(storeFile(`index.sqlite${suffix}`), { force: true })
      writeFileSync(storeFile('index.sqlite'), content.repeat(1000))
      if (content !== '') {
        await expect(workspace.open()).rejects.toMatchObject({
          code: 'store.damaged',
          hint: expect.stringMatching(/verify --repair/),
        })
      }
      const again = await workspace.open({ repair: true })
      expect((await again.verify({ repair: true })).problems).toEqual([])
      expect(readdirSync(storeFile()).filter(name => name.includes('damaged'))).toEqual([])
      await expectRestorable()
    },
  )

  test('that cannot be opened, beside a pack that is damaged, too: it is kept, and said where', async () => {
    savepoint.close()
    writeFileSync(storeFile('index.sqlite'), 'garbage all over'.repeat(1000))
    writeFileSync(onlyPack(), noise(200_000, 99))
    const again = await workspace.open({ repair: true })
    expect((await again.verify({ repair: true })).problems).not.toEqual([])
    expect(existsSync(storeFile('index.sqlite.damaged'))).toBe(true)
    expect(workspace.notices.join()).toContain(`kept as ${storeFile('index.sqlite.damaged')}`)
  })

  test('that lost some rows only: verify notices, --repair mends', async () => {
    savepoint.close()
    const database = new DatabaseSync(storeFile('index.sqlite'))
    database.exec('DELETE FROM objects WHERE length = 100000')
    database.close()
    const again = await workspace.open()
    expect((await again.verify()).problems).toHaveLength(1)
    await again.verify({ repair: true })
    await expectRestorable()
  })

  const wrongRows = {
    'another object of the same size': `UPDATE objects SET offset = (offset + 100000) % 500000 WHERE length = 100000`,
    'another block': `UPDATE objects SET block = (SELECT max(block) FROM objects), offset = 0 WHERE length = 100000`,
    'a place inside the object': 'UPDATE objects SET offset = offset + 1 WHERE length = 100000',
    'fewer bytes': 'UPDATE objects SET length = length - 1 WHERE length = 100000',
    'a chunk of a large file that is another': `UPDATE objects SET (pack, block, offset) = (
      SELECT pack, block, offset FROM objects WHERE length > 400000 ORDER BY offset, block LIMIT 1) WHERE length > 400000`,
  }
  test.each(Object.entries(wrongRows))(
    'whose rows point to %s: no wrong byte leaves the store, --repair mends',
    async (what, sql) => {
      workspace.write('large', noise(3_000_000, 11))
      await savepoint.snapshot({ label: 'with a large one' })
      image = imageOf(workspace.dir)
      workspace.write('large', noise(3_000_000, 12))
      for (let i = 0; i < 10; i++) workspace.write(`d${i % 3}/f${i}`, `${i}`)
      await savepoint.snapshot({ label: 'two' })
      savepoint.close()
      const database = new DatabaseSync(storeFile('index.sqlite'))
      database.exec(sql)
      database.close()
      const again = await workspace.open()
      const damage = { code: 'store.damaged', hint: expect.stringContaining('verify --repair') }
      const path = what.includes('chunk') ? 'large' : 'd1/f1'
      expect(() => again.read('with a large one', path)).toThrow(expect.objectContaining(damage))
      const { changes, content } = await again.diff({ from: 'with a large one', to: 'two' })
      const change = changes.find(change => change.path === path)!
      expect(() => content(change, 'before')).toThrow(expect.objectContaining(damage))
      const before = imageOf(workspace.dir)
      await expect(again.rollback('with a large one')).rejects.toMatchObject({ code: 'store.damaged' })
      await expect(again.exportSnapshot('with a large one', join(workspace.base, 'out.tar'))).rejects.toMatchObject(
        damage,
      )
      expect(differences(before, imageOf(workspace.dir))).toEqual([])
      expectNoLeftovers(workspace)
      const { problems } = await again.verify()
      expect(problems.map(problem => problem.what).join()).toMatch(
        /index has \d+ rows that point to the wrong bytes.*--repair/,
      )
      await again.verify({ repair: true })
      await expectRestorable('with a large one')
    },
  )

  test('whose rows point elsewhere, found by a worker thread of the restore: the same error', async () => {
    for (let i = 0; i < 10; i++) workspace.write(`many/f${i}`, noise(600_000, 20 + i))
    await savepoint.snapshot({ label: 'many' })
    savepoint.close()
    const database = new DatabaseSync(storeFile('index.sqlite'))
    database.exec('UPDATE objects SET length = length - 1 WHERE length = 600000')
    database.close()
    const again = await workspace.open()
    workspace.sh('rm -r many')
    await expect(again.rollback('many')).rejects.toMatchObject({
      code: 'store.damaged',
      hint: expect.stringContaining('verify --repair'),
    })
    expectNoLeftovers(workspace)
  })

  const blindRows = {
    'are gone': 'DELETE FROM objects WHERE length = 100000',
    'are gone for the recipe of a large file': 'DELETE FROM objects WHERE kind = 1',
    'say that a recipe is data': 'UPDATE objects SET kind = 0 WHERE kind = 1',
    'name the recipe of another file': `UPDATE objects SET (pack, block, offset, length) = (
      SELECT pack, block, offset, length FROM objects WHERE kind = 1 ORDER BY id LIMIT 1) WHERE kind = 1`,
    'and packs are gone': 'DELETE FROM objects WHERE length = 100000; DELETE FROM packs WHERE id = 1',
    'have lost their pack': 'DELETE FROM packs WHERE id = 1',
    'speak of a pack without bytes': 'UPDATE packs SET bytes = 0 WHERE id = 1',
    'speak of a pack with fewer bytes': 'UPDATE packs SET bytes = bytes - 1 WHERE id = 1',
  }
  test.each(Object.entries(blindRows))('whose rows %s: gc deletes nothing that --repair finds', async (_, sql) => {
    workspace.write('large', noise(3_000_000, 11))
    workspace.write('larger', noise(4_000_000, 12))
    await savepoint.snapshot({ label: 'with large ones' })
    image = imageOf(workspace.dir)
    workspace.write('dead', noise(5_000_000, 13))
    const dead = await savepoint.snapshot()
    workspace.sh('rm dead')
    await savepoint.snapshot()
    await savepoint.delete([dead.id])
    savepoint.close()
    const database = new DatabaseSync(storeFile('index.sqlite'))
    database.exec(sql)
    database.close()
    const later = await workspace.open({ now: () => Date.now() + 30 * 86_400_000 })
    const damage = { code: 'store.damaged', hint: expect.stringContaining('verify --repair') }
    await expect(later.gc()).rejects.toMatchObject(damage)
    await later.verify({ repair: true })
    await later.gc()
    await expectRestorable('with large ones')
  })

  test('whose rows point elsewhere: gc rewrites nothing with them', async () => {
    workspace.write('garbage', noise(3_000_000, 11))
    await savepoint.snapshot({ label: 'big' })
    workspace.sh('rm garbage')
    await savepoint.snapshot()
    await savepoint.delete(['big'])
    savepoint.close()
    const database = new DatabaseSync(storeFile('index.sqlite'))
    database.exec(wrongRows['another object of the same size'])
    database.close()
    const later = await workspace.open({ now: () => Date.now() + 30 * 86_400_000 })
    await expect(later.gc()).rejects.toMatchObject({ code: 'store.damaged' })
    await later.verify({ repair: true })
    await expectRestorable()
  })
})

describe('a pack', () => {
  test('with one flipped bit: verify names the paths, rollback refuses before its first write, the rest is restorable', async () => {
    const bytes = readFileSync(onlyPack())
    const at = bytes.indexOf(noise(900_000, 10).subarray(5_000, 5_100))
    expect(at).toBeGreaterThan(0)
    flip(onlyPack(), at)
    const again = await workspace.open()
    const { problems } = await again.verify()
    const damaged = problems.find(problem => problem.snapshots.length > 0)!
    expect(damaged.snapshots).toEqual([again.find('one').id])
    expect(damaged.paths).toEqual(['d1/alone'])
    rmSync(workspace.at('d1'), { recursive: true })
    workspace.write('text', 'changed')
    const before = imageOf(workspace.dir)
    await expect(again.rollback('one')).rejects.toMatchObject({
      code: 'store.damaged',
      message: expect.stringContaining('d1/alone'),
    })
    expect(differences(before, imageOf(workspace.dir))).toEqual([])
    expectNoLeftovers(workspace)
    // Not a word of it afterwards, and the next snapshot stores again what is there.
    const next = await workspace.open()
    expect(workspace.notices).toEqual([])
    await next.snapshot({ label: 'two' })
    await next.rollback('one', { paths: ['d1/f1', 'text'] })
    expect(imageOf(workspace.dir).get('d1/f1')).toBe(image.get('d1/f1'))
  })

  test('that is damaged, after --repair: what is still on disk is stored again by the next snapshot', async () => {
    flip(onlyPack(), readFileSync(onlyPack()).indexOf(noise(900_000, 10).subarray(5_000, 5_100)))
    const again = await workspace.open()
    await again.verify({ repair: true })
    await again.snapshot({ label: 'mended' })
    expect(again.read('mended', 'd1/alone').equals(noise(900_000, 10))).toBe(true)
    expect((await again.verify()).problems.flatMap(problem => problem.snapshots)).not.toContain(again.find('mended').id)
    rmSync(workspace.at('d1'), { recursive: true })
    await again.rollback('mended')
    expect(differences(image, imageOf(workspace.dir))).toEqual([])
  })

  /** Breaks the block in which the object lies. */
  function breakBlockOf(id: string): void {
    const database = new DatabaseSync(storeFile('index.sqlite'))
    const row = database.prepare('SELECT block FROM objects WHERE id = ?').get(Buffer.from(id, 'latin1'))
    database.close()
    flip(onlyPack(), (row!.block as number) + 60)
  }

  test.each(['nothing', 'something'])(
    'that lost the lists of the newest snapshot, and %s changed since: older ones are rolled back to, and that is undone',
    async since => {
      const before = imageOf(workspace.dir)
      workspace.write('text', 'newest')
      const newest = await savepoint.snapshot({ label: 'newest' })
      savepoint.close()
      breakBlockOf(newest.root)
      if (since === 'something') workspace.write('d2/fresh', 'new')
      const live = imageOf(workspace.dir)
      const again = await workspace.open()
      const problem = (await again.verify()).problems.find(problem => problem.snapshots.includes(newest.id))!
      expect(problem.what).toMatch(/has lost everything: the list of what was in the target is damaged/)
      expect((await again.rollback('one', { dryRun: true })).files.replaced).toBe(1)
      await again.rollback('one')
      expect(differences(before, imageOf(workspace.dir))).toEqual([])
      await again.undo()
      expect(differences(live, imageOf(workspace.dir))).toEqual([])
      // What the live files still had is stored again.
      const lost = (await again.verify()).problems.flatMap(problem => problem.snapshots)
      expect(lost).toEqual(since === 'nothing' ? [] : [newest.id])
      expectNoLeftovers(workspace)
    },
  )

  test('that lost the list of one directory: verify says that all below is gone', async () => {
    workspace.write('d2/deep/file', noise(1000, 12))
    const { root } = await savepoint.snapshot({ label: 'deep' })
    workspace.write('text', 'other')
    const { id } = await savepoint.snapshot({ label: 'other' })
    savepoint.close()
    breakBlockOf(root)
    const { problems } = await (await workspace.open()).verify()
    expect(problems.filter(problem => problem.snapshots.includes(id))).toEqual([
      { what: `${id} has lost 1 path (1 directory with everything below)`, snapshots: [id], paths: ['d2/'] },
    ])
  })

  test('that is cut off: verify says so; what lies before the cut is mended by --repair', async () => {
    const size = readFileSync(onlyPack()).length
    truncateSync(onlyPack(), size - 10)
    const again = await workspace.open()
    expect((await again.verify()).problems.map(problem => problem.what).join()).toMatch(/cut off/)
    const { problems, objects } = await again.verify({ repair: true })
    expect(objects).toBeGreaterThan(0)
    expect(problems.some(problem => problem.snapshots.length === 1)).toBe(true)
  })

  test('that is missing: verify and rollback name it, other timelines work', async () => {
    const second = join(workspace.base, 'user')
    const other = await workspace.open({ cwd: second, force: true })
    rmSync(onlyPack())
    const again = await workspace.open()
    const { problems } = await again.verify()
    expect(problems.map(problem => problem.what).join()).toMatch(/pack .* is missing/)
    await expect(again.rollback('one')).rejects.toMatchObject({ code: 'store.damaged' })
    writeFileSync(join(second, 'mine'), 'fine')
    await other.snapshot({ label: 'fine' })
    expect(other.read('fine', 'mine').toString()).toBe('fine')
  })

  test('that is garbage, or is no pack at all: verify reports and does not crash (X4)', async () => {
    writeFileSync(onlyPack(), noise(200_000, 99))
    writeFileSync(storeFile('packs', 'stray.pack'), Buffer.concat([Buffer.from('SVPTPACK'), noise(5_000, 98)]))
    const { problems } = await (await workspace.open()).verify()
    expect(problems.map(problem => problem.what).join()).toMatch(/damaged header/)
    expect(problems.some(problem => problem.snapshots.length > 0)).toBe(true)
  })
})

test('a timeline that is garbage: its hint tells the truth about the others', async () => {
  savepoint.close()
  for (const suffix of ['-wal', '-shm', ''])
    writeFileSync(
      join(workspace.home, 'timelines', savepoint.timeline, `timeline.sqlite${suffix}`),
      'garbage'.repeat(1000),
    )
  const hint = expect.stringMatching(/Other directories can be protected and restored.*`gc`, `verify` and `purge` need/)
  await expect(workspace.open()).rejects.toMatchObject({ code: 'store.damaged', hint })
  const elsewhere = join(workspace.base, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'mine'), 'one')
  const other = await workspace.open({ cwd: elsewhere })
  await other.snapshot({ label: 'fine' })
  writeFileSync(join(elsewhere, 'mine'), 'two')
  await other.rollback('fine')
  expect(readFileSync(join(elsewhere, 'mine'), 'utf8')).toBe('one')
  await expect(other.verify()).rejects.toMatchObject({ code: 'store.damaged', hint })
  await expect(other.gc()).rejects.toMatchObject({ code: 'store.damaged', hint })
  await expect(other.purge('mine')).rejects.toMatchObject({ code: 'store.damaged', hint })
})

describe('a timeline that is damaged, after --repair', () => {
  const directory = () => join(workspace.home, 'timelines', savepoint.timeline)
  const file = () => join(directory(), 'timeline.sqlite')
  // By its rows alone; what the log brings back is told in lost-timeline.test.ts.
  const loseLog = () => rmSync(join(directory(), 'snapshots.log'), { force: true })

  /** Says what the log shows, and that nothing is freed as long as the damaged file is there. */
  async function repaired(damaged: Buffer): Promise<string[]> {
    loseLog()
    const again = await workspace.open({ repair: true })
    expect((await again.verify({ repair: true })).problems).toEqual([])
    expect(workspace.notices.join()).toMatch(/timeline\.sqlite was damaged: \d+ snapshots? could be read.*kept as/)
    const aside = `${file()}.damaged`
    expect(readFileSync(aside).equals(damaged)).toBe(true)
    const guarded = { code: 'store.damaged', hint: expect.stringContaining(`delete ${aside}`) }
    await expect(again.gc()).rejects.toMatchObject(guarded)
    await expect(again.purge('text')).rejects.toMatchObject(guarded)
    // What was found in the packs alone is told in lost-timeline.test.ts.
    const labels = again.snapshots().map(snapshot => snapshot.label!)
    again.close()
    rmSync(aside)
    return labels.filter(label => !label?.startsWith('salvaged-'))
  }

  test('garbage: a new one begins, the store is kept', async () => {
    savepoint.close()
    for (const suffix of ['-wal', '-shm']) rmSync(file() + suffix, { force: true })
    const damaged = Buffer.from('garbage'.repeat(1000))
    writeFileSync(file(), damaged)
    expect(await repaired(damaged)).toEqual([])
    const again = await workspace.open()
    const bytes = (await again.status()).storeBytes
    const { label } = await again.snapshot({ label: 'begun' })
    expect([label, again.head().label]).toEqual(['begun', 'begun'])
    expect((await again.status()).storeBytes).toBeLessThan(bytes + 10_000)
  })

  test('any page of zeros: the snapshots on other pages are there, and can be gone back to', async () => {
    for (let i = 0; i < 60; i++) {
      workspace.write('text', `${i}`)
      await savepoint.snapshot({ label: `s${i}` })
    }
    const labels = savepoint.snapshots().map(snapshot => snapshot.label!)
    savepoint.close()
    const sound = readFileSync(file())
    const counts: number[] = []
    for (let page = 0; page < sound.length / 4096; page++) {
      const damaged = Buffer.from(sound).fill(0, page * 4096, (page + 1) * 4096)
      writeFileSync(file(), damaged)
      const found = await repaired(damaged)
      counts.push(found.length)
      expect(found.every(label => labels.includes(label))).toBe(true)
      if (!found.includes('s10')) continue
      const again = await workspace.open()
      await again.rollback('s10')
      expect(workspace.read('text')).toBe('10')
      again.close()
    }
    // All, but for the page that leads to their rows, and the pages of the rows, each of which takes its own only.
    const [root, ...leaves] = counts.filter(count => count < labels.length)
    expect(root).toBe(0)
    expect(leaves.length).toBeGreaterThan(1)
    expect(leaves.reduce((sum, count) => sum + count)).toBe((leaves.length - 1) * labels.length)
  })

  test('of another directory: any verify --repair mends it, and gc then frees nothing of what was found', async () => {
    savepoint.close()
    const sound = readFileSync(file())
    const damaged = Buffer.from(sound).fill(0, 4096)
    writeFileSync(file(), damaged)
    loseLog()
    const other = new Workspace()
    try {
      const elsewhere = await other.open({ home: workspace.home })
      await elsewhere.verify({ repair: true })
      expect(other.notices.join()).toMatch(/was damaged: 0 snapshots could be read/)
      await expect(elsewhere.gc()).rejects.toMatchObject({ code: 'store.damaged' })
      rmSync(`${file()}.damaged`)
      expect((await elsewhere.gc()).freedBytes).toBe(0)
      expect((await workspace.open()).snapshots().length).toBeGreaterThan(0)
    } finally {
      other.remove()
    }
  })
})

describe('a timeline whose database is gone', () => {
  const directory = () => join(workspace.home, 'timelines', savepoint.timeline)
  const file = () => join(directory(), 'timeline.sqlite')
  const lose = (empty: boolean) => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file() + suffix, { force: true })
    rmSync(join(directory(), 'snapshots.log'))
    if (empty) writeFileSync(file(), '')
  }
  const said = (what: string) => ({
    code: 'store.damaged',
    message: expect.stringContaining(`timeline.sqlite is ${what}`),
    hint: expect.stringContaining('verify --repair'),
  })

  test.each([
    ['missing', false],
    ['empty', true],
  ])('%s: no empty history in its place; repair begins a new one, and nothing is freed', async (what, empty) => {
    savepoint.close()
    lose(empty)
    const other = new Workspace()
    try {
      await expect(workspace.open()).rejects.toMatchObject(said(what))
      const elsewhere = await other.open({ home: workspace.home })
      for (const verb of [elsewhere.gc, elsewhere.verify, () => elsewhere.purge('x')])
        await expect(verb()).rejects.toMatchObject(said(what))
      expect(existsSync(file())).toBe(empty)
      const again = await workspace.open({ repair: true })
      expect(workspace.notices.join()).toMatch(
        `timeline.sqlite was ${what}, and snapshots.log tells of no snapshot: its tags, runs and operations are lost`,
      )
      const { storeBytes } = await again.status()
      await expect(again.gc()).rejects.toMatchObject({ hint: expect.stringContaining(`delete ${file()}.damaged`) })
      await expect(elsewhere.gc()).rejects.toMatchObject({ code: 'store.damaged' })
      expect((await again.verify({ repair: true })).problems).toEqual([])
      await again.snapshot({ label: 'begun' })
      expect((await again.status()).storeBytes).toBeLessThan(storeBytes + 10_000)
      rmSync(`${file()}.damaged`)
      await again.gc()
      again.close()
      await expectRestorable('begun')
    } finally {
      other.remove()
    }
  })

  test('also where the stat cache is gone with it', async () => {
    savepoint.close()
    lose(false)
    rmSync(join(directory(), 'statcache'))
    await expect(workspace.open()).rejects.toMatchObject(said('missing'))
  })

  test('one of another directory is mended by any verify --repair', async () => {
    savepoint.close()
    lose(false)
    const other = new Workspace()
    try {
      const elsewhere = await other.open({ home: workspace.home })
      expect((await elsewhere.verify({ repair: true })).problems).toEqual([])
      expect(other.notices.join()).toContain('timeline.sqlite was missing')
      await expect(elsewhere.gc()).rejects.toMatchObject({ code: 'store.damaged' })
    } finally {
      other.remove()
    }
  })

  test('a target whose making was interrupted has lost nothing', async () => {
    const id = '0123456789abcdef'
    mkdirSync(join(workspace.home, 'timelines', id))
    writeFileSync(join(workspace.home, 'timelines', id, 'timeline.sqlite'), '')
    await savepoint.gc()
  })
})

describe('what can be made anew', () => {
  test('the stat cache: damaged in any way it is ignored, and the next snapshot is right', async () => {
    const cache = join(workspace.home, 'timelines', savepoint.timeline, 'statcache')
    const good = readFileSync(cache)
    const { root } = savepoint.find('one')
    const damages = [Buffer.alloc(0), Buffer.from('nonsense'), good.subarray(0, good.length / 2), noise(good.length, 3)]
    for (let i = 0; i < 8; i++) {
      const flipped = Buffer.from(good)
      flipped[Math.floor((good.length * i) / 8)]! ^= 1
      damages.push(flipped)
    }
    for (const damage of damages) {
      writeFileSync(cache, damage)
      expect((await savepoint.snapshot()).root).toBe(root)
    }
  })

  test('the remembered answers of git', async () => {
    workspace.sh('git init -q . && git add -A')
    const { root } = await savepoint.snapshot()
    writeFileSync(join(workspace.home, 'timelines', savepoint.timeline, 'git-facts.json'), '{"half": [')
    expect((await savepoint.snapshot()).root).toBe(root)
  })
})

describe('format.json', () => {
  test('that is damaged: --repair leaves the index alone, and says nothing of it', async () => {
    savepoint.close()
    writeFileSync(storeFile('format.json'), 'x')
    const files = readdirSync(storeFile())
    await expect(workspace.open({ repair: true })).rejects.toMatchObject({ code: 'store.damaged' })
    expect([readdirSync(storeFile()), workspace.notices]).toEqual([files, []])
    writeFileSync(storeFile('format.json'), '{"format":1}')
    await expectRestorable()
  })

  test('of the future is refused, and nothing is touched', async () => {
    writeFileSync(storeFile('format.json'), '{"format": 2}')
    await expect(workspace.open()).rejects.toMatchObject({ code: 'store.format', exitCode: 14 })
    expect(readFileSync(storeFile('format.json'), 'utf8')).toBe('{"format": 2}')
  })

  test.each([
    ['', /JSON/],
    ['{', /JSON/],
    ['null', /it does not say which format the store has$/],
    ['[]', /it does not say which format the store has$/],
    ['{}', /it does not say which format the store has$/],
  ])('with %j is a clear error with a way out', async (content, message) => {
    writeFileSync(storeFile('format.json'), content)
    await expect(workspace.open()).rejects.toMatchObject({
      code: 'store.damaged',
      message: expect.stringMatching(message),
      hint: expect.stringContaining('{"format":1}'),
    })
  })
})

test('a leftover of an interrupted clone probe does not stop gc', async () => {
  mkdirSync(storeFile('clones', 'tmp-probe-abcdef'))
  writeFileSync(storeFile('clones', 'tmp-probe-abcdef', 'a'), 'x')
  writeFileSync(storeFile('clones', 'tmp-1-0-0'), 'x')
  await savepoint.gc()
  expect(readdirSync(storeFile('clones'))).toEqual([])
})

describe('any page of a database that turns into zeros', () => {
  const PAGE_BYTES = 4096

  /** Damages one page after the other. Everything is closed meanwhile, so that nothing is left in a log. */
  async function forEachPage(file: string, work: (page: number) => Promise<void>): Promise<void> {
    const sound = readFileSync(file)
    for (let page = 0; page < sound.length / PAGE_BYTES; page++) {
      writeFileSync(file, Buffer.from(sound).fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES))
      await work(page)
    }
    writeFileSync(file, sound)
  }

  /** What a verb comes to; whatever is no error of ours is thrown. */
  async function outcome<T>(work: (opened: Savepoint) => Promise<T> | T): Promise<T | 'store.damaged'> {
    let opened: Savepoint | undefined
    try {
      opened = await workspace.open()
      return await work(opened)
    } catch (error) {
      expect(error).toMatchObject({ code: 'store.damaged', hint: expect.stringMatching(/verify --repair|backup/) })
      return 'store.damaged'
    } finally {
      opened?.close()
    }
  }

  const isReported = async () => (await outcome(async opened => (await opened.verify()).problems)).length > 0

  test('the index: no verb calls it a defect, verify reports it, --repair mends it', async () => {
    for (let i = 0; i < 200; i++) workspace.write(`many/${i}`)
    await savepoint.snapshot({ label: 'many' })
    savepoint.close()
    await forEachPage(storeFile('index.sqlite'), async page => {
      await outcome(opened => opened.status())
      await outcome(opened => opened.rollback('before', { dryRun: true }))
      expect([page, await isReported()]).toEqual([page, true])
      const repairing = await workspace.open({ repair: true })
      expect((await repairing.verify({ repair: true })).problems).toEqual([])
      repairing.close()
      expect(await outcome(opened => opened.read('many', 'many/7').toString())).toBe('many/7\n')
      expect(await outcome(async opened => (await opened.verify()).problems)).toEqual([])
    })
  })

  test('a timeline: no verb calls it a defect, verify reports it', async () => {
    for (let i = 0; i < 30; i++) await savepoint.tag(`tag-${i}`, 'one')
    savepoint.close()
    const file = join(workspace.home, 'timelines', savepoint.timeline, 'timeline.sqlite')
    await forEachPage(file, async page => {
      await outcome(opened => opened.log())
      await outcome(opened => opened.operations())
      await outcome(opened => opened.rollback('before', { dryRun: true }))
      expect([page, await isReported()]).toEqual([page, true])
    })
  })
})
