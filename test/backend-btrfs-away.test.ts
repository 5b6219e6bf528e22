/** A target on a btrfs that is not mounted is missing, and not gone: nothing is made in its place unless somebody says so. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect } from 'vitest'
import { followDir } from '../src/targets/dir/dir-target.ts'
import { onBtrfs, run, useElsewhere, useScene } from './support/backend-scene.ts'
import { startRun } from './support/background-run.ts'
import { savepoint } from './support/built-cli.ts'
import { runCli } from './support/cli.ts'
import { mountedElsewhere } from './support/mounted-elsewhere.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
})
let elsewhere: Workspace
useElsewhere(made => {
  elsewhere = made
})

const { point, target, opened, whileMounted } = mountedElsewhere(
  () => space,
  () => elsewhere,
)

onDisk('rollback and undo make no plain directory, nor does a hint say so; with force they do', async () => {
  await whileMounted(async () => {
    space.write('a', '1\n')
    await (await opened()).snapshot({ label: 'one' })
    space.write('a', '2\n')
    await (await opened()).rollback('one')
  })
  const away = await opened()
  const hint = expect.stringMatching(/^Mount the filesystem of .*snap_\w+ again\. .*--force/)
  await expect(away.status()).rejects.toMatchObject({ code: 'target.missing', hint })
  const refused = { code: 'target.missing', message: expect.stringMatching(/its filesystem is not mounted$/), hint }
  for (const dryRun of [true, false]) {
    await expect(away.rollback('one', { dryRun })).rejects.toMatchObject(refused)
    await expect(away.undo({ dryRun })).rejects.toMatchObject(refused)
  }
  expect(readdirSync(point())).toEqual([])
  await whileMounted(async () => {
    await (await opened()).undo()
    expect(space.read('a')).toBe('2\n')
  })
  await (await opened({ force: true })).rollback('one')
  expect(readFileSync(join(target(), 'a'), 'utf8')).toBe('1\n')
  // From then on it is that directory which is protected, whatever is mounted.
  rmSync(target(), { recursive: true })
  await (await opened()).rollback('one')
  expect(existsSync(join(target(), 'a'))).toBe(true)
})

onDisk('nor where no filesystem keeps a snapshot: of a directory inside; adopted elsewhere it goes on', async () => {
  const inside = () => join(target(), 'inside')
  const within = (options: object = {}) => opened({ target: inside(), ...options })
  await whileMounted(async () => {
    mkdirSync(inside())
    space.write('inside/a', '1\n')
    expect(await (await within()).snapshot({ label: 'one' })).toMatchObject({ backend: 'cas' })
    space.write('inside/a', '2\n')
    await (await within()).rollback('one')
  })
  const hint = expect.stringMatching(/^Mount \S+ at .*mounted here again\. .*--force/)
  for (const dryRun of [true, false]) {
    await expect((await within()).undo({ dryRun })).rejects.toMatchObject({ code: 'target.missing', hint })
    await expect((await within()).rollback('one', { dryRun })).rejects.toMatchObject({ code: 'target.missing', hint })
  }
  expect(readdirSync(point())).toEqual([])
  await whileMounted(async () => {
    await (await within()).undo()
    expect(space.read('inside/a')).toBe('2\n')
  })
  const moved = join(elsewhere.base, 'moved')
  mkdirSync(moved)
  const { status } = runCli(elsewhere, ['status', '--adopt', inside()], { cwd: moved })
  expect(status).toBe(0)
  await (await opened({ cwd: moved, target: moved })).rollback('one')
  expect(readFileSync(join(moved, 'a'), 'utf8')).toBe('1\n')
  rmSync(moved, { recursive: true })
  await (await opened({ target: moved })).rollback('one')
  expect(existsSync(join(moved, 'a'))).toBe(true)
})

onDisk('nor where the subvolume was mounted by itself, and only its snapshots are at hand', async () => {
  const own = join(elsewhere.base, 'own')
  const there = () => opened({ target: own, home: space.home })
  mkdirSync(own)
  const [disk, subvolume] = [run('findmnt', '-no', 'SOURCE', '-T', space.base), relative(scene.disk(), space.dir)]
  run('mount', '-o', `subvol=${subvolume}`, disk.trim().replace(/\[.*/, ''), own)
  try {
    space.write('a', '1\n')
    expect(await (await there()).snapshot({ label: 'one' })).toMatchObject({ backend: 'btrfs' })
  } finally {
    run('umount', own)
  }
  rmdirSync(own)
  const hint = expect.stringMatching(/^Mount \S+ at .*own again/)
  await expect((await there()).rollback('one')).rejects.toMatchObject({ code: 'target.missing', hint })
  expect(existsSync(own)).toBe(false)
})

onDisk('what was mounted over itself, and is gone, is made again', async () => {
  const own = join(elsewhere.base, 'own')
  const there = () => opened({ target: own })
  mkdirSync(own)
  run('mount', '--bind', own, own)
  try {
    await (await there()).snapshot({ label: 'one' })
  } finally {
    run('umount', own)
  }
  rmdirSync(own)
  await (await there()).rollback('one')
  expect(existsSync(own)).toBe(true)
})

onDisk('what is mounted again under another word, which is all that a tmpfs has for a name, is there', async () => {
  mkdirSync(point())
  for (const word of ['none', 'tmpfs']) {
    run('mount', '-t', 'tmpfs', word, point())
    try {
      if (word === 'none') mkdirSync(target())
      if (word === 'none') await (await opened()).snapshot({ label: 'one' })
      else await (await opened()).rollback('one')
      expect(existsSync(target())).toBe(true)
    } finally {
      run('umount', point())
    }
  }
})

onDisk('what is not there when a run ends is not what that has left', async () => {
  await whileMounted(async () => space.write('a', '1\n'))
  run('mount', '--bind', space.base, point())
  const script = `echo 2 > a; cd /; umount -l '${point()}'`
  const ended = savepoint(elsewhere, ['run', '--', 'sh', '-c', script], { cwd: target() })
  expect([ended.status, ended.stderr]).toEqual([
    0,
    expect.stringMatching(/NOT captured: Cannot see .* is not mounted;/),
  ])
  // What waits for nothing is not named.
  expect(savepoint(elsewhere, ['status', '-t', target()]).stderr).not.toContain('for room in the store')
  const [, before] = /to go back: savepoint rollback (snap_\w+)/.exec(ended.stderr)!
  await whileMounted(async () => {
    await (await opened()).rollback(before!)
    expect(space.read('a')).toBe('1\n')
  })
})

onDisk('nor of one whose supervisor was killed: it can be undone when it is there again', async () => {
  await whileMounted(async () => {
    space.write('a', '1\n')
    const spawn = { cwd: target(), env: elsewhere.env }
    const { child, ended } = await startRun(elsewhere, 'echo 2 > a; cd /; READY; read x', { spawn })
    child.kill('SIGKILL')
    child.stdin!.end()
    await ended
  })
  await expect((await opened()).undo()).rejects.toMatchObject({ code: 'target.missing' })
  await whileMounted(async () => {
    await (await opened()).undo()
    expect(space.read('a')).toBe('1\n')
  })
})

onDisk('nor is / taken for the root of a disk that was taken away, with the same inode number', () => {
  const image = join(elsewhere.base, 'ext4.img')
  mkdirSync(point())
  run('truncate', '-s', '4M', image)
  run('mkfs.ext4', '-q', image)
  run('mount', '-o', 'loop', image, point())
  const followed = followDir(Buffer.from(point()))
  run('umount', '-l', point())
  try {
    expect(followed.place()).toBeUndefined()
  } finally {
    followed.close()
  }
})

function disks(type: string, size: string): string[] {
  const images = ['one.img', 'two.img'].map(name => join(elsewhere.base, name))
  for (const image of images) {
    run('truncate', '-s', size, image)
    run(`mkfs.${type}`, '-q', image)
  }
  return images
}

onDisk('nor is what was mounted over it', async () => {
  const [image] = disks('ext4', '4M')
  mkdirSync(point())
  run('mount', '-o', 'loop', image!, point())
  try {
    mkdirSync(target())
    const script = `echo 2 > a; mount -t tmpfs sheet '${target()}'`
    const ended = savepoint(elsewhere, ['run', '--', 'sh', '-c', script], { cwd: target() })
    expect(ended.stderr).toMatch(/NOT captured: Cannot see .*: sheet is mounted over it, at /)
    const hint = expect.stringMatching(/^sheet is mounted over it, at .*: umount /)
    await expect((await opened()).snapshot()).rejects.toMatchObject({ code: 'target.replaced', hint })
    run('umount', target())
    const [, before] = /to go back: savepoint rollback (snap_\w+)/.exec(ended.stderr)!
    await (await opened()).rollback(before!)
    expect(readdirSync(target())).toEqual([])
    run('mount', '-t', 'tmpfs', 'sheet', point())
    try {
      const umount = { code: 'target.missing', hint: expect.stringMatching(/^umount '.*mounted here'$/) }
      await expect((await opened()).rollback(before!)).rejects.toMatchObject(umount)
      mkdirSync(target())
      await expect((await opened()).snapshot()).rejects.toMatchObject({ code: 'target.replaced', hint })
    } finally {
      run('umount', point())
    }
  } finally {
    run('umount', point())
  }
})

for (const [type, size] of [
  ['ext4', '4M'],
  ['btrfs', '128M'],
] as const)
  onDisk(`nor is another disk at the same place: ${type}`, async () => {
    const [one, two] = disks(type, size)
    const mount = (image: string) => run('mount', '-o', 'loop', image, point())
    mkdirSync(point())
    mount(one!)
    try {
      mkdirSync(target())
      await (await opened()).run({ command: ['sh', '-c', 'echo 2 > a'] })
    } finally {
      run('umount', point())
    }
    mount(two!)
    try {
      const hint = expect.stringMatching(/^Mount \S+ at .*mounted here again/)
      await expect((await opened()).undo()).rejects.toMatchObject({ code: 'target.missing', hint })
      expect(existsSync(target())).toBe(false)
    } finally {
      run('umount', point())
    }
  })
