/** A database that is lost or damaged beyond reading: `verify --repair` finds its snapshots in snapshots.log, and nothing that was to go. */
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { TimelineDb } from '../src/timeline/timeline-db.ts'
import { Workspace } from './support/workspace.ts'

const DAY_MS = 86_400_000

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  savepoint = await space.open()
  for (const version of ['one', 'two', 'three']) await take(version)
})
afterEach(() => space.remove())

async function take(version: string): Promise<void> {
  space.write('f', version)
  space.write('secret', `secret of ${version}`)
  await savepoint.snapshot({ label: version })
}

const directory = () => join(space.home, 'timelines', savepoint.timeline)
const file = () => join(directory(), 'timeline.sqlite')
const log = () => join(directory(), 'snapshots.log')

function lose(): void {
  savepoint.close()
  for (const suffix of ['', '-wal', '-shm']) rmSync(file() + suffix, { force: true })
}

async function repair(): Promise<Savepoint> {
  savepoint = await space.open({ repair: true })
  const { problems } = await savepoint.verify({ repair: true })
  expect(problems).toEqual([])
  return savepoint
}

const shown = () => savepoint.snapshots().map(({ run, command, skipped, ...rest }) => rest)
const labels = () => savepoint.snapshots().map(({ label }) => label)

describe.each([
  ['gone', lose],
  [
    'garbage',
    () => {
      lose()
      writeFileSync(file(), 'garbage'.repeat(1000))
    },
  ],
  [
    'without its rows',
    () => {
      savepoint.close()
      truncateSync(file(), 4096)
      rmSync(`${file()}-wal`, { force: true })
    },
  ],
])('the database is %s', (_, ruin) => {
  it('snapshots, tags and HEAD are there again, as they were, and can be gone back to', async () => {
    savepoint.tag('v1', 'one')
    savepoint.tag('gone', 'one')
    savepoint.deleteTag('gone')
    await savepoint.rollback('two')
    await savepoint.delete(['three'])
    const [before, head, tags] = [shown(), savepoint.head().id, savepoint.tags()]
    ruin()
    await repair()
    expect(space.notices.join()).toContain('snapshots.log')
    expect([shown(), savepoint.head().id, savepoint.tags()]).toEqual([before, head, tags])
    await savepoint.rollback('v1')
    expect(space.read('f')).toBe('one')
    await savepoint.undo()
    expect(space.read('f')).toBe('two')
    // Nothing is freed as long as it is not said that this is all.
    await expect(savepoint.gc()).rejects.toMatchObject({ code: 'store.damaged' })
    rmSync(`${file()}.damaged`)
    await savepoint.gc()
    expect(shown().slice(0, 2)).toEqual(before.slice(0, 2))
  })
})

it('what a purge took away does not come back', async () => {
  await savepoint.purge('secret')
  lose()
  await repair()
  expect(labels()).toEqual(['one', 'two', 'three'])
  expect(() => savepoint.read('one', 'secret')).toThrow()
  expect(savepoint.read('one', 'f').toString()).toBe('one')
  await savepoint.rollback('one')
  expect([space.read('f'), space.read('secret')]).toEqual(['one', 'secret of three'])
})

it('nor what gc has forgotten; what is deleted stays so, and undo is not needed to see that', async () => {
  await savepoint.delete(['one'])
  savepoint.close()
  savepoint = await space.open({ now: () => Date.now() + 8 * DAY_MS })
  await savepoint.gc()
  await savepoint.delete(['two'])
  expect(readFileSync(log(), 'utf8')).not.toContain('"one"')
  lose()
  await repair()
  expect(labels()).toEqual(['three'])
  expect((await savepoint.verify()).deleted).toBe(1)
})

it('no arguments of commands stand in it, and nobody else can read it', async () => {
  await savepoint.run({ command: ['sh', '-c', 'echo four > f # a private remark'] })
  expect(readFileSync(log(), 'utf8')).not.toContain('private remark')
  expect(statSync(log()).mode & 0o777).toBe(0o600)
})

it('lines that are cut off or make no sense cost no others', async () => {
  appendFileSync(log(), '{"snapshot":{"seq":9,"id":"snap_')
  await take('four')
  appendFileSync(
    log(),
    '\n[]\nnull\n{"tag":"x","on":"snap_unknown0"}\n{"snapshot":{"id":"snap_00000000","root":"zz"}}\n',
  )
  lose()
  await repair()
  expect(labels()).toEqual(['one', 'two', 'three', 'four'])
  expect(savepoint.tags().size).toBe(0)
})

it('what lines told of that are damaged, or never reached the disk, is found in the packs', async () => {
  const [one, two] = readFileSync(log(), 'utf8')
    .split('\n')
    .filter(line => line.startsWith('{"snapshot"'))
  writeFileSync(log(), `${one}\n{{${two}\n`)
  lose()
  await repair()
  expect(labels()).toEqual(['one', 'salvaged-1', 'salvaged-2'])
  expect(['one', 'salvaged-1', 'salvaged-2'].map(name => savepoint.read(name, 'f').toString())).toEqual([
    'one',
    'two',
    'three',
  ])
  // With nothing in it, as after a power cut, it is as if it were not there.
  writeFileSync(log(), '')
  lose()
  await repair()
  expect(labels()).toEqual([1, 2, 3].map(number => `salvaged-${number}`))
})

it('a timeline of before it had one gets it with the next snapshot', async () => {
  rmSync(log())
  await take('four')
  lose()
  await repair()
  expect(labels()).toEqual(['one', 'two', 'three', 'four'])
})

it('where it cannot be written, snapshots are taken all the same, and the next one makes it whole', async () => {
  rmSync(log())
  mkdirSync(log())
  await take('four')
  rmdirSync(log())
  await take('five')
  lose()
  await repair()
  expect(labels()).toEqual(['one', 'two', 'three', 'four', 'five'])
})

it('a transaction that fails leaves no line', () => {
  savepoint.close()
  const db = new TimelineDb(file())
  const before = readFileSync(log(), 'utf8')
  const [snapshot] = db.snapshots()
  const failing = () => {
    db.addSnapshot({ ...snapshot!, label: 'never' })
    throw new Error('no')
  }
  expect(() => db.transaction(failing)).toThrow('no')
  db.setTag('later', snapshot!.id, 0)
  db.close()
  expect(readFileSync(log(), 'utf8')).toBe(`${before}\n{"tag":"later","on":"${snapshot!.id}"}\n`)
})

describe.each([
  [
    'its -wal was lost',
    async () => {
      const withoutWal = readFileSync(file())
      return () => writeFileSync(file(), withoutWal)
    },
  ],
  [
    'an older copy was put back',
    async () => {
      savepoint.close()
      const older = readFileSync(file())
      savepoint = await space.open()
      for (const version of ['four', 'five']) await take(version)
      return () => writeFileSync(file(), older)
    },
  ],
])('the database is older than the log, because %s', (_, prepare) => {
  let [known, tags, head]: [ReturnType<typeof shown>, ReadonlyMap<string, string>, string] = [[], new Map(), '']

  beforeEach(async () => {
    const putBack = await prepare()
    savepoint.tag('v1', labels().at(-1)!)
    await savepoint.rollback(labels().at(-1)!)
    ;[known, tags, head] = [shown(), savepoint.tags(), savepoint.head().id]
    lose()
    putBack()
    savepoint = await space.open()
    expect(savepoint.snapshots().length).toBeLessThan(known.length)
    expect(space.notices.join()).toContain('lacks snapshots that snapshots.log beside it tells of')
  })

  it('nothing is freed, and a repair brings back what it lacks', async () => {
    const elsewhere = join(space.base, 'elsewhere')
    mkdirSync(elsewhere)
    const others = await space.open({ cwd: elsewhere })
    const refused = { code: 'store.damaged', message: expect.stringContaining('is older than snapshots.log') }
    await expect(savepoint.gc()).rejects.toMatchObject(refused)
    await expect(others.gc()).rejects.toMatchObject(refused)
    await expect(savepoint.purge('secret')).rejects.toMatchObject(refused)
    await expect(savepoint.prune()).rejects.toMatchObject(refused)
    await expect(savepoint.compact(['one', 'two'])).rejects.toMatchObject(refused)
    expect(await savepoint.verify()).toMatchObject({
      isRepairable: true,
      problems: [{ what: expect.stringContaining('`savepoint verify --repair` brings back what it lacks') }],
    })
    await repair()
    expect([shown(), savepoint.tags(), savepoint.head().id]).toEqual([known, tags, head])
    await savepoint.gc()
    await savepoint.rollback('two')
    expect([space.read('f'), (await savepoint.verify()).problems]).toEqual(['two', []])
  })

  it('what is taken before the repair leaves the log what only that knows, also when it is written anew', async () => {
    await take('later')
    savepoint.close()
    const db = new TimelineDb(file())
    db.plain.renew()
    db.close()
    await repair()
    expect(new Set(labels())).toEqual(new Set([...known.map(({ label }) => label), 'later']))
    expect([savepoint.head().label, savepoint.tags()]).toEqual(['later', tags])
  })
})

it('what gc forgot is not missing, although it was killed before it wrote the log anew', async () => {
  await savepoint.delete(['one'])
  const before = readFileSync(log())
  savepoint.close()
  savepoint = await space.open({ now: () => Date.now() + 8 * DAY_MS })
  await savepoint.gc()
  writeFileSync(log(), before)
  expect((await savepoint.verify()).problems).toEqual([])
  await savepoint.gc()
  expect(readFileSync(log(), 'utf8')).not.toContain('"one"')
})

describe('without the log, too', () => {
  const ruin = () => {
    lose()
    rmSync(log())
  }
  const versions = () => savepoint.snapshots().map(({ id }) => savepoint.read(id, 'f').toString())

  it('the states are found in the packs, in their order, and stay', async () => {
    // Looks like the root of a state, and is a directory.
    space.write('only/root/g', 'g')
    await savepoint.run({ command: ['sh', '-c', 'echo four > f'] })
    ruin()
    await repair()
    expect(versions()).toEqual(['one', 'two', 'three', 'three', 'four\n'])
    expect(labels()).toEqual([1, 2, 3, 4, 5].map(number => `salvaged-${number}`))
    expect(savepoint.find('salvaged-5')).toMatchObject({ type: 'manual', files: 3 })
    await savepoint.rollback('salvaged-1')
    expect(space.read('f')).toBe('one')
    await repair()
    expect(labels().filter(label => label !== undefined)).toHaveLength(5)
    rmSync(`${file()}.damaged`)
    await savepoint.gc()
    expect((await savepoint.verify()).problems).toEqual([])
    await savepoint.rollback('salvaged-5')
    expect([space.read('f'), space.read('only/root/g')]).toEqual(['four\n', 'g'])
  })

  it('not those of other directories, and not what was purged', async () => {
    const other = new Workspace()
    try {
      const elsewhere = await other.open({ home: space.home })
      other.write('theirs', 'theirs')
      const { id } = await elsewhere.snapshot({ label: 'theirs' })
      await savepoint.purge('secret')
      ruin()
      const { repaired } = await elsewhere.verify({ repair: true })
      expect(repaired.join()).toContain('3 snapshots found again in the packs, labelled salvaged-1 and so on')
      expect(elsewhere.snapshots().map(snapshot => snapshot.id)).toEqual([id])
      savepoint = await space.open()
      expect(versions()).toEqual(['one', 'two', 'three'])
      expect(() => savepoint.read('salvaged-1', 'secret')).toThrow()
    } finally {
      other.remove()
    }
  })

  it('of two that are lost, each gets what looks like it', async () => {
    const elsewhere = join(space.base, 'elsewhere')
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, 'theirs'), 'theirs')
    const other = await space.open({ cwd: elsewhere })
    await other.snapshot()
    other.close()
    const theirs = join(space.home, 'timelines', other.timeline)
    for (const name of ['timeline.sqlite', 'timeline.sqlite-wal', 'timeline.sqlite-shm', 'snapshots.log'])
      rmSync(join(theirs, name), { force: true })
    ruin()
    await repair()
    expect(versions()).toEqual(['one', 'two', 'three'])
    const again = await space.open({ cwd: elsewhere })
    expect(again.read('salvaged-1', 'theirs').toString()).toBe('theirs')
  })
})
