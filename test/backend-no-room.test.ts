/** A snapshot that btrfs keeps, and for which the store has no room: it brings back what it has all the same. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { onFailpoint } from '../src/store/failpoint.ts'
import { onBtrfs, run, useElsewhere, useScene } from './support/backend-scene.ts'
import { runVerbs } from './support/engine-process.ts'
import { differences, imageOf } from './support/tree-image.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
const scene = onBtrfs()
const onDisk = useScene(scene, made => {
  space = made
})
/** Its home is on another disk. */
let elsewhere: Workspace
useElsewhere(made => {
  elsewhere = made
})

/** In KiB, without what is kept in reserve. */
const used = () => {
  const reserve = statSync(join(elsewhere.home, 'store/reserve'), { throwIfNoEntry: false })?.size ?? 0
  return Number(run('df', '--output=used', '-k', elsewhere.home).trim().split('\n')[1]) - reserve / 1024
}
const opened = () => space.open({ home: elsewhere.home })

async function withHomeOf(size: string, work: (home: string) => Promise<void>): Promise<void> {
  const { home } = elsewhere
  mkdirSync(home)
  run('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'none', home)
  try {
    await work(home)
  } finally {
    run('umount', '-l', home)
  }
}

/** In a target of 110 MB, with 64 MB for the store. Answers what was captured. */
const withoutRoom = (work: (wanted: ReturnType<typeof imageOf>) => Promise<void>): Promise<void> =>
  withHomeOf('64m', async home => {
    writeFileSync(join(home, 'config.yaml'), 'snapshots: {min_free_bytes: 1 MB}\n')
    space.sh(
      'mkdir -p large/below empty node/sub; echo s > node/sub/s; for i in 1 2 3 4 5 6 7 8 9 10 11; do head -c 10000000 /dev/urandom > large/$i; done',
    )
    space.sh(
      'mv large/8 large/below; echo 1 > a; chmod 600 a; ln a b; ln -s nowhere link; mkfifo fifo; truncate -s 9M holes; setfattr -n user.x -v y large/1',
    )
    const wanted = imageOf(space.dir)
    await (await space.open({ home, leaveUnread: true })).snapshot({ label: 'one' })
    space.sh('echo 2 > a; rm large/1 large/below/8; rmdir large/below empty; echo mine > new; mv large/2 large/moved')
    await work(wanted)
  })

onDisk('goes back, by path and as a whole, and forth, and fills no disk', () =>
  withoutRoom(async wanted => {
    const changed = imageOf(space.dir)
    const savepoint = await opened()
    const { id } = savepoint.find('one')
    expect(space.notices).toEqual([
      expect.stringMatching(`^${id}, which btrfs keeps, is not read yet: .*(fewer than 1 MB|disk is full)`),
    ])
    expect(used()).toBeLessThan(1000)
    const { files } = await savepoint.rollback('one', { dryRun: true })
    expect(files).toEqual({ created: 4, deleted: 2, replaced: 2, metadata: 0 })
    expect([differences(imageOf(space.dir), changed), used() < 1000]).toEqual([[], true])
    const { safety } = await savepoint.revert('a', { from: 'one' })
    // It comes after the one that is not read, although it cannot be compared with that yet.
    expect(savepoint.log().map(({ snapshot }) => [snapshot.id, snapshot.parent])).toEqual([
      [safety!.id, id],
      [id, undefined],
    ])
    expect([savepoint.snapshotChanges(safety!.id).from, savepoint.find(safety!.id).counts]).toEqual([
      'nothing',
      { added: 4, modified: 0, deleted: 0 },
    ])
    expect([space.read('a'), used() < 1000]).toEqual(['1\n', true])
    await savepoint.undo()
    expect(differences(imageOf(space.dir), changed)).toEqual([])
    // As it last was is in HEAD.
    await savepoint.revert('large/1')
    expect(statSync(space.at('large/1')).size).toBe(10_000_000)
    await savepoint.undo()
    // What has no such path is not read for that.
    const phases: (string | undefined)[] = []
    const looking = await space.open({ home: elsewhere.home, onProgress: ({ phase }) => phases.push(phase) })
    await expect(looking.revert('nothing')).rejects.toMatchObject({ code: 'path.unknown' })
    expect(phases).not.toContain('reading the snapshot')
    await looking.revert('large/1', { dryRun: true })
    expect(phases).toContain('reading the snapshot')
    looking.close()

    const result = await savepoint.rollback('one')
    expect([result.leftAlone, result.uncaptured]).toEqual([[], []])
    expect(differences(imageOf(space.dir), wanted)).toEqual([])
    // Two that had gone, and the moved one, before and after.
    expect(used()).toBeLessThan(45_000)
    // Of what it has: the moved one, and five small ones.
    expect(savepoint.find(result.safety!.id)).toMatchObject({ files: 6, bytes: 10_000_016 })
    expect((await opened()).find('one').files).toBe(0)
    await savepoint.undo()
    expect(differences(imageOf(space.dir), changed)).toEqual([])
    space.notices.length = 0
    await savepoint.changes()
    expect(space.notices).toEqual([
      expect.stringMatching(/^snap_\w+ is PARTIAL: of \d+ paths that it has not, nobody can tell/),
    ])
    await savepoint.redo()
    expect(differences(imageOf(space.dir), wanted)).toEqual([])
    expect((await savepoint.verify()).problems).toEqual([])
    // As soon as there is room, it is read.
    run('mount', '-o', 'remount,size=200m', elsewhere.home)
    const roomy = await opened()
    expect([roomy.snapshotChanges(safety!.id).from, roomy.find(safety!.id).counts]).toEqual([
      id,
      { added: 0, modified: 2, deleted: 4 },
    ])
    expect([roomy.find('one').files, (await roomy.changes()).changes]).toEqual([17, []])
  }),
)

onDisk('one is taken where less is free than shall stay free, and brings back what it has', () =>
  withoutRoom(async () => {
    writeFileSync(join(elsewhere.home, 'config.yaml'), 'snapshots: {min_free_bytes: 60 TB}\n')
    const changed = imageOf(space.dir)
    const taking = await space.open({ home: elsewhere.home, leaveUnread: true })
    expect(await taking.snapshot({ label: 'two' })).toMatchObject({ backend: 'btrfs' })
    space.notices.length = 0
    await taking.status()
    expect(space.notices).toEqual([
      expect.stringMatching(/: until there is room only btrfs keeps snapshots, and no run/),
    ])
    await expect(taking.snapshot({ onlyIfChanged: true })).rejects.toMatchObject({ code: 'disk.full' })
    space.sh('rm large/4; echo 3 > a; rm new')
    const savepoint = await opened()
    expect(used()).toBeLessThan(1000)
    await savepoint.rollback('two')
    expect(differences(imageOf(space.dir), changed)).toEqual([])
    await savepoint.undo()
    expect([space.read('a'), savepoint.find('two').files]).toEqual(['3\n', 0])
  }),
)

onDisk('one that cannot even be noted is not taken', () =>
  withoutRoom(async () => {
    const { home } = elsewhere
    const kept = scene.kept(space)
    run('sh', '-c', `cat /dev/zero > '${home}/filler' || true`)
    await expect((await space.open({ home, leaveUnread: true })).snapshot({})).rejects.toMatchObject({
      code: 'disk.full',
    })
    rmSync(join(home, 'filler'))
    const savepoint = await space.open({ home, leaveUnread: true })
    await savepoint.gc()
    expect([savepoint.snapshots().length, scene.kept(space)]).toEqual([1, kept])
  }),
)

onDisk('is written elsewhere, and exported, with no room at all', () =>
  withoutRoom(async wanted => {
    run('sh', '-c', `head -c 61m /dev/zero > '${elsewhere.home}/filler'`)
    const savepoint = await opened()
    const changed = imageOf(space.dir)
    space.notices.length = 0
    await savepoint.rollback('one', { dryRun: true })
    expect(space.notices).toEqual([
      "the store's disk may have no room for the 30 MB that differ, which it has to take first: without that nothing is done",
    ])
    await expect(savepoint.rollback('one')).rejects.toMatchObject({
      code: 'disk.full',
      message: expect.stringMatching(/^Cannot go back to snap_\w+: the store's disk has no room for what differs$/),
      hint: expect.stringMatching(
        /`savepoint rollback snap_\w+ --to DIR` needs none, and all that it has lies in \/.*\/snap_\w+$/,
      ),
    })
    expect(differences(imageOf(space.dir), changed)).toEqual([])
    const to = join(space.base, 'elsewhere')
    await savepoint.rollback('one', { to })
    expect(differences(imageOf(to), wanted)).toEqual([])
    await savepoint.rollback('one', { to: join(space.base, 'part'), paths: ['large/below'] })
    expect(readFileSync(join(space.base, 'part/large/below/8')).equals(readFileSync(join(to, 'large/below/8')))).toBe(
      true,
    )
    const archive = join(space.base, 'one.tar')
    await savepoint.exportSnapshot('one', archive)
    const unpacked = join(space.base, 'unpacked')
    mkdirSync(unpacked)
    run('tar', 'xf', archive, '-C', unpacked)
    expect(run('diff', '-r', '--no-dereference', '-x', 'fifo', to, unpacked)).toBe('')
    await expect(savepoint.rollback('one', { to: join(space.base, 'none'), paths: ['nothing'] })).rejects.toMatchObject(
      {
        code: 'path.unknown',
      },
    )
  }),
)

onDisk('what takes more room than it seemed to at first fits all the same where there is enough', () => {
  // Small files, then a large one whose first chunks are stored before it counts as read; and holes, which take nothing.
  space.sh('mkdir small; for i in $(seq 100); do echo $i > small/$i; done; truncate -s 2G zholes')
  writeFileSync(space.at('large'), randomBytes(30_000_000))
  return withHomeOf('400m', async home => {
    writeFileSync(join(home, 'config.yaml'), 'snapshots: {min_free_bytes: 100 MB}\n')
    await (await space.open({ home, leaveUnread: true })).snapshot({ label: 'one' })
    space.sh('echo mine > small/1; head -c 30000000 /dev/urandom > other')
    const savepoint = await space.open({ home, backend: 'cas' })
    expect([space.notices, savepoint.find('one').files]).toEqual([[], 102])
    space.write('small/2', 'mine')
    const reverted = await savepoint.revert('small/2')
    expect(savepoint.find(reverted.safety!.id)).toMatchObject({ files: 103, skippedCount: 0 })
    expect(space.notices).toEqual([])
  })
})

onDisk('a path that is as it was then is not said to be missing, and keeps no other from coming back', () =>
  withoutRoom(async () => {
    const savepoint = await opened()
    const nothing = await savepoint.revert('large/3', { from: 'one' })
    expect([nothing.changes, nothing.leftAlone, nothing.uncaptured]).toEqual([[], [], []])
    expect((await savepoint.revert('large/3')).changes).toEqual([])
    const both = await savepoint.rollback('one', { paths: ['large/3', 'large/1', 'node'] })
    expect(both.changes.map(({ path }) => path)).toEqual(['large/1'])
    expect([both.leftAlone, both.uncaptured]).toEqual([[], []])
    for (const options of [{ paths: ['nothing'] }, { paths: ['large/1', 'nothing'] }])
      await expect(savepoint.rollback('one', options)).rejects.toMatchObject({ code: 'path.unknown' })
  }),
)

onDisk('why it is not read is said where the home is read-only, too', () =>
  withoutRoom(async () => {
    run('mount', '-o', 'bind,ro', elsewhere.home, elsewhere.home)
    try {
      const savepoint = await opened()
      const hint = expect.stringMatching(/the notice before says why/)
      await expect(savepoint.diff({ from: 'one' })).rejects.toMatchObject({ code: 'backend.failed', hint })
      expect(space.notices).toEqual([
        expect.stringMatching(
          /^what filesystems keep of snapshots is not read yet: Cannot write to .*: it is read-only/,
        ),
      ])
      expect((await savepoint.rollback('one', { dryRun: true })).files.created).toBe(4)
      savepoint.close()
    } finally {
      run('umount', '-l', elsewhere.home)
    }
  }),
)

onDisk('what stood in the place of a directory goes with it, or is named for that', () =>
  withoutRoom(async wanted => {
    space.sh('mv large ..; rm -rf node; echo file > large; ln -s nowhere node')
    const savepoint = await opened()
    await expect(savepoint.rollback('one', { to: join(space.base, '.savepoint-snapshots/x') })).rejects.toMatchObject({
      message: expect.stringMatching(/belongs to Savepoint itself$/),
    })
    const part = await savepoint.revert('large/below', { from: 'one' })
    expect([part.leftAlone, space.read('large')]).toEqual([[{ path: 'large', why: 'in-the-way' }], 'file\n'])
    space.sh('rm large; mv ../large .')
    const result = await savepoint.rollback('one')
    expect([result.leftAlone, differences(imageOf(space.dir), wanted)]).toEqual([[], []])
  }),
)

onDisk('what is removed while it is lent was not there any more, and what somebody changed in it is noted', () =>
  withoutRoom(async () => {
    const [kept] = scene.kept(space)
    run('btrfs', 'property', 'set', '-f', kept!, 'ro', 'false')
    writeFileSync(join(kept!, 'a'), 'changed\n')
    const savepoint = await opened()
    for (const name of ['1', '2']) await savepoint.rollback('one', { to: join(space.base, name), paths: ['a'] })
    expect(savepoint.operations().filter(({ rule }) => rule === 'changed').length).toBe(1)
    const stop = onFailpoint('capture:before-root', () => void run('btrfs', 'subvolume', 'delete', kept!))
    await expect(savepoint.exportSnapshot('one', join(space.base, 'one.tar')).finally(stop)).rejects.toMatchObject({
      message: expect.stringMatching(/its btrfs snapshot was removed meanwhile$/),
    })
  }),
)

onDisk('what somebody changes while that is stored is not said to be as it was', () =>
  withoutRoom(async () => {
    const savepoint = await opened()
    const stop = onFailpoint('lent:stored', () => space.sh('rm large/3; echo edited > large/4'))
    const result = await savepoint.rollback('one').finally(stop)
    expect(result.leftAlone).toEqual(['large/3', 'large/4'].map(path => ({ path, why: 'edited' })))
    expect(space.read('large/4')).toBe('edited\n')
    await savepoint.rollback('one')
    expect(['3', '4'].map(name => statSync(space.at(`large/${name}`)).size)).toEqual([10_000_000, 10_000_000])
  }),
)

for (const failpoint of ['store:before-sync', 'lent:stored', 'restore:journal', 'restore:placed', 'restore:synced'])
  onDisk(`killed at ${failpoint}, the next command completes it, or nothing was changed`, () =>
    withoutRoom(async wanted => {
      const changed = imageOf(space.dir)
      const env = { SAVEPOINT_HOME: elsewhere.home }
      const killed = await runVerbs(space, [['rollback', 'one']], { failpoint, env })
      expect(killed.signal).toBe('SIGKILL')
      const savepoint = await opened()
      const isBegun = failpoint.startsWith('restore')
      const noRoom = space.notices.filter(text => text.startsWith('for want of room'))
      expect(noRoom).toEqual(isBegun ? [expect.stringMatching(/ of now (is|are) not in it$/)] : [])
      expect(differences(imageOf(space.dir), isBegun ? wanted : changed)).toEqual([])
      await savepoint.gc()
      if (isBegun) await savepoint.undo()
      expect(differences(imageOf(space.dir), changed)).toEqual([])
      rmSync(space.at('a'))
      await savepoint.rollback('one')
      expect(differences(imageOf(space.dir), wanted)).toEqual([])
    }),
  )
