/** Real filesystems for the backends: btrfs on a loop device, a ZFS pool in a file served by zfs-fuse, and a plain directory. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { canMount, gated, isRoot } from './machine.ts'
import { Workspace } from './workspace.ts'

const PATH = `${process.env.PATH}:/usr/sbin:/sbin`
const READY_MS = 30_000

/**
 * When a process that asked zfs-fuse something is killed before that has read the question, as the tests do, it waits for one that is
 * no longer there, and answers nobody, on any filesystem, until there is another one on the same. Idle, it polls instead.
 */
const WAKE_UP = `waits() { grep -qs fuse_dev_do_read /proc/$1/task/*/wchan; }
while sleep 1 && kill -0 $1; do
  waits $1 && sleep 1 && waits $1 || continue
  while read -r device place type rest; do
    case $type in fuse*) timeout 1 stat -f "$place" & ;; esac
  done < /proc/mounts
done`

/** A filesystem that lives as long as a test file. */
export interface Scene {
  name: 'cas' | 'btrfs' | 'zfs' | 'archive'
  possible: boolean
  needs: string
  setUp(): Promise<void>
  /** A workspace whose directory is itself a subvolume or dataset. */
  make(settings?: NodeJS.ProcessEnv): Workspace
  remove(space: Workspace): void
  /** Names of the states that the filesystem keeps of it. */
  kept(space: Workspace): string[]
  tearDown(): Promise<void>
}

export const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { env: { ...process.env, PATH }, stdio: 'pipe' }).toString()
const works = (program: string, ...args: string[]): boolean =>
  spawnSync(program, args, { env: { ...process.env, PATH } }).status === 0

export const plain: Scene = {
  name: 'cas',
  possible: true,
  needs: '',
  async setUp() {},
  make: settings => new Workspace('work', { ...settings, SAVEPOINT_BACKEND: 'cas' }),
  remove: space => space.remove(),
  kept: () => [],
  async tearDown() {},
}

/** For the tests of a file, or of a part of one: the scene is there. */
export function useDisk(scene: Scene): void {
  beforeAll(async () => {
    if (scene.possible) await scene.setUp()
  }, 60_000)
  afterAll(async () => {
    if (scene.possible) await scene.tearDown()
  }, 60_000)
}

/** For the tests of a file: the scene, and a workspace on it for each. Returns what defines one. */
export function useScene(scene: Scene, take: (space: Workspace) => void) {
  let space: Workspace
  useDisk(scene)
  beforeEach(() => {
    if (!scene.possible) return
    space = scene.make()
    take(space)
  })
  afterEach(() => {
    if (scene.possible) scene.remove(space)
  })
  return (title: string, work: () => Promise<void> | void): void => gated(scene.possible, scene.needs, title, work)
}

/** Another workspace for each test of a file, on another disk than the scene. */
export function useElsewhere(take: (space: Workspace) => void): void {
  let elsewhere: Workspace
  beforeEach(() => {
    elsewhere = new Workspace()
    take(elsewhere)
  })
  afterEach(() => elsewhere.remove())
}

/** Works wherever the store does. */
export const archives: Scene = {
  ...plain,
  name: 'archive',
  make: settings => new Workspace('work', { ...settings, SAVEPOINT_BACKEND: 'archive' }),
  kept: space => archivesOf(space).filter(path => !basename(path).startsWith('.')),
}

/** With what a killed process has left. */
export const archivesOf = (space: Workspace): string[] =>
  globSync('timelines/*/archives/{.*,*}', { cwd: space.home }).map(path => join(space.home, path))

/** `options`: how it is mounted. A small one keeps data and metadata in the same blocks, so that it can be filled. */
export function onBtrfs(options = 'user_subvol_rm_allowed', small = false): Scene & { disk: () => string } {
  let scratch = ''
  const disk = () => join(scratch, 'disk')
  return {
    name: 'btrfs',
    possible: canMount && works('mkfs.btrfs', '--version'),
    needs: 'root and mkfs.btrfs',
    disk,
    async setUp() {
      scratch = mkdtempSync(join(tmpdir(), 'savepoint-btrfs-'))
      mkdirSync(disk())
      run('truncate', '-s', small ? '64M' : '3G', `${disk()}.img`)
      run('mkfs.btrfs', '-q', ...(small ? ['--mixed'] : []), `${disk()}.img`)
      run('mount', '-o', `loop,${options}`, `${disk()}.img`, disk())
    },
    make(settings) {
      const space = within(disk(), settings)
      rmdirSync(space.dir)
      run('btrfs', 'subvolume', 'create', space.dir)
      return space
    },
    remove(space) {
      for (const path of subvolumesIn(space.base)) run('btrfs', 'subvolume', 'delete', path)
      space.remove()
    },
    kept: space => subvolumesIn(space.base).filter(path => /snap_\w+$/.test(path)),
    async tearDown() {
      if (existsSync(disk())) run('umount', disk())
      rmSync(scratch, { recursive: true, force: true })
    },
  }
}

/** Everything of it lies on that disk. */
function within(disk: string, settings: NodeJS.ProcessEnv = {}): Workspace {
  const before = process.env.TMPDIR
  process.env.TMPDIR = disk
  try {
    return new Workspace('work', settings)
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

/** The root of each is inode 256. The innermost first. */
const subvolumesIn = (directory: string): string[] =>
  run('find', directory, '-depth', '-type', 'd', '-inum', '256').split('\n').filter(Boolean)

const POOL = `savepoint-test-${process.pid}`

export interface PoolScene extends Scene {
  /** Whatever lies in it is out of reach meanwhile, and the directories that it was mounted on may be gone. */
  whileExported(work: (directory: string) => Promise<void>): Promise<void>
  /** An empty one in the place of that of the workspace. Answers how that is called now. */
  replaceDataset(space: Workspace): string
  snapshotsOf(dataset: string): string[]
}

export function onZfs(): PoolScene {
  let scratch = ''
  let daemon: ChildProcess | undefined
  let count = 0
  const datasets = new Map<Workspace, string>()
  const snapshotsOf = (dataset: string) =>
    run('zfs', 'list', '-H', '-o', 'name', '-t', 'snapshot', '-r', dataset).split('\n').filter(Boolean)
  return {
    name: 'zfs',
    possible: isRoot && existsSync('/dev/fuse') && works('sh', '-c', 'command -v zfs-fuse'),
    needs: 'root and zfs-fuse',
    async setUp() {
      scratch = mkdtempSync(join(tmpdir(), 'savepoint-zfs-'))
      if (!works('zfs', 'list')) {
        daemon = spawn('zfs-fuse', ['--no-daemon'], { env: { PATH }, cwd: '/', stdio: 'ignore' })
        const end = Date.now() + READY_MS
        while (!works('zfs', 'list') && Date.now() < end) await pause(50)
        spawn('sh', ['-c', WAKE_UP, 'sh', String(daemon.pid)], { stdio: 'ignore' }).unref()
      }
      run('truncate', '-s', '256M', join(scratch, 'pool.img'))
      run('zpool', 'create', '-o', 'cachefile=none', '-m', join(scratch, 'pool'), POOL, join(scratch, 'pool.img'))
    },
    make(settings) {
      const space = new Workspace('work', settings)
      const dataset = `${POOL}/${count++}`
      run('zfs', 'create', '-o', `mountpoint=${space.dir}`, dataset)
      datasets.set(space, dataset)
      return space
    },
    remove(space) {
      retried('zfs', 'destroy', '-rRf', datasets.get(space)!)
      space.remove()
    },
    kept: space => snapshotsOf(datasets.get(space)!),
    snapshotsOf,
    replaceDataset(space) {
      const dataset = datasets.get(space)!
      const old = `${dataset}.old`
      retried('zfs', 'unmount', dataset)
      retried('zfs', 'rename', dataset, old)
      run('zfs', 'set', 'mountpoint=none', old)
      run('zfs', 'create', '-o', `mountpoint=${space.dir}`, dataset)
      return old
    },
    async whileExported(work) {
      retried('zpool', 'export', POOL)
      try {
        await work(scratch)
      } finally {
        run('zpool', 'import', '-d', scratch, '-o', 'cachefile=none', POOL)
      }
    },
    async tearDown() {
      if (works('zpool', 'list', POOL)) retried('zpool', 'destroy', '-f', POOL)
      if (daemon) {
        const ended = new Promise(resolve => daemon!.once('exit', resolve))
        daemon.kill()
        await ended
      }
      rmSync(scratch, { recursive: true, force: true })
    },
  }
}

/** zfs-fuse is busy for a moment with what was in use a moment ago. */
export function retried(program: string, ...args: string[]): void {
  for (let tries = 0; tries < 50 && !works(program, ...args); tries++)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
}
