/** Snapshots of btrfs that somebody changed or exchanged behind our back, and mounts that allow something else than before. */
import {
  chmodSync,
  closeSync,
  existsSync,
  globSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import type { PruneResult } from '../src/index.ts'
import { onBtrfs, run } from './support/backend-scene.ts'
import { savepoint as runCli, savepointJson } from './support/built-cli.ts'
import { gated } from './support/machine.ts'
import { flipIn, noise } from './support/tree-ops.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs('noatime')
const forUsers = onBtrfs()
let space: Workspace

const onDisk = (title: string, work: () => Promise<void>, from = scene) =>
  gated(from.possible && canDropPrivilege, `${from.needs}, setpriv`, title, async () => {
    space = from.make()
    try {
      await work()
    } finally {
      from.remove(space)
    }
  })

beforeAll(async () => {
  for (const each of [scene, forUsers]) if (each.possible) await each.setUp()
}, 60_000)
afterAll(async () => {
  for (const each of [scene, forUsers]) if (each.possible) await each.tearDown()
}, 60_000)

/** Not read yet. Answers where it is. */
async function keep(label: string): Promise<string> {
  const savepoint = await space.open({ leaveUnread: true })
  const { id } = await savepoint.snapshot({ label })
  return savepoint.nativeUsage(id)!.where
}

const setReadOnly = (path: string, isReadOnly: boolean) =>
  run('btrfs', 'property', 'set', '-ts', path, 'ro', String(isReadOnly))

onDisk(
  'one that this user cannot look at is not taken for removed',
  async () => {
    space.write('a', 'captured\n')
    const where = await keep('one')
    chmodSync(dirname(where), 0)
    const { error } = await runAsUser(space, [['diff', {}]])
    expect(error).toMatchObject({ message: expect.stringContaining('it is not read yet') })
    chmodSync(dirname(where), 0o700)
    expect((await space.open()).read('one', 'a').toString()).toBe('captured\n')
  },
  forUsers,
)

onDisk('one that was made writable and changed before it was read is not taken for what was captured', async () => {
  space.write('a', 'captured\n')
  const where = await keep('one')
  setReadOnly(where, false)
  writeFileSync(join(where, 'a'), 'changed\n')
  setReadOnly(where, true)
  const savepoint = await space.open()
  const said = /\(one\) is not what was captured: its btrfs snapshot was changed by somebody else before it was read$/
  expect(space.notices.at(-1)).toMatch(said)
  expect(savepoint.operations()[0]).toMatchObject({ rule: 'changed', summary: expect.stringMatching(said) })
  // It is all that is left of it.
  expect(savepoint.read('one', 'a').toString()).toBe('changed\n')
  space.notices.length = 0
  await keep('two')
  expect((await space.open()).read('two', 'a').toString()).toBe('captured\n')
  expect(space.notices).toEqual([])
})

onDisk('nor is one whose change is not on the disk yet, nor one that can be written', async () => {
  const [captured, changed] = ['y', 'Z'].map(text => text.repeat(300_000))
  space.write('a', captured!)
  run('sync')
  const where = await keep('one')
  setReadOnly(where, false)
  const file = openSync(join(where, 'a'), 'r+')
  writeSync(file, changed!)
  closeSync(file)
  setReadOnly(where, true)
  const savepoint = await space.open()
  expect(space.notices.at(-1)).toMatch(/\(one\) is not what was captured/)
  expect(savepoint.read('one', 'a').toString()).toBe(changed)
  setReadOnly(await keep('two'), false)
  await space.open()
  expect(space.notices.at(-1)).toMatch(/\(two\) is not what was captured/)
})

onDisk('a balance, or a snapshot that somebody makes of it, changes nothing in one', async () => {
  space.write('a', 'captured\n')
  const where = await keep('one')
  run('btrfs', 'subvolume', 'snapshot', where, join(space.base, 'theirs'))
  run('btrfs', 'balance', 'start', '--full-balance', scene.disk())
  run('sync')
  const savepoint = await space.open()
  expect([space.notices, savepoint.read('one', 'a').toString()]).toEqual([[], 'captured\n'])
  run('btrfs', 'subvolume', 'delete', join(space.base, 'theirs'))
  setReadOnly(where, false)
  writeFileSync(join(where, 'b'), 'changed\n')
  setReadOnly(where, true)
  run('sync')
  run('btrfs', 'balance', 'start', '--full-balance', scene.disk())
  space.write('a', '2\n')
  await keep('two')
  expect(await (await space.open()).diff({ from: 'one', to: 'two' })).toMatchObject({ changes: [{ path: 'a' }] })
})

onDisk('another subvolume in its place is neither read nor deleted, and tells nothing of what changed', async () => {
  space.write('a', '1\n')
  const read = await keep('read')
  await space.open()
  space.write('a', '2\n')
  // What was read as "1" says now that nothing has changed since.
  run('btrfs', 'subvolume', 'delete', read)
  run('btrfs', 'subvolume', 'snapshot', '-r', space.dir, read)
  const unread = await keep('unread')
  expect((await space.open()).read('unread', 'a').toString()).toBe('2\n')
  space.write('a', '3\n')
  const lost = await keep('lost')
  run('btrfs', 'subvolume', 'delete', lost)
  run('btrfs', 'subvolume', 'create', lost)
  const savepoint = await space.open()
  expect(space.notices.at(-1)).toMatch(/\(lost\) is lost: its btrfs snapshot was removed by somebody else/)
  expect(savepoint.snapshots().map(({ label }) => label)).toEqual(['read', 'unread'])
  space.write('secret')
  await savepoint.snapshot({ label: 'purged' })
  await savepoint.purge('secret')
  expect(scene.kept(space).toSorted()).toEqual([read, lost].toSorted())
  expect(scene.kept(space)).not.toContain(unread)
})

onDisk('one that was sent away and received back is still that one', async () => {
  space.write('a', '1\n')
  const where = await keep('one')
  const file = join(space.base, 'sent')
  run('btrfs', 'send', '-q', '-f', file, where)
  run('btrfs', 'subvolume', 'delete', where)
  run('btrfs', 'receive', '-q', '-f', file, dirname(where))
  rmSync(file)
  const savepoint = await space.open()
  expect([space.notices, savepoint.read('one', 'a').toString()]).toEqual([[], '1\n'])
  expect(savepoint.nativeUsage('one')?.where).toBe(where)
})

onDisk('one that somebody removed after it was read is said to be in the store alone', async () => {
  space.write('a', '1\n')
  const where = await keep('one')
  const savepoint = await space.open()
  expect(savepoint.nativeUsage('one')).toMatchObject({ where, isGone: false })
  run('btrfs', 'subvolume', 'delete', where)
  expect(savepoint.nativeUsage('one')).toEqual({ where, isGone: true, bytes: undefined })
  const shown = runCli(space, ['show', 'one'])
  expect(shown.stdout).toContain(`kept     by the store alone: somebody has removed ${where}\n`)
})

onDisk('those that are lost leave the others in one line, and prune --dry-run says it as prune does', async () => {
  writeFileSync(join(space.dir, 'savepoint.yaml'), 'snapshots:\n  retention: {native_max: 1}\n')
  const places = new Map<string, string>()
  for (const label of ['one', 'two', 'three', 'four', 'five', 'six']) {
    space.write('a', `${label}\n`)
    places.set(label, await keep(label))
  }
  for (const label of ['two', 'five', 'six']) run('btrfs', 'subvolume', 'delete', places.get(label)!)
  const said = ({ decisions, leftToStore }: PruneResult) => ({
    ids: decisions.map(({ snapshot, keep, rule }) => [snapshot.id, keep, rule]),
    left: leftToStore.map(({ snapshot, rule }) => [snapshot.id, rule]),
  })
  const dry = said(await (await space.open({ leaveUnread: true })).prune({ dryRun: true }))
  const lost = space.notices.splice(0)
  expect(lost).toEqual(['two', 'five', 'six'].map(label => expect.stringContaining(`(${label}) is lost`)))
  expect(scene.kept(space)).toHaveLength(3)
  const savepoint = await space.open()
  expect(said(await savepoint.prune())).toEqual(dry)
  expect(space.notices).toEqual(lost)
  expect([dry.ids.length, dry.left.length]).toEqual([3, 2])
  const [four, three, one] = savepoint.snapshots().toReversed()
  expect((await savepoint.status()).head!.id).toBe(four!.id)
  expect([four!.parent, three!.parent]).toEqual([three!.id, one!.id])
  expect([four!.counts.modified, three!.counts.modified]).toEqual([1, 1])
})

onDisk('prune --dry-run does not say that something goes which prune cannot read now', async () => {
  writeFileSync(join(space.dir, 'savepoint.yaml'), 'snapshots:\n  retention: {native_max: 1}\n')
  const where = await keep('one')
  await keep('two')
  renameSync(dirname(where), `${dirname(where)}.away`)
  try {
    const { leftToStore } = await (await space.open({ leaveUnread: true })).prune({ dryRun: true })
    expect(leftToStore).toEqual([])
    expect(space.notices).toEqual(Array(2).fill(expect.stringContaining('is not read yet')))
    const { status, stdout } = runCli(space, ['status'])
    expect([status, stdout]).toEqual([
      0,
      expect.stringContaining('it is not read yet: what changed since is not known'),
    ])
    expect(runCli(space, ['verify']).stdout).toMatch(
      /2 snapshots; not checked: 2 that only a filesystem keeps until now$/m,
    )
    expect(runCli(space, ['coverage', '.']).stdout).toBe(
      '.: protected, snapshots capture it\nNo snapshot that is read has a version of it\nNot counted: 2 snapshots not read yet, which only a filesystem keeps\n',
    )
    expect(savepointJson(space, ['coverage', '.'])).toMatchObject({ versions: 0, not_read: 2, latest: null })
    expect(runCli(space, ['log']).stdout).toMatch(/ \(HEAD\) manual .* two not read yet\n.* one not read yet$/m)
    expect(runCli(space, ['log']).stdout).not.toContain('=')
  } finally {
    renameSync(`${dirname(where)}.away`, dirname(where))
  }
})

onDisk('status says so where the named backend does not work', async () => {
  space.write('below/a')
  const cwd = space.at('below')
  await (await space.open({ cwd, target: cwd, backend: 'cas' })).snapshot({})
  const { backend } = await (await space.open({ cwd, target: cwd, backend: 'btrfs' })).status()
  expect([backend, space.notices]).toEqual([
    'btrfs',
    [expect.stringMatching(/^Cannot use backend btrfs: the target lies in a subvolume.*no snapshot can be taken/)],
  ])
})

onDisk('prune says what goes because it was read only now', async () => {
  writeFileSync(join(space.dir, 'savepoint.yaml'), 'snapshots:\n  retention: {native_max: 1}\n')
  const [one, two] = [basename(await keep('one')), basename(await keep('two'))]
  const savepoint = await space.open()
  const { leftToStore } = await savepoint.prune({})
  expect(leftToStore).toMatchObject([{ snapshot: { id: one }, rule: 'native_max (1)' }])
  expect(scene.kept(space).map(path => basename(path))).toEqual([two])
  expect((await savepoint.prune({})).leftToStore).toEqual([])
})

onDisk(
  'a user who may not delete them any more keeps none: what was found out counts for that mount only',
  async () => {
    space.write('a', '1\n')
    const taken = await runAsUser(space, [['snapshot', { label: 'one' }]])
    expect(taken.results[0]).toMatchObject({ backend: 'btrfs' })
    const disk = dirname(space.base)
    run('umount', disk)
    run('mount', '-o', 'loop', `${disk}.img`, disk)
    try {
      const { results, error } = await runAsUser(space, [['status'], ['snapshot', { label: 'two' }]])
      expect(error).toBeUndefined()
      expect(results).toMatchObject([{ backend: 'cas' }, { backend: 'cas' }])
    } finally {
      run('mount', '-o', 'remount,user_subvol_rm_allowed', disk)
    }
    const again = await runAsUser(space, [['snapshot', { label: 'three' }]])
    expect(again.results[0]).toMatchObject({ backend: 'btrfs' })
  },
  forUsers,
)

onDisk('one that failed is not looked for', async () => {
  const home = `${dirname(space.base)}.home`
  try {
    space.write('a', '1\n')
    await (await space.open({ home, leaveUnread: true })).snapshot({ label: 'one' })
    await (await space.open({ home })).purge('a')
    // With the last one its directory is gone. Now somebody else makes it.
    run('mkdir', '-m', '777', join(space.base, '.savepoint-snapshots'))
    await expect((await space.open({ home, leaveUnread: true })).snapshot({})).rejects.toMatchObject({
      message: expect.stringContaining('other users may write in'),
    })
    space.notices.length = 0
    await (await space.open({ home })).gc()
    expect(space.notices).toEqual([])
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

onDisk(
  'what the store has lost is stored again from the snapshot, and until then that neither goes nor is purged',
  async () => {
    mkdirSync(space.home, { recursive: true })
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots: {retention: {native_max: 1}}\n')
    space.write('noise', noise(100_000, 1))
    space.write('secret', 'secret\n')
    const where = await keep('one')
    await space.open()
    for (const pack of globSync('store/packs/*.pack', { cwd: space.home })) rmSync(join(space.home, pack))
    space.write('noise', 'other\n')
    await keep('two')
    const savepoint = await space.open()
    expect([existsSync(where), space.notices.join()]).toEqual([
      true,
      expect.stringContaining('stays in btrfs, beyond its limit: the store has lost parts of it'),
    ])
    await expect(savepoint.purge('secret')).rejects.toMatchObject({
      message: expect.stringMatching(
        /^Cannot purge: the store has lost parts of snap_\w+, which btrfs keeps until now$/,
      ),
    })
    expect((await savepoint.verify()).problems.map(({ what }) => what).join()).toContain(
      'btrfs keeps it, `savepoint verify --repair` stores it again',
    )
    expect(await savepoint.verify({ repair: true })).toMatchObject({
      problems: [],
      repaired: expect.arrayContaining([
        expect.stringMatching(/^what snap_\w+ had lost is stored again from .*snap_\w+$/),
      ]),
    })
    await savepoint.rollback('one')
    expect(readFileSync(space.at('noise')).equals(noise(100_000, 1))).toBe(true)
    expect((await savepoint.prune()).leftToStore).toMatchObject([{ snapshot: { label: 'one' } }])
    expect(existsSync(where)).toBe(false)
  },
)

onDisk('one that is taken before a purge could be completed stays: it is not among those that go', async () => {
  space.write('a', '1\n')
  space.write('secret')
  const place = dirname(await keep('before'))
  const savepoint = await space.open()
  // Its filesystem, or this directory, is elsewhere for a while.
  renameSync(place, `${place}.away`)
  await expect(savepoint.purge('secret')).rejects.toMatchObject({
    message: expect.stringMatching(/^Cannot complete the purge: .* is not there/),
  })
  space.write('a', '2\n')
  rmSync(space.at('secret'))
  const after = await keep('after')
  space.notices.length = 0
  const later = await space.open()
  expect(space.notices).toEqual(['completed a purge that was interrupted: secret'])
  expect([existsSync(after), later.read('after', 'a').toString()]).toEqual([true, '2\n'])
  expect(await later.verify()).toMatchObject({ problems: [], unread: 0 })
})

onDisk('one whose directory is away is not called removed because the next ones are kept', async () => {
  const labels = ['one', 'two', 'three']
  space.write('a', 'one\n')
  const place = dirname(await keep('one'))
  renameSync(place, `${place}.away`)
  for (const label of labels.slice(1)) {
    space.write('a', `${label}\n`)
    await keep(label)
    expect((await space.open()).read(label, 'a').toString()).toBe(`${label}\n`)
  }
  renameSync(`${place}.away`, place)
  const savepoint = await space.open()
  expect(labels.map(label => savepoint.read(label, 'a').toString())).toEqual(['one\n', 'two\n', 'three\n'])
  await savepoint.purge('a')
  expect(scene.kept(space)).toEqual([])
})

onDisk('one that another process took is read by what a program awaits, and until then says so', async () => {
  space.write('a', '1\n')
  const savepoint = await space.open()
  await keep('theirs')
  expect(() => savepoint.read('theirs', 'a')).toThrow(
    expect.objectContaining({
      hint: expect.stringContaining('in a program, `await savepoint.status()` or `open` does'),
    }),
  )
  await savepoint.status()
  expect(savepoint.read('theirs', 'a').toString()).toBe('1\n')
})

onDisk('one that cannot be read now is not called lost by a purge', async () => {
  space.write('secret')
  const place = dirname(await keep('unread'))
  renameSync(place, `${place}.away`)
  await expect((await space.open()).purge('secret')).rejects.toMatchObject({
    message: 'Cannot use a snapshot that the filesystem keeps: it is not read yet',
  })
  renameSync(`${place}.away`, place)
  expect(await (await space.open()).purge('secret')).toMatchObject({ snapshots: 1 })
})

onDisk('what the store has lost is stored again although rules exclude it since', async () => {
  space.write('noise', noise(100_000, 1))
  await keep('one')
  await space.open()
  space.write('.savepointignore', 'noise\n')
  rmSync(space.at('noise'))
  await keep('two')
  await space.open()
  for (const pack of globSync('store/packs/*.pack', { cwd: space.home })) flipIn(join(space.home, pack))
  const savepoint = await space.open()
  expect((await savepoint.verify({ repair: true })).problems).toEqual([])
  expect(savepoint.read('one', 'noise').equals(noise(100_000, 1))).toBe(true)
})

onDisk('what was to be captured is read, also when it is to be left out by then; and the other way round', async () => {
  const exclude = (names: string) => space.write('savepoint.yaml', `snapshots: {exclude: {additional: [${names}]}}\n`)
  for (const name of ['f', 'g']) space.write(name, `${name}\n`)
  exclude('g')
  await keep('one')
  exclude('f')
  await keep('two')
  exclude('none')
  const savepoint = await space.open()
  const read = (label: string, name: string) => {
    try {
      return savepoint.read(label, name).toString()
    } catch {
      return undefined
    }
  }
  const holds = (label: string) => ['f', 'g'].filter(name => read(label, name) === `${name}\n`)
  expect([holds('one'), holds('two')]).toEqual([['f'], ['g']])
})
