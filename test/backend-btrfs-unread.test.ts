/** Snapshots that btrfs keeps and that cannot be read now: because the disk fails for a moment, is away, or the store has no room. */
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { onBtrfs, run, useElsewhere, useScene } from './support/backend-scene.ts'
import { savepoint } from './support/built-cli.ts'
import { runAsUser } from './support/without-privilege.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs('noatime', true)
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
})
/** Its home is on another disk. */
let elsewhere: Workspace
useElsewhere(made => {
  elsewhere = made
})

const opened = (options: object = {}) =>
  elsewhere.open({ cwd: elsewhere.base, target: space.dir, home: elsewhere.home, ...options })

async function take(label: string): Promise<void> {
  const savepoint = await opened({ leaveUnread: true, cwd: space.dir })
  expect(await savepoint.snapshot({ label })).toMatchObject({ backend: 'btrfs' })
  savepoint.close()
}

/** With its filesystem not mounted. */
async function whileAway<T>(work: () => Promise<T> | T): Promise<T> {
  run('umount', scene.disk())
  try {
    return await work()
  } finally {
    run('mount', '-o', 'loop,noatime', `${scene.disk()}.img`, scene.disk())
  }
}

/** On the disk itself, so that the checksums of the filesystem tell. */
function overwrite(from: string, to: string): void {
  const image = `${scene.disk()}.img`
  const bytes = readFileSync(image)
  const file = openSync(image, 'r+')
  for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1)) writeSync(file, to, at)
  closeSync(file)
}

const [WELL, BAD] = ['the bytes that the disk does not give', 'the bytes that the disk DOES NOT GIVE']

onDisk('one that the disk does not give whole is not read as far as it goes, but later', async () => {
  space.write('a', '1\n')
  space.write('large', WELL.repeat(1000))
  await take('one')
  space.sh('rm large')
  await take('two')
  await whileAway(() => overwrite(WELL, BAD))
  const failing = await opened()
  const { id } = failing.find('one')
  expect(elsewhere.notices).toEqual([
    expect.stringMatching(
      `^${id} is not read yet: Cannot read large: the disk has failed, or is gone\\. It is tried again`,
    ),
  ])
  // The others are, meanwhile.
  expect(failing.read('two', space.at('a')).toString()).toBe('1\n')
  failing.close()
  await whileAway(() => overwrite(BAD, WELL))
  const well = await opened()
  expect(well.find('one')).toMatchObject({ files: 2, skippedCount: 0 })
  expect(well.read('one', space.at('large')).toString()).toBe(WELL.repeat(1000))
  well.close()
})

onDisk('one that could not be read whole is not left to the store alone', async () => {
  const setRetention = (native_max: string) =>
    writeFileSync(
      join(space.home, 'config.yaml'),
      `snapshots: {min_free_bytes: 0, retention: {native_max: ${native_max}}}\n`,
    )
  mkdirSync(space.home)
  setRetention('unlimited')
  space.write('closed', 'only btrfs has it\n')
  chmodSync(space.at('closed'), 0)
  const savepoint = await space.open({ leaveUnread: true })
  for (const label of ['one', 'two']) await savepoint.snapshot({ label })
  await runAsUser(space, [['status']])
  expect(savepoint.find('one')).toMatchObject({ skipped: [{ path: 'closed', reason: 'unreadable' }] })
  setRetention('1')
  const { leftToStore } = await (await space.open()).prune()
  expect([leftToStore, scene.kept(space).length]).toEqual([[], 2])
  expect(space.notices.at(-1)).toMatch(
    /^snap_\w+ stays in btrfs, beyond its limit: only there is its closed \(unreadable\);/,
  )
})

onDisk('one of which the parent was deleted is listed as before', async () => {
  for (const label of ['zero', 'one']) await take(label)
  ;(await opened()).close()
  await take('two')
  const labels = ['zero', 'two']
  await whileAway(async () => {
    const savepoint = await opened()
    const { parent } = savepoint.find('one')
    await savepoint.delete(['one'])
    expect(savepoint.snapshots().map(({ label }) => label)).toEqual(labels)
    expect(savepoint.log().map(({ snapshot }) => snapshot.label)).toEqual(labels.toReversed())
    expect(savepoint.head()).toMatchObject({ label: 'two', parent })
    expect(savepoint.branches()).toHaveLength(1)
    savepoint.close()
    // What it would be counted against is forgotten, and it cannot be counted yet.
    const later = await opened({ now: () => Date.now() + 8 * 24 * 3600 * 1000 })
    expect((await later.gc()).forgottenSnapshots).toBe(1)
    expect(later.head()).toMatchObject({ label: 'two', parent })
    later.close()
  })
})

/** What is to stay free of the disk of the store, which has no room for the snapshot above that. */
async function belowFloor(
  work: (used: () => number, setFloor: (text: string) => void) => Promise<void>,
): Promise<void> {
  const { home } = elsewhere
  mkdirSync(home)
  run('mount', '-t', 'tmpfs', '-o', 'size=24m', 'none', home)
  const used = () => Number(run('df', '--output=used', '-k', home).trim().split('\n')[1])
  const setFloor = (text: string) => writeFileSync(join(home, 'config.yaml'), `snapshots: {min_free_bytes: ${text}}\n`)
  try {
    setFloor('18 MB')
    space.write('a', '1\n')
    await take('zero')
    ;(await opened()).close()
    space.sh('for i in 1 2 3; do head -c 4000000 /dev/urandom > noise$i; done')
    await take('one')
    ;(await opened()).close()
    expect(elsewhere.notices.splice(0)).toEqual([expect.stringMatching(/fewer than 18 MB would stay free/)])
    await work(used, setFloor)
  } finally {
    run('umount', '-l', home)
  }
}

onDisk('one for which there was no room is read when less has to stay free', () =>
  belowFloor(async (_, setFloor) => {
    setFloor('1 MB')
    const savepoint = await opened()
    expect([elsewhere.notices, savepoint.find('one').files]).toEqual([[], 4])
    savepoint.close()
  }),
)

onDisk('who makes room does not fill the disk first', () =>
  belowFloor(async used => {
    for (const work of ['gc', 'prune', 'delete'] as const) {
      const savepoint = await opened({ makeRoom: true })
      await (work === 'delete' ? savepoint.delete(['zero']) : savepoint[work]())
      expect([savepoint.find('one').files, used() < 5000]).toEqual([0, true])
      savepoint.close()
    }
  }),
)

onDisk('one is exported with whatever is free; who compares is told what helps', () =>
  belowFloor(async () => {
    const savepoint = await opened()
    const hint = expect.stringMatching(/free some space .*, or lower snapshots\.min_free_bytes/)
    await expect(savepoint.diff({ from: 'zero', to: 'one' })).rejects.toMatchObject({ code: 'backend.failed', hint })
    const exported = await savepoint.exportSnapshot('one', join(elsewhere.base, 'one.tar'))
    expect(exported).toMatchObject({ files: 4 })
    savepoint.close()
  }),
)

onDisk(
  'one in whose place a copy, or a snapshot of the directory around, shows a directory is not called removed',
  async () => {
    space.write('a', '1\n')
    await take('one')
    const [kept] = scene.kept(space)
    const place = dirname(kept!)
    renameSync(place, `${place}.aside`)
    mkdirSync(kept!, { recursive: true })
    const hidden = await opened()
    expect(elsewhere.notices).toEqual([expect.stringMatching(/is not read yet: .* is no subvolume/)])
    expect(elsewhere.notices[0]).toContain('copy what you want of this directory, and remove it)')
    await expect(hidden.purge(space.at('a'))).rejects.toMatchObject({
      message: expect.stringContaining('not read yet'),
    })
    hidden.close()
    rmdirSync(kept!)
    rmdirSync(place)
    renameSync(`${place}.aside`, place)
    const back = await opened()
    expect(back.read('one', space.at('a')).toString()).toBe('1\n')
  },
)

onDisk('the hook of an agent keeps what it has done while the last one is not read', async () => {
  const hook = (name: string) => {
    const input = JSON.stringify({ hook_event_name: name, session_id: 's', cwd: space.dir })
    const env = { ...space.env, SAVEPOINT_HOME: elsewhere.home }
    return savepoint(space, ['hook', 'claude'], { input, stdio: 'pipe', env })
  }
  await take('mid')
  const kept = dirname(dirname(scene.kept(space)[0]!))
  renameSync(kept, `${kept}-away`)
  space.write('agentwork', 'work\n')
  for (const name of ['PostToolUse', 'Stop'])
    expect(hook(name)).toMatchObject({ status: 0, stderr: expect.not.stringContaining('Cannot use') })
  const engine = await opened({ cwd: space.dir })
  expect(engine.snapshots().map(({ type, backend }) => [type, backend])).toEqual([
    ['manual', 'btrfs'],
    ['turn', 'cas'],
  ])
  expect(engine.read('HEAD', 'agentwork').toString()).toBe('work\n')
  renameSync(`${kept}-away`, kept)
})

onDisk('undo and redo put back nothing of one that is lost meanwhile', async () => {
  const lose = (place: string) => run('btrfs', 'subvolume', 'delete', place)
  const inside = (options: object = {}) => opened({ cwd: space.dir, ...options })
  /** Not read; answers what loses it. */
  async function away(label: string): Promise<() => void> {
    const others = scene.kept(space)
    await take(label)
    const kept = dirname(dirname(scene.kept(space)[0]!))
    const [place] = scene.kept(space).filter(path => !others.includes(path))
    renameSync(kept, `${kept}-away`)
    return () => {
      renameSync(`${kept}-away`, kept)
      lose(place!)
    }
  }
  const nothing = { code: 'operation.none' }
  space.write('f', '1\n')
  await (await inside({ backend: 'cas' })).snapshot({ label: 'c' })

  const loseTagged = await away('n')
  const tagging = await inside()
  tagging.tag('x', 'n')
  await tagging.undo()
  loseTagged()
  const tagged = await inside()
  await expect(tagged.redo()).rejects.toMatchObject(nothing)
  expect([...tagged.tags()]).toEqual([])

  const loseUntagged = await away('n')
  const untagging = await inside()
  untagging.tag('y', 'c')
  untagging.tag('x', 'n')
  untagging.tag('y', 'n')
  untagging.deleteTag('x')
  loseUntagged()
  // It takes back the one before: what is lost does not stand in the way of that.
  const untagged = await inside()
  const c = untagged.find('c').id
  expect((await untagged.undo()).operation.summary).toMatch(/^tag y on/)
  expect([...untagged.tags()]).toEqual([['y', c]])
  await expect(untagged.redo()).rejects.toMatchObject(nothing)

  const loseDeleted = await away('n')
  await (await inside({ backend: 'cas' })).snapshot({ label: 'd' })
  const deleting = await inside()
  await deleting.snapshot({ type: 'turn' })
  await deleting.delete(['n', 'd'])
  loseDeleted()
  const deleted = await inside()
  const back = await deleted.undo()
  expect(back.effect).toBe('1 snapshot back')
  expect((await deleted.redo()).effect).toBe('1 snapshot deleted again')
  await deleted.undo()
  expect(deleted.snapshots().map(({ label }) => label)).toEqual(['c', 'd', undefined])

  const loseAlone = await away('n')
  const alone = await inside()
  await alone.snapshot({ type: 'turn' })
  await alone.delete(['n'])
  loseAlone()
  const last = await inside()
  expect(last.operations().findLast(({ kind }) => kind === 'delete')!.state).toBe('past')
})
