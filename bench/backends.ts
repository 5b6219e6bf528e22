/**
 * `npm run bench:backends [-- --files 80000]` (root; mkfs.btrfs, mkfs.xfs and, for ZFS, zfs-fuse): what a snapshot that the
 * filesystem keeps costs beside the bare command, what a comparison after ten changes costs, and what a large file costs
 * where blocks can be shared. Writes bench/backends.md.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { open } from '../src/index.ts'
import { measure, median } from './measure.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const savepoint = here('../savepoint')
const { values } = parseArgs({ options: { files: { type: 'string', default: '80000' } } })
const ROUNDS = 9
const CHANGES = 10
const base = mkdtempSync(join(tmpdir(), 'savepoint-bench-'))
process.env.PATH = `${process.env.PATH}:/usr/sbin:/sbin`
const run = (program: string, ...args: string[]) => void execFileSync(program, args, { stdio: 'pipe' })
const works = (program: string, ...args: string[]) => spawnSync(program, args).status === 0
const SECTOR_BYTES = 512
/** Nothing says more about how far the numbers can be trusted. */
const loadText = () =>
  `The machine had ${availableParallelism()} processors and a load of ${loadavg()[1]!.toFixed(1)} meanwhile.`
const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`
const ms = (seconds: number) => `${Math.round(seconds * 1000)} ms`

/** Of the two tables. */
interface Rows {
  capture: string
  rest: string
}

/** A filesystem in a file, with a target that it can snapshot. */
interface Disk {
  target: string
  home: string
  bare: (round: number) => [program: string, ...args: string[]]
  close: () => Promise<void>
}

async function mounted(kind: 'btrfs' | 'xfs'): Promise<string> {
  const disk = join(base, kind)
  mkdirSync(disk)
  run('truncate', '-s', '8G', `${disk}.img`)
  run(`mkfs.${kind}`, '-q', `${disk}.img`)
  run('mount', '-o', 'loop', `${disk}.img`, disk)
  return disk
}

async function onBtrfs(): Promise<Disk> {
  const disk = await mounted('btrfs')
  const target = join(disk, 'work')
  run('btrfs', 'subvolume', 'create', target)
  return {
    target,
    home: join(disk, 'home'),
    bare: round => ['btrfs', 'subvolume', 'snapshot', '-r', target, join(disk, `bare-${round}`)],
    close: async () => run('umount', disk),
  }
}

async function onZfs(): Promise<Disk | undefined> {
  if (!existsSync('/dev/fuse') || !works('sh', '-c', 'command -v zfs-fuse')) return undefined
  const daemon = works('zfs', 'list') ? undefined : spawn('zfs-fuse', ['--no-daemon'], { cwd: '/', stdio: 'ignore' })
  while (!works('zfs', 'list')) await pause(50)
  const pool = `savepoint-bench-${process.pid}`
  const target = join(base, 'zfs')
  run('truncate', '-s', '4G', join(base, 'zfs.img'))
  run('zpool', 'create', '-o', 'cachefile=none', '-m', target, pool, join(base, 'zfs.img'))
  return {
    target,
    home: join(base, 'zfs-home'),
    bare: round => ['zfs', 'snapshot', `${pool}@bare-${round}`],
    close: async () => {
      while (!works('zpool', 'destroy', '-f', pool)) await pause(100)
      daemon?.kill()
    },
  }
}

async function rounds(work: (round: number) => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) times.push(await work(round))
  return median(times)
}

/** The medians of several, each done once in every round. */
async function byTurns(works: readonly ((round: number) => Promise<number>)[]): Promise<number[]> {
  const times = works.map(() => [] as number[])
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, work] of works.entries()) times[i]!.push(await work(round))
  return times.map(median)
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

async function snapshots(name: string, { target, home, bare, close }: Disk): Promise<Rows> {
  execFileSync(process.execPath, [here('make-tree.mjs'), target, '--files', values.files])
  execFileSync('sync')
  const env = { ...process.env, SAVEPOINT_HOME: home }
  const first = (await measure(savepoint, ['snapshot', '-m', 'first'], { cwd: target, env })).seconds
  const reading = (await measure(savepoint, ['diff'], { cwd: target, env })).seconds
  const seconds = async (program: string, ...args: string[]) =>
    (await measure(program, args, { cwd: target, env })).seconds
  // By turns, because what else the machine does makes more of a difference than what is compared.
  const turns = await byTurns([
    round => seconds(...bare(round)),
    () => seconds(savepoint, '--version'),
    async () => {
      // The first one reads what was taken in the last round.
      await seconds(savepoint, 'snapshots', '--quiet')
      return seconds(savepoint, 'snapshots', '--quiet')
    },
    () => seconds(savepoint, 'snapshot'),
  ])
  const [alone, start, opening, capture] = turns as [number, number, number, number]
  const files = readdirSync(target, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  const settings = { cwd: target, home, env, backend: name as 'btrfs' }
  let compared = 0
  const read = await rounds(async round => {
    for (let i = 0; i < CHANGES; i++) appendFileSync(files[(round * 997 + i * 7919) % files.length]!, 'x\n')
    const taking = await open({ ...settings, leaveUnread: true })
    const taken = await taking.snapshot()
    taking.close()
    return timed(async () => {
      const savepoint = await open(settings)
      const { changes } = await savepoint.diff({ from: taken.parent!, to: taken.id })
      if (round > 0 && changes.length !== CHANGES) throw new Error(`${changes.length} changes were found`)
      savepoint.close()
      compared++
    })
  })
  const again = await rounds(async () => {
    const savepoint = await open(settings)
    const [last, before] = savepoint.snapshots().toReversed()
    const seconds = await timed(() => savepoint.diff({ from: before!.id, to: last!.id }))
    savepoint.close()
    return seconds
  })
  const live = await rounds(async round => {
    for (let i = 0; i < CHANGES; i++) appendFileSync(files[(round * 991 + i * 7919) % files.length]!, 'x\n')
    const savepoint = await open(settings)
    const seconds = await timed(() => savepoint.diff({}))
    savepoint.close()
    return seconds
  })
  if (compared !== ROUNDS) throw new Error('not all rounds were measured')
  await close()
  const over = (what: number) => ms(capture - what - 2 * alone)
  return {
    capture: `| ${name} | ${ms(alone)} | ${ms(start)} | ${ms(opening)} | ${ms(capture)} | ${over(start)} | ${over(opening)} |`,
    rest: `| ${name} | ${ms(first)} | ${ms(reading)} | ${ms(read)} | ${ms(again)} | ${ms(live)} |`,
  }
}

/** Bytes that were read from the device below a directory, and written to it. */
function deviceBytes(directory: string): { read: number; written: number } {
  const { dev } = statSync(directory)
  const numbers = `${dev >> 8} ${dev & 0xff}`
  const line = readFileSync('/proc/diskstats', 'utf8')
    .split('\n')
    .map(text => text.trim().split(/\s+/))
    .find(([major, minor]) => `${major} ${minor}` === numbers)!
  return { read: Number(line[5]) * SECTOR_BYTES, written: Number(line[9]) * SECTOR_BYTES }
}

/** A capture must not read it more often than once: what the device gave is the measure, with nothing in memory before. */
async function largeFile(): Promise<string> {
  const disk = await mounted('xfs')
  const work = join(disk, 'work')
  mkdirSync(work)
  const file = join(work, 'large')
  execFileSync('sh', ['-c', `head -c 1073741824 /dev/urandom > '${file}'`])
  execFileSync('sync')
  const env = { ...process.env, SAVEPOINT_HOME: join(disk, 'home') }
  const withNothingInMemory = async (program: string, ...args: string[]) => {
    writeFileSync('/proc/sys/vm/drop_caches', '3')
    const before = deviceBytes(disk)
    const { seconds } = await measure(program, args, { cwd: work, env })
    execFileSync('sync', ['-f', disk])
    const after = deviceBytes(disk)
    return `${ms(seconds)}, ${mib(after.read - before.read)} read from the device, ${mib(after.written - before.written)} written`
  }
  const reading = await withNothingInMemory('sh', '-c', `cat '${file}' > /dev/null`)
  const capture = await withNothingInMemory(savepoint, 'snapshot', '--backend', 'cas')
  run('umount', disk)
  return `A file of 1 GiB on XFS, with nothing of it in memory:\n\n- \`cat\`: ${reading}\n- \`savepoint snapshot\` (one clone, which is read once to hash it): ${capture}`
}

try {
  const btrfs = await snapshots('btrfs', await onBtrfs())
  const disk = await onZfs()
  const none = '| zfs | zfs-fuse is not installed |'
  const zfs = disk ? await snapshots('zfs', disk) : { capture: none, rest: none }
  const large = await largeFile()
  const page = `# Snapshots that the filesystem keeps

Written by \`npm run bench:backends\` (\`bench/backends.ts\`): a tree of ${values.files} files on filesystems in files; medians.

## Taking one

Limit: twice the bare command (\`btrfs subvolume snapshot\`, \`zfs snapshot\`), and the start of a process. What a start is can be counted in two ways: \`savepoint --version\` is the launcher and
Node, which answer before anything of the program is loaded; \`savepoint snapshots\` loads it and opens the timeline, as every command does, and takes nothing. All four by turns, ${ROUNDS} times.
Once it is known who keeps the snapshots, one capture executes one \`zfs\` command (what the snapshot is known by is asked by who reads it); on btrfs none, but two ioctls.
${loadText()}

| | bare command | \`--version\` | \`snapshots\` | \`snapshot\` | over 2 × bare + \`--version\` | over 2 × bare + \`snapshots\` |
| --- | --- | --- | --- | --- | --- | --- |
${btrfs.capture}
${zfs.capture}

## The first one, and comparing

"Ten changes" are compared by the library, without the start of a process: once with the reading of the new snapshot into the store, once when that is done. The first snapshot has the
probe in it, and the first reading is a whole capture. The live tree is compared with the last snapshot by a look at what each file is called, and when it was changed: the filesystem
tells only what differs between two snapshots.

| | first \`savepoint snapshot\` | first reading | ten changes, read and compared | ten changes, compared | ten changes and more, live |
| --- | --- | --- | --- | --- | --- |
${btrfs.rest}
${zfs.rest}

## A large file

${large}
`
  writeFileSync(here('backends.md'), page)
  process.stdout.write(page)
} finally {
  for (const kind of ['btrfs', 'xfs']) if (works('mountpoint', '-q', join(base, kind))) run('umount', join(base, kind))
  rmSync(base, { recursive: true, force: true })
}
