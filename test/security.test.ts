/** X1-X3, S2, S3: who may read the store, where paths may lead, what purge leaves, what is never captured. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { Store } from '../src/store/store.ts'
import { runVerbs } from './support/engine-process.ts'
import { holdsBytes } from './support/raw-scan.ts'
import { imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const SECRET = Buffer.from('AKIA-the-secret-that-leaked-0123456789')

let workspace: Workspace
beforeEach(() => {
  workspace = new Workspace()
})
afterEach(() => workspace.remove())

describe('X1 the home', () => {
  test.each([0o000, 0o022])('is private to its owner with umask %o, whatever was done in it', async umask => {
    workspace.write('a', noise(3_000_000, 1))
    workspace.write('b')
    const { error } = await runVerbs(
      workspace,
      [
        ['snapshot', { label: 'one' }],
        ['run', { command: ['sh', '-c', 'echo changed > b'] }],
        ['rollback', 'one'],
        ['undo'],
        ['purge', 'b'],
        ['gc'],
        ['verify', { repair: true }],
        ['status'],
      ],
      { umask },
    )
    expect(error).toBeUndefined()
    // SQLite removes its side files when it is closed: looked at while it is open.
    const savepoint = await workspace.open()
    await savepoint.snapshot()
    const open = ['.', ...(readdirSync(workspace.home, { recursive: true }) as string[])].filter(file => {
      const { mode } = lstatSync(join(workspace.home, file))
      return (mode & 0o077) !== 0
    })
    expect(open).toEqual([])
    expect(readdirSync(join(workspace.home, 'store'))).toContain('index.sqlite-wal')
  })

  test('of files that a restore writes: never readable by others before their mode is set', async () => {
    workspace.write('key', SECRET)
    workspace.sh('chmod 600 key')
    const savepoint = await workspace.open()
    await savepoint.snapshot({ label: 'one' })
    rmSync(workspace.at('key'))
    await savepoint.rollback('one')
    expect(lstatSync(workspace.at('key')).mode & 0o777).toBe(0o600)
  })
})

describe('X2 paths that lead out of the target', () => {
  const outside = ['..', '../other', '/etc/passwd', 'sub/../../x', '/', '', 'a\0b', '../work-not', '\\x2e\\x2e/x']

  test.each(outside)('%j is refused by every verb that takes one, and nothing is written', async path => {
    workspace.write('a')
    workspace.write('sub/b')
    const savepoint = await workspace.open()
    await savepoint.snapshot({ label: 'one' })
    workspace.write('a', 'changed')
    const before = imageOf(workspace.base, { skip: file => file.startsWith('store home'), untouched: true })
    const attempts: [string, () => unknown][] = [
      ['rollback', () => savepoint.rollback('one', { paths: [path] })],
      ['rollback --to', () => savepoint.rollback('one', { paths: [path], to: join(workspace.base, 'to') })],
      ['revert', () => savepoint.revert(path)],
      ['diff', () => savepoint.diff({ paths: [path] })],
      ['history', () => savepoint.history(path)],
      ['coverage', () => savepoint.coverage(path)],
      ['read', () => savepoint.read('one', path)],
      ['purge', () => savepoint.purge(path)],
    ]
    for (const [verb, attempt] of attempts) {
      await expect((async () => attempt())(), verb).rejects.toMatchObject({ code: 'path.outside' })
    }
    expect(imageOf(workspace.base, { skip: file => file.startsWith('store home'), untouched: true })).toEqual(before)
  })

  test('a path through a symlink of the target is a name, not a way out', async () => {
    const elsewhere = join(workspace.base, 'elsewhere')
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, 'file'), 'not ours')
    symlinkSync(elsewhere, workspace.at('way'))
    const savepoint = await workspace.open()
    const { id } = await savepoint.snapshot()
    expect(() => savepoint.read(id, 'way/file')).toThrow(/not there/)
    await expect(savepoint.rollback(id, { paths: ['way/file'] })).rejects.toMatchObject({ code: 'path.unknown' })
    await expect(savepoint.revert('way/file')).rejects.toMatchObject({ code: 'path.unknown' })
    expect(readFileSync(join(elsewhere, 'file'), 'utf8')).toBe('not ours')
  })
})

describe('X3 purge', () => {
  let savepoint: Savepoint
  const held = () => holdsBytes(workspace.home, SECRET)

  beforeEach(async () => {
    savepoint = await workspace.open()
    workspace.write('config/.env', Buffer.concat([SECRET, Buffer.from(' first')]))
    workspace.write('big', noise(400_000, 1))
    await savepoint.snapshot({ label: 'one' })
    workspace.write('config/.env', Buffer.concat([Buffer.from('x'.repeat(5000)), SECRET]))
    await savepoint.snapshot({ label: 'two' })
    workspace.write('config/.env', Buffer.concat([SECRET, Buffer.from(' live')]))
    await savepoint.rollback('one')
    await savepoint.undo()
    workspace.write('config/.env', 'clean now')
  })

  test('removes every version from all history, safety snapshots and operations included, to the last byte', async () => {
    expect(held()).not.toEqual([])
    const { versions, elsewhere, freedBytes } = await savepoint.purge('config/.env')
    expect([versions, elsewhere, freedBytes > 0]).toEqual([3, [], true])
    expect(held()).toEqual([])
    expect((await savepoint.verify()).problems).toEqual([])
    expect(savepoint.snapshots().map(snapshot => snapshot.label)).toEqual(expect.arrayContaining(['one', 'two']))
    expect(savepoint.read('one', 'big').equals(noise(400_000, 1))).toBe(true)
    expect(savepoint.operations().at(-1)).toMatchObject({ kind: 'purge', summary: 'purge config/.env', state: 'fixed' })
  })

  test('makes it unknown, not absent: a rollback leaves the live file alone', async () => {
    await savepoint.purge('config/.env')
    workspace.write('big', 'changed')
    await savepoint.rollback('one')
    expect(workspace.read('config/.env')).toBe('clean now')
    await savepoint.undo()
    expect([workspace.read('config/.env'), workspace.read('big')]).toEqual(['clean now', 'changed'])
    expect(held()).toEqual([])
  })

  test('of a directory takes everything below', async () => {
    await savepoint.purge('config')
    expect(held()).toEqual([])
    expect(() => savepoint.read('one', 'config/.env')).toThrow()
  })

  test('says where the same bytes still are, in this and in other timelines', async () => {
    const copy = Buffer.concat([SECRET, Buffer.from(' first')])
    workspace.write('backup/.env.bak', copy)
    const { id } = await savepoint.snapshot()
    const second = join(workspace.base, 'second')
    mkdirSync(second)
    writeFileSync(join(second, 'stolen'), copy)
    const other = await workspace.open({ cwd: second })
    const stolen = await other.snapshot()
    const { elsewhere } = await savepoint.purge('config/.env')
    expect(elsewhere).toEqual(
      expect.arrayContaining([
        { snapshot: id, path: 'backup/.env.bak' },
        { snapshot: stolen.id, path: 'stolen', target: second },
      ]),
    )
    await savepoint.purge('backup')
    expect((await other.purge('stolen')).elsewhere).toEqual([])
    expect(held()).toEqual([])
  })

  test('finds bytes that a capture which was killed left behind in a pack', async () => {
    workspace.write('config/.env', Buffer.concat([SECRET, Buffer.from(' never in a snapshot')]))
    const { signal } = await runVerbs(workspace, [['snapshot']], { failpoint: 'store:before-index' })
    expect(signal).toBe('SIGKILL')
    workspace.write('config/.env', 'clean again')
    await savepoint.purge('config/.env')
    expect(held()).toEqual([])
  })

  test('finds the second copy of a content that two writers stored at once', async () => {
    const store = Store.open(join(workspace.home, 'store'))
    const writers = [await store.writer(), await store.writer()]
    const copy = Buffer.concat([SECRET, Buffer.from(' stored by two')])
    for (const writer of writers) writer.put(copy)
    // Each has claimed it before either committed; the second one fills a pack of its own.
    for (const [i, writer] of writers.entries()) writer.put(Buffer.from(`padding ${i}`))
    for (const writer of writers) writer.commit()
    for (const writer of writers) writer.close()
    store.close()
    workspace.write('config/.env', copy)
    await savepoint.snapshot()
    workspace.write('config/.env', 'clean again')
    expect(held().length).toBeGreaterThan(1)
    await savepoint.purge('config/.env')
    expect(held()).toEqual([])
  })

  test('of what no snapshot has, and of the whole target, is refused', async () => {
    await expect(savepoint.purge('nothing/here')).rejects.toMatchObject({ code: 'path.unknown' })
    await expect(savepoint.purge('.')).rejects.toMatchObject({ code: 'usage' })
  })
})

describe('S3 our own store', () => {
  test.each(['.savepoint', 'deep/down/store'])(
    'inside the target, at %s, is never captured and never touched',
    async place => {
      const home = workspace.at(place)
      workspace.write('a')
      const savepoint = await workspace.open({ home, env: { ...workspace.env, SAVEPOINT_HOME: home } })
      const first = await savepoint.snapshot({ label: 'one' })
      expect(first.files).toBe(1)
      workspace.write('b', noise(100_000, 1))
      const second = await savepoint.snapshot()
      expect([second.files, second.counts]).toEqual([2, { added: 1, modified: 0, deleted: 0 }])
      await savepoint.rollback('one')
      expect([existsSync(workspace.at('b')), existsSync(join(home, 'store/format.json'))]).toEqual([false, true])
      await savepoint.undo()
      expect(workspace.read('a')).toBe('a\n')
      expect((await savepoint.verify()).problems).toEqual([])
      expect(await savepoint.coverage(`${place}/store`)).toMatchObject({ covered: false, reason: 'store' })
    },
  )

  test('another one inside the target is left out, said so, and left alone', async () => {
    const savepoint = await workspace.open()
    workspace.write('a', 'one')
    const before = await savepoint.snapshot({ label: 'one' })
    const other = await workspace.open({ home: workspace.at('tool/home'), cwd: workspace.userHome, force: true })
    await other.snapshot({ label: 'theirs' })
    workspace.write('tool/home/config.yaml', '')
    workspace.write('a', 'two')
    const snapshot = await savepoint.snapshot({ label: 'two' })
    expect(snapshot.skipped).toEqual([
      { path: 'tool/home/store', reason: 'other-store' },
      { path: 'tool/home/timelines', reason: 'other-store' },
    ])
    expect([before.skippedCount, snapshot.files]).toEqual([0, 2])
    expect(await savepoint.coverage('tool/home/store')).toMatchObject({ covered: false, reason: 'other-store' })
    expect(await savepoint.coverage('tool/home/config.yaml')).toMatchObject({ covered: true })
    await savepoint.rollback('one')
    expect(workspace.read('a')).toBe('one')
    await savepoint.undo()
    expect([other.snapshots().map(({ label }) => label), (await other.verify()).problems]).toEqual([['theirs'], []])
  })

  test('a directory that is only named like one is captured', async () => {
    workspace.write('state/store/format.json', '{"format":1}')
    workspace.write('state/timelines/x')
    workspace.write('src/store/packs/x')
    workspace.write('src/store/clones/x')
    workspace.write('src/store/format.json', '{"format":"mp4"}')
    workspace.write('src/timelines/x')
    const { files, skipped } = await (await workspace.open()).snapshot()
    expect([files, skipped]).toEqual([6, []])
  })

  test('a directory that is only named like the stage of a restore is captured, and comes back', async () => {
    const place = '.savepoint-stage-0123456789abcdef'
    workspace.write(`${place}/mine`, 'one')
    workspace.write(`${place}-kept/mine`, 'one')
    const savepoint = await workspace.open()
    const { id, files } = await savepoint.snapshot()
    expect([files, await savepoint.coverage(`${place}/mine`)]).toMatchObject([2, { covered: true }])
    workspace.sh(`rm -r ${place} ${place}-kept`)
    await savepoint.rollback(id)
    expect([place, `${place}-kept`].map(path => workspace.read(`${path}/mine`))).toEqual(['one', 'one'])
  })

  test('the stage of a restore that was killed without a journal is ours, and left alone', async () => {
    workspace.write('a', 'one')
    const savepoint = await workspace.open()
    await savepoint.snapshot({ label: 'one' })
    workspace.write('a', 'two')
    const killed = await runVerbs(workspace, [['rollback', 'one']], { failpoint: 'restore:staged' })
    expect(killed.signal).toBe('SIGKILL')
    // As `rollback --no-safety` leaves it, which has no journal.
    workspace.sh(`rm '${workspace.home}'/timelines/*/restore.json`)
    const stage = readdirSync(workspace.dir).find(name => name.startsWith('.savepoint-stage-'))!
    expect((await savepoint.snapshot()).files).toBe(1)
    expect(await savepoint.coverage(stage)).toMatchObject({ covered: false, reason: 'store' })
  })

  test.each(['', 'store', 'store/packs', 'timelines'])('cannot itself be a target (home/%s)', async part => {
    await (await workspace.open()).snapshot()
    const cwd = join(workspace.home, part)
    await expect(workspace.open({ cwd, force: true })).rejects.toMatchObject({ code: 'target.refused' })
  })
})

test('S2 a file over max_file_bytes is reported, left out, and left alone by a rollback', async () => {
  mkdirSync(workspace.home)
  writeFileSync(join(workspace.home, 'config.yaml'), 'snapshots:\n  max_file_bytes: 10 kB\n')
  workspace.write('small', 'x')
  workspace.write('large', noise(20_000, 1))
  const savepoint = await workspace.open()
  const snapshot = await savepoint.snapshot({ label: 'one' })
  expect([snapshot.skippedCount, snapshot.skipped]).toEqual([1, [{ path: 'large', reason: 'too-large' }]])
  expect(await savepoint.coverage('large')).toMatchObject({ covered: false, reason: 'too-large' })
  const changed = noise(30_000, 2)
  workspace.write('large', changed)
  workspace.write('small', 'y')
  await savepoint.rollback('one')
  expect([workspace.read('small'), readFileSync(workspace.at('large')).equals(changed)]).toEqual(['x', true])
})
