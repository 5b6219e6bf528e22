/**
 * Subvolumes that are not the target: a snapshot that somebody made of it, which has the same inode and time of birth, and one
 * that is nested in it, which no snapshot of it holds.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { addon } from '../src/native/addon.ts'
import { onBtrfs, run, useScene } from './support/backend-scene.ts'
import { runCli } from './support/cli.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
})

const beside = (name: string) => join(space.base, name)
const at = (cwd: string, create = true) => space.open({ cwd, create })
const snapshotOfTarget = (to: string, ...options: string[]) =>
  run('btrfs', 'subvolume', 'snapshot', ...options, space.dir, to)

onDisk('a copy has a timeline of its own, and neither touches the other', async () => {
  const copy = beside('copy')
  space.write('a', 'of the target\n')
  await (await space.open()).snapshot({ label: 'one' })
  snapshotOfTarget(copy)
  await expect(at(copy, false)).rejects.toMatchObject({ code: 'timeline.none' })
  writeFileSync(join(copy, 'a'), 'of the copy\n')
  await (await at(copy)).snapshot({ label: 'two' })
  rmSync(join(copy, 'a'))
  await (await at(copy)).rollback('two')
  expect([space.read('a'), readFileSync(join(copy, 'a'), 'utf8')]).toEqual(['of the target\n', 'of the copy\n'])
  expect((await space.open()).snapshots().map(({ label }) => label)).toEqual(['one'])
  // A second path to the copy is no copy of the target.
  mkdirSync(beside('bound'))
  run('mount', '--bind', copy, beside('bound'))
  try {
    expect((await at(beside('bound'), false)).find('two').label).toBe('two')
  } finally {
    run('umount', beside('bound'))
  }
})

onDisk('a target and its copy that were moved together keep each its own', async () => {
  const copy = beside('copy')
  space.write('a')
  await (await space.open()).snapshot({ label: 'one' })
  snapshotOfTarget(copy)
  await (await at(copy)).snapshot({ label: 'two' })
  mkdirSync(beside('moved'))
  renameSync(copy, beside('moved/copy'))
  renameSync(space.dir, beside('moved/work'))
  for (const [name, label] of [
    ['copy', 'two'],
    ['work', 'one'],
  ] as const)
    expect((await at(beside(`moved/${name}`), false)).snapshots().map(each => each.label)).toEqual([label])
  renameSync(beside('moved/work'), space.dir)
})

onDisk('who looks into a copy first, where both were moved, does not make that the target', async () => {
  space.write('a')
  await (await space.open()).snapshot({ label: 'one' })
  snapshotOfTarget(beside('copy'))
  mkdirSync(beside('moved'))
  for (const [from, to] of [
    [beside('copy'), beside('moved/copy')],
    [space.dir, beside('moved/work')],
  ] as const)
    renameSync(from, to)
  await expect(at(beside('moved/copy'), false)).rejects.toMatchObject({ code: 'timeline.none' })
  expect((await at(beside('moved/work'), false)).find('one').label).toBe('one')
  renameSync(beside('moved/work'), space.dir)
})

onDisk('one that was put in the place of the target is the target, also when it is moved then', async () => {
  space.write('a')
  await (await space.open()).snapshot({ label: 'one' })
  snapshotOfTarget(beside('copy'))
  run('btrfs', 'subvolume', 'delete', space.dir)
  renameSync(beside('copy'), space.dir)
  await (await space.open()).snapshot({ label: 'two' })
  renameSync(space.dir, beside('renamed'))
  expect((await at(beside('renamed'), false)).snapshots().map(({ label }) => label)).toEqual(['one', 'two'])
  renameSync(beside('renamed'), space.dir)
})

onDisk('who looks into a snapshot of a target that is gone does not make that the target', async () => {
  const kept = beside('kept')
  space.write('a', '1\n')
  await (await space.open()).snapshot({ label: 'one' })
  snapshotOfTarget(kept, '-r')
  run('btrfs', 'subvolume', 'delete', space.dir)
  await expect(at(kept, false)).rejects.toMatchObject({ code: 'timeline.none' })
  await (await space.open({ cwd: space.base, target: space.dir })).rollback('one')
  expect([space.read('a'), existsSync(kept)]).toEqual(['1\n', true])
})

onDisk('one that is nested is not called protected by the timeline around it, and has one of its own', async () => {
  const nested = space.at('nested')
  space.write('a')
  run('btrfs', 'subvolume', 'create', nested)
  const file = join(nested, 'deep', 'b')
  space.write('nested/deep/b', '1\n')
  await (await space.open()).snapshot({ label: 'around' })
  for (const inside of [nested, join(nested, 'deep')])
    await expect(at(inside, false)).rejects.toMatchObject({ code: 'timeline.none' })
  await (await at(nested)).snapshot({ label: 'nested' })
  const savepoint = await at(join(nested, 'deep'))
  expect(savepoint.snapshots().map(({ label }) => label)).toEqual(['nested'])
  rmSync(file)
  await savepoint.rollback('nested')
  expect(readFileSync(file, 'utf8')).toBe('1\n')
})

onDisk('show names those that are nested, which it does not hold', async () => {
  space.write('a')
  run('btrfs', 'subvolume', 'create', space.at('nested'))
  await (await space.open()).snapshot({ label: 'one' })
  expect(runCli(space, ['show']).stdout).toContain('\nNot in it (mount or subvolume): nested\n')
  expect(JSON.parse(runCli(space, ['show', '--json']).stdout)).toMatchObject({
    backend: 'btrfs',
    skipped: [],
    mounts: ['nested'],
  })
})

onDisk('what stands for one that is nested in a snapshot has no time, so that the snapshot holds still', async () => {
  space.write('a')
  run('btrfs', 'subvolume', 'create', space.at('nested'))
  await (await space.open()).snapshot({ label: 'one' })
  const savepoint = await space.open()
  const root = addon.openRoot(Buffer.from(savepoint.nativeUsage('one')!.where))
  try {
    const nothing = Buffer.alloc(0)
    const look = () => addon.scanDirs(root, nothing, nothing, nothing)
    const before = await look()
    // Its clock is that of the system, which stands still for some milliseconds.
    await pause(50)
    expect((await look()).equals(before)).toBe(true)
  } finally {
    addon.close(root)
  }
  expect(savepoint.find('one').unsettled).toBe(false)
})

onDisk('what is nested is named by who writes a snapshot elsewhere', () => {
  space.write('a')
  space.write('sub/b')
  run('btrfs', 'subvolume', 'create', space.at('sub/nested'))
  expect(runCli(space, ['snapshot', '-m', 'one']).status).toBe(0)
  const named = 'Not in it (mount or subvolume): sub/nested\n'
  const written = runCli(space, ['rollback', 'one', '--to', join(space.base, 'out')])
  expect([written.status, written.stdout]).toEqual([0, expect.stringContaining(named)])
  const exported = runCli(space, ['export', 'one', join(space.base, 'one.tar')])
  expect([exported.status, exported.stdout]).toEqual([0, expect.stringContaining(named)])
  const { uncaptured } = JSON.parse(runCli(space, ['export', 'one', join(space.base, 'two.tar'), '--json']).stdout)
  expect(uncaptured).toEqual([{ path: 'sub/nested', reason: 'mount' }])
  const part = runCli(space, ['rollback', 'one', '--to', join(space.base, 'part'), '--', 'a'])
  expect(part.stdout).not.toContain('nested')
})

onDisk('what a run changes in one that is nested is not taken back, and that is said', () => {
  space.write('a')
  run('btrfs', 'subvolume', 'create', space.at('nested'))
  for (const name of ['changed', 'removed', 'same']) space.write(`nested/${name}`)
  const unprotectedBy = (script: string) =>
    /NOT protected.*/.exec(runCli(space, ['run', '--', 'sh', '-c', script]).stderr)?.[0]
  const named = 'NOT protected and changed: nested (mount or subvolume; undo cannot take that back)'
  expect(unprotectedBy('cat nested/same > /dev/null; echo 1 > nested/passing; rm nested/passing')).toBeUndefined()
  expect(unprotectedBy('echo 1 > nested/new')).toBe(named)
  expect(unprotectedBy('echo 2 > nested/changed')).toBe(named)
  expect(unprotectedBy('rm nested/removed')).toBe(named)
})

onDisk('a subvolume that was deleted comes back as a plain directory, and that is said', async () => {
  space.write('a', '1\n')
  const savepoint = await space.open()
  await savepoint.snapshot({ label: 'one' })
  await (await space.open()).nativeUsage('one')
  run('btrfs', 'subvolume', 'delete', space.dir)
  await (await space.open({ cwd: space.base, target: space.dir })).rollback('one')
  expect([space.read('a'), space.notices]).toEqual([
    '1\n',
    expect.arrayContaining([
      'the target directory was gone and is made again, as a plain directory, which btrfs does not snapshot',
    ]),
  ])
})

/** The state right before a run deleted its target. Puts an empty one there. */
async function guardOf(script: string) {
  const { stderr } = runCli(space, ['run', '-t', space.dir, '--', 'sh', '-c', script], {
    cwd: space.base,
    env: { ...space.env, PATH: process.env.PATH },
  })
  expect(existsSync(space.dir)).toBe(false)
  const { restore } = await (await space.open({ cwd: space.base, target: space.dir })).undo()
  expect([restore!.leftAlone, space.read('a')]).toEqual([[], '1\n'])
  const savepoint = await space.open()
  const { id } = savepoint.snapshots().findLast(({ type }) => type === 'guard')!
  return { stderr, made: savepoint.read(id, 'made').toString() }
}

onDisk(
  'a run that deletes the subvolume that it works in did that: it is undone, and what it had made is kept',
  async () => {
    space.write('a', '1\n')
    space.write('b', '1\n')
    // Somebody else, which the run has no hand in: it is not a child of it.
    const others = spawn(
      'sh',
      ['-c', 'until [ -e work/made ]; do sleep 0.02; done; echo 2 > work/b; echo new > work/c'],
      {
        cwd: space.base,
      },
    )
    const { stderr, made } = await guardOf(
      `mkdir work/d; rm -rf work/d; echo made > work/made; until [ -s work/c ]; do sleep 0.02; done; btrfs -q subvolume delete work`,
    )
    expect([others.exitCode ?? 0, stderr, made]).toEqual([0, expect.not.stringContaining('not by it'), 'made\n'])
    const said = space.notices.find(text => text.includes('perhaps by somebody else'))!
    expect(said).toMatch(/before btrfs -q subvolume delete work took it away: b, c; to have that back/)
    const words = said.slice(said.indexOf('savepoint revert')).split(' ').slice(1)
    expect(runCli(space, ['-t', space.dir, ...words], { cwd: '/' }).status).toBe(0)
    expect([space.read('b'), space.read('c'), existsSync(space.at('made'))]).toEqual(['2\n', 'new\n', false])
    rmSync(space.dir, { recursive: true })
    run('btrfs', 'subvolume', 'create', space.dir)
  },
)

onDisk('so it is where the run deletes it under another name: moved, or through another mount', async () => {
  space.write('a', '1\n')
  const moved = await guardOf(
    'echo was > work/was; rm work/was; echo moved > work/made; mv work old; btrfs -q subvolume delete old',
  )
  expect([moved.stderr, moved.made]).toEqual([expect.stringContaining('the run deleted the target'), 'moved\n'])
  const kept = (await space.open()).snapshots().find(({ type }) => type === 'kept')
  expect((await space.open()).read(kept!.id, 'was').toString()).toBe('was\n')
  expect((await guardOf('echo plain > work/made; mv work old; rm -rf old')).made).toBe('plain\n')
  rmSync(space.dir, { recursive: true })
  run('btrfs', 'subvolume', 'create', space.dir)
  space.write('a', '1\n')
  await (await space.open({ force: true })).snapshot()
  mkdirSync(beside('top'))
  run('mount', '-o', 'subvolid=5', run('findmnt', '-no', 'SOURCE', '-T', space.base).trim(), beside('top'))
  try {
    const place = join(beside('top'), relative(scene.disk(), space.dir))
    expect((await guardOf(`echo there > work/made; btrfs -q subvolume delete '${place}'`)).made).toBe('there\n')
  } finally {
    run('umount', beside('top'))
  }
  rmSync(space.dir, { recursive: true })
  run('btrfs', 'subvolume', 'create', space.dir)
})

onDisk('what the run leaves out of another subvolume, and deletes with the old one, is its own work', async () => {
  space.write('a', '1\n')
  space.write('b', '1\n')
  const script = 'btrfs -q subvolume create new; cp work/a new; mv work old; mv new work; btrfs -q subvolume delete old'
  const ran = runCli(space, ['run', '-t', space.dir, '--', 'sh', '-c', script], { cwd: space.base })
  const undone = runCli(space, ['undo'])
  expect(ran.stderr + undone.stdout + undone.stderr).not.toContain('somebody else')
  expect([undone.status, space.read('b')]).toEqual([0, '1\n'])
})

for (const [how, last] of [
  ['left', ''],
  ['left, and something of the new one removed', '; sleep 1.2; rm -rf work/d'],
  ['removed', '; btrfs -q subvolume delete old'],
])
  onDisk(`a snapshot of it that the run puts in its place, the old one ${how}, is undone`, async () => {
    space.write('a', '1\n')
    space.write('b', '1\n')
    space.write('d/e', '1\n')
    const script = `btrfs -q subvolume snapshot work new; echo 2 > new/a; rm new/b; mv work old; mv new work${last}`
    const ran = runCli(space, ['run', '-t', space.dir, '--', 'sh', '-c', script], { cwd: space.base })
    expect(ran.stderr).toContain('the run replaced the target directory by another one')
    const undone = runCli(space, ['undo', '-t', space.dir], { cwd: space.base })
    expect(ran.stderr + undone.stdout + undone.stderr).not.toMatch(/somebody else|deleted outside/)
    expect([undone.status, ...['a', 'b', 'd/e'].map(path => space.read(path))]).toEqual([0, '1\n', '1\n', '1\n'])
  })
