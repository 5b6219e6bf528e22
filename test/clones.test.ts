/** Large files are shared with the store where the filesystem can: a real XFS on a loop device. */
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { open } from '../src/index.ts'
import { gated, isRoot } from './support/machine.ts'

const MIB = 1024 * 1024
const hasXfs = isRoot && spawnSync('mkfs.xfs', ['-V']).status === 0
const onXfs = (title: string, work: () => Promise<void>) => gated(hasXfs, 'root and mkfs.xfs', title, work)

let scratch: string
let disk: string
beforeAll(() => {
  scratch = fs.mkdtempSync(join(tmpdir(), 'savepoint-xfs-'))
  disk = join(scratch, 'disk')
  fs.mkdirSync(disk)
  if (!hasXfs) return
  execFileSync('truncate', ['-s', '2G', `${disk}.img`])
  execFileSync('mkfs.xfs', ['-q', '-m', 'reflink=1', `${disk}.img`])
  execFileSync('mount', ['-o', 'loop', `${disk}.img`, disk])
})
afterAll(() => {
  if (hasXfs) execFileSync('umount', [disk])
  fs.rmSync(scratch, { recursive: true, force: true })
})

const freeBytes = () => {
  execFileSync('sync', ['-f', disk])
  const { bavail, bsize } = fs.statfsSync(disk)
  return bavail * bsize
}

onXfs('a large file costs no space twice, comes back byte for byte, and a damaged clone is noticed', async () => {
  const work = join(disk, 'work')
  fs.mkdirSync(work)
  const file = join(work, 'large')
  const content = Buffer.alloc(60 * MIB, 'savepoint ')
  content.writeUInt32LE(7, 33 * MIB)
  fs.writeFileSync(file, content)
  const savepoint = await open({
    cwd: work,
    home: join(disk, 'home'),
    create: true,
    env: { ...process.env, HOME: scratch },
  })
  const before = freeBytes()
  const { sizeDelta } = await savepoint.snapshot({ label: 'one' })
  expect(before - freeBytes()).toBeLessThan(8 * MIB)
  expect(sizeDelta).toBeLessThan(MIB)
  const clones = join(disk, 'home/store/clones')
  expect(fs.readdirSync(clones).filter(name => /^[0-9a-f]{64}$/.test(name))).toHaveLength(1)
  expect((await savepoint.verify()).problems).toEqual([])

  fs.writeFileSync(file, 'gone')
  await savepoint.rollback('one')
  expect(fs.readFileSync(file).equals(content)).toBe(true)
  fs.rmSync(file)
  await savepoint.rollback('one', { to: join(scratch, 'elsewhere') })
  expect(fs.readFileSync(join(scratch, 'elsewhere/large')).equals(content)).toBe(true)

  const [clone] = fs.readdirSync(clones)
  await savepoint.rollback('one')
  expect(await savepoint.coverage('large')).toMatchObject({ current: true })
  fs.renameSync(join(clones, clone!), join(disk, 'moved'))
  expect(await savepoint.coverage('large')).toMatchObject({ current: false })
  fs.renameSync(join(disk, 'moved'), join(clones, clone!))
  fs.rmSync(file)

  const fd = fs.openSync(join(clones, clone!), 'r+')
  fs.writeSync(fd, 'x', 12_345)
  fs.closeSync(fd)
  expect((await savepoint.verify()).problems).not.toEqual([])
  await expect(savepoint.rollback('one')).rejects.toMatchObject({ code: 'store.damaged' })
  expect(fs.existsSync(file)).toBe(false)
  savepoint.close()
})

onXfs('gc frees the clone of a snapshot that is long deleted', async () => {
  const work = join(disk, 'freed')
  fs.mkdirSync(work)
  fs.writeFileSync(join(work, 'large'), Buffer.alloc(8 * MIB, 'z'))
  let now = Date.now()
  const home = join(disk, 'home2')
  const savepoint = await open({ cwd: work, home, create: true, now: () => now })
  const first = await savepoint.snapshot()
  fs.rmSync(join(work, 'large'))
  await savepoint.snapshot()
  expect(fs.readdirSync(join(home, 'store/clones'))).toHaveLength(1)
  await savepoint.delete([first.id])
  now += 8 * 24 * 60 * 60 * 1000
  await savepoint.gc()
  expect(fs.readdirSync(join(home, 'store/clones'))).toEqual([])
  expect((await savepoint.verify()).problems).toEqual([])
  savepoint.close()
})

/** What this process has read, and written, by system calls. */
const moved = () => {
  const counts = fs.readFileSync('/proc/self/io', 'utf8')
  return (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(counts)![1])
}

onXfs('a large file is read once, and written never, to be captured', async () => {
  const work = join(disk, 'read once')
  fs.mkdirSync(work)
  fs.writeFileSync(join(work, 'large'), Buffer.alloc(64 * MIB, 'savepoint '))
  const env = { ...process.env, HOME: scratch }
  const savepoint = await open({ cwd: work, home: join(disk, 'home of it'), create: true, env })
  const before = moved()
  await savepoint.snapshot({ label: 'one' })
  const after = moved()
  expect(after('rchar') - before('rchar')).toBeGreaterThanOrEqual(64 * MIB)
  expect(after('rchar') - before('rchar')).toBeLessThan(66 * MIB)
  expect(after('wchar') - before('wchar')).toBeLessThan(2 * MIB)
  savepoint.close()
})

onXfs('holes of a large file stay holes on another filesystem', async () => {
  const work = join(disk, 'holes')
  fs.mkdirSync(work)
  const content = Buffer.alloc(40 * MIB)
  for (const at of [3 * MIB, 20 * MIB + 5]) content.fill('data ', at, at + 100_000)
  const fd = fs.openSync(join(work, 'file'), 'w')
  for (const at of [3 * MIB, 20 * MIB + 5]) fs.writeSync(fd, content, at, 100_000, at)
  fs.ftruncateSync(fd, content.length)
  fs.closeSync(fd)
  const home = join(disk, 'holes-home')
  const savepoint = await open({ cwd: work, home, create: true, env: { ...process.env, HOME: scratch } })
  await savepoint.snapshot({ label: 'one' })
  expect(fs.readdirSync(join(home, 'store/clones')).filter(name => /^[0-9a-f]{64}$/.test(name))).toHaveLength(1)
  const another = join(scratch, 'another')
  await savepoint.rollback('one', { to: another })
  const file = join(another, 'file')
  expect(fs.readFileSync(file).equals(content)).toBe(true)
  expect(fs.statSync(file).blocks * 512).toBeLessThan(MIB)
  savepoint.close()
})

onXfs('what is cloned from the store needs no room, and what the store has, too, makes none', async () => {
  const work = join(disk, 'nearly-full')
  fs.mkdirSync(work)
  const [large, other, fill] = [join(work, 'large'), join(work, 'other'), join(disk, 'fill')]
  fs.writeFileSync(large, Buffer.alloc(80 * MIB, 'large '))
  const env = { ...process.env, HOME: scratch }
  const savepoint = await open({ cwd: work, home: join(disk, 'home'), create: true, env })
  await savepoint.snapshot({ label: 'one' })
  fs.rmSync(large)
  fs.writeFileSync(other, Buffer.alloc(80 * MIB, 'other '))
  await savepoint.snapshot({ label: 'two' })
  execFileSync('fallocate', ['-l', String(freeBytes() - 40 * MIB), fill])
  try {
    await savepoint.rollback('one')
    expect(fs.readdirSync(work)).toEqual(['large'])
  } finally {
    savepoint.close()
    fs.rmSync(fill)
  }
})
