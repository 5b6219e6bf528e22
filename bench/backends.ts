/**
 * `npm run bench:backends [-- --files 80000]` (root; mkfs.btrfs, mkfs.xfs and, for ZFS, zfs-fuse): what a snapshot that the
 * filesystem keeps costs beside the bare command, what a comparison after ten changes costs, and what a large file costs
 * where blocks can be shared. Writes bench/backends.md.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
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
const ms = (seconds: number) => `${Math.round(seconds * 1000)} ms`

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

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1000
}

async function snapshots(name: string, { target, home, bare, close }: Disk): Promise<string> {
  execFileSync(process.execPath, [here('make-tree.mjs'), target, '--files', values.files])
  execFileSync('sync')
  const env = { ...process.env, SAVEPOINT_HOME: home }
  const start = await rounds(async () => (await measure(savepoint, ['--version'], { env })).seconds)
  const alone = await rounds(async round => {
    const [program, ...args] = bare(round)
    return (await measure(program, args)).seconds
  })
  const first = (await measure(savepoint, ['snapshot', '-m', 'first'], { cwd: target, env })).seconds
  const reading = (await measure(savepoint, ['snapshots'], { cwd: target, env })).seconds
  const capture = await rounds(async () => (await measure(savepoint, ['snapshot'], { cwd: target, env })).seconds)
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
  if (compared !== ROUNDS) throw new Error('not all rounds were measured')
  await close()
  return `| ${name} | ${ms(alone)} | ${ms(start)} | ${ms(first)} | ${ms(capture)} | ${ms(reading)} | ${ms(read)} | ${ms(again)} |`
}

/** A capture must not read it more often than once: the bare reading is the measure. */
async function largeFile(): Promise<string> {
  const disk = await mounted('xfs')
  const work = join(disk, 'work')
  mkdirSync(work)
  const file = join(work, 'large')
  execFileSync('sh', ['-c', `head -c 1073741824 /dev/urandom > '${file}'`])
  execFileSync('sync')
  const env = { ...process.env, SAVEPOINT_HOME: join(disk, 'home') }
  const dropped = () => writeFileSync('/proc/sys/vm/drop_caches', '3')
  dropped()
  const reading = (await measure('sh', ['-c', `cat '${file}' > /dev/null`])).seconds
  dropped()
  const capture = (await measure(savepoint, ['snapshot', '--backend', 'cas'], { cwd: work, env })).seconds
  const used = execFileSync('df', ['--output=used', '-BM', disk]).toString().split('\n')[1]!.trim()
  run('umount', disk)
  return `A file of 1 GiB on XFS: reading it with \`cat\` takes ${ms(reading)}, capturing it (one clone, read once to hash it) ${ms(capture)}; the disk then holds ${used}B.`
}

try {
  const btrfs = await snapshots('btrfs', await onBtrfs())
  const disk = await onZfs()
  const zfs = disk ? await snapshots('zfs', disk) : '| zfs | zfs-fuse is not installed | | | | | | |'
  const large = await largeFile()
  const page = `# Snapshots that the filesystem keeps

Written by \`npm run bench:backends\` (\`bench/backends.ts\`): a tree of ${values.files} files on filesystems in files; medians of ${ROUNDS}. "Ten changes" are compared by the library,
without the start of a process: once with the reading of the new snapshot into the store, once when that is done. The first snapshot has the probe in it, and the first reading is a whole capture.

| | bare command | start of \`savepoint\` | first \`savepoint snapshot\` | \`savepoint snapshot\` | first reading | ten changes, read and compared | ten changes, compared |
| --- | --- | --- | --- | --- | --- | --- | --- |
${btrfs}
${zfs}

${large}
`
  writeFileSync(here('backends.md'), page)
  process.stdout.write(page)
} finally {
  for (const kind of ['btrfs', 'xfs']) if (works('mountpoint', '-q', join(base, kind))) run('umount', join(base, kind))
  rmSync(base, { recursive: true, force: true })
}
