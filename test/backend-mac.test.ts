/**
 * The backends of macOS, which cannot run here: their programs are stand-ins that print what those of macOS print. Clones are
 * real ones, of a filesystem that can make them.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { apfs } from '../src/backends/apfs.ts'
import { tmutil } from '../src/backends/tmutil.ts'
import { onBtrfs, run, useDisk } from './support/backend-scene.ts'
import { gated } from './support/machine.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
const onMac = (title: string, work: () => Promise<void> | void) => gated(scene.possible, scene.needs, title, work)

useDisk(scene)

let space: Workspace
let programs: string
const [realPath, realPlatform] = [process.env.PATH, process.platform]

beforeEach(() => {
  if (!scene.possible) return
  space = scene.make({ SAVEPOINT_BACKEND: 'apfs' })
  // A subvolume would be a device of its own.
  run('btrfs', 'subvolume', 'delete', space.dir)
  mkdirSync(space.dir)
  mkdirSync(space.home, { mode: 0o700 })
  programs = mkdtempSync(join(space.base, 'programs-'))
  process.env.PATH = `${programs}:${realPath}`
  Object.defineProperty(process, 'platform', { value: 'darwin' })
  program(
    'df',
    `printf '%s\\n' 'Filesystem   512-blocks      Used Available Capacity  Mounted on'
    printf '%s\\n' '/dev/disk3s5  971350180 612480520 325461104    66%    ${space.base}'`,
  )
  mounted('apfs, local, journaled, nobrowse')
  program(
    'cp',
    `test "$1 $2" = '-cRp --' || exit 64
    exec /bin/cp --reflink=always -a -- "$3" "$4"`,
  )
})
afterEach(() => {
  if (!scene.possible) return
  process.env.PATH = realPath
  Object.defineProperty(process, 'platform', { value: realPlatform })
  scene.remove(space)
})

function program(name: string, script: string): void {
  writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(programs, name), 0o755)
}

/** As `mount` of macOS prints it. */
const mounted = (options: string) =>
  program(
    'mount',
    `printf '%s\\n' '/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)'
    printf '%s\\n' 'devfs on /dev (devfs, local, nobrowse)' '/dev/disk3s5 on ${space.base} (${options})'`,
  )

const where = () => ({ key: 'key', directories: [join(space.home, 'native/key')] })
const target = () => Buffer.from(space.dir)

describe('apfs', () => {
  onMac('keeps clones, that are compared, restored and deleted as any other', async () => {
    space.write('a', '1\n')
    space.write('dir/b')
    space.sh('ln -s nowhere link; chmod 600 a')
    expect(await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })).toMatchObject({
      backend: 'apfs',
    })
    space.write('a', '2\n')
    rmSync(space.at('dir'), { recursive: true })
    let now = Date.now()
    const savepoint = await space.open({ now: () => now })
    expect(savepoint.find('one')).toMatchObject({ files: 3 })
    expect((await savepoint.diff({})).changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      'modified a',
      'deleted dir/b',
    ])
    const kept = savepoint.nativeUsage('one')!.where
    expect(readdirSync(kept).toSorted()).toEqual(['a', 'dir', 'link'])
    expect(apfs.statesIn(dirname(kept)).map(({ name }) => name)).toEqual([basename(kept)])
    await savepoint.rollback('one')
    expect([space.read('a'), space.read('dir/b')]).toEqual(['1\n', 'dir/b\n'])
    await savepoint.snapshot({ label: 'two' })
    await savepoint.delete(['one'])
    now += 8 * 24 * 3600 * 1000
    await savepoint.gc()
    expect(existsSync(kept)).toBe(false)
    expect((await savepoint.verify()).problems).toEqual([])
  })

  onMac('is not used elsewhere, on another kind of volume, or where nothing can be cloned', () => {
    expect(apfs.probe(target(), where())).toMatchObject({ works: true })
    // Nothing stays of a probe.
    expect(existsSync(join(space.home, 'native'))).toBe(false)
    mounted('hfs, local, journaled')
    expect(apfs.probe(target(), where())).toMatchObject({ works: false, reason: `${space.base} is not APFS` })
    mounted('apfs, local')
    const directories = [join(dirname(scene.disk()), 'elsewhere/key')]
    expect(apfs.probe(target(), { key: 'key', directories })).toMatchObject({
      works: false,
      reason: `${directories[0]} is on another volume`,
    })
    expect(existsSync(dirname(directories[0]!))).toBe(false)
    Object.defineProperty(process, 'platform', { value: realPlatform })
    expect(apfs.probe(target(), where())).toMatchObject({ works: false, reason: 'this is not macOS' })
  })

  onMac('keeps nothing of a copy that failed', () => {
    space.write('a')
    program('cp', `mkdir "$4"; echo "cp: $3/a: No space left on device" >&2; exit 1`)
    const state = { place: join(space.home, 'native/key'), name: 'snap_x' }
    expect(() => apfs.capture(target(), state)).toThrow(/^Cannot clone the target: .*No space left on device/)
    expect(readdirSync(state.place)).toEqual([])
    expect(apfs.open(state)).toBeUndefined()
    apfs.remove(state, target())
    expect(() => apfs.open(state)).toThrow(/is not there/)
  })
})

describe('tmutil', () => {
  const local = () => join(programs, 'local')
  const state = () => ({ place: join(space.home, 'native/key'), name: 'snap_x' })

  /** Its snapshots are directories in one of our own; they end in .local, or not, as the versions of macOS have it. */
  function standIn(ending: string): void {
    mkdirSync(local())
    program(
      'tmutil',
      `case $1 in
      localsnapshot) date=2024-05-01-10111$(ls ${local()} | wc -l)
        cp -a ${space.dir} ${local()}/com.apple.TimeMachine.$date${ending}
        echo 'NOTE: local snapshots are considered purgeable and may be removed at any time by deleted(8).'
        echo "Created local snapshot with date: $date" ;;
      listlocalsnapshots) echo "Snapshots for disk $2:"; ls ${local()} ;;
      deletelocalsnapshots) rm -r ${local()}/com.apple.TimeMachine.$2${ending} && echo "Deleted local snapshot '$2'" ;;
    esac`,
    )
    program('cp', 'exec /bin/cp "$@"')
    program('mount_apfs', `test "$1 $2 $3" = '-o ro,nobrowse -s' && cp -a ${local()}/$4 "$6/work"`)
    program('umount', 'rm -r "$1/work"')
  }

  for (const ending of ['.local', ''])
    onMac(`keeps, reads and deletes local snapshots named with "${ending}"`, () => {
      standIn(ending)
      space.write('a', '1\n')
      expect(tmutil.probe(target(), where())).toMatchObject({ works: true, place: state().place })
      expect(readdirSync(local())).toEqual([])
      tmutil.capture(target(), state())
      space.write('a', '2\n')
      expect(tmutil.whereOf(state())).toBe('com.apple.TimeMachine.2024-05-01-101110')
      const open = tmutil.open(state())!
      expect(readFileSync(join(open.path.toString(), 'a'), 'utf8')).toBe('1\n')
      open.close()
      expect(existsSync(open.path)).toBe(false)
      tmutil.remove(state(), target())
      tmutil.remove(state(), target())
      expect([readdirSync(local()), existsSync(state().place)]).toEqual([[], false])
    })

  onMac('knows that macOS has removed one, and says what tmutil says', () => {
    standIn('.local')
    tmutil.capture(target(), state())
    rmSync(join(local(), readdirSync(local())[0]!), { recursive: true })
    expect(tmutil.open(state())).toBeUndefined()
    program('tmutil', 'echo "tmutil: localsnapshot requires Full Disk Access privileges." >&2; exit 80')
    expect(tmutil.probe(target(), where())).toMatchObject({
      works: false,
      reason: expect.stringContaining('requires Full Disk Access privileges'),
    })
  })
})
