/** Where btrfs keeps snapshots: in directories that are ours alone; and what is not mounted is not gone. */
import { chownSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { doctor } from '../src/index.ts'
import { onBtrfs, run } from './support/backend-scene.ts'
import { savepoint as cli } from './support/built-cli.ts'
import { gated } from './support/machine.ts'
import { mountedElsewhere } from './support/mounted-elsewhere.ts'
import type { Workspace } from './support/workspace.ts'

/** The home is on another disk, so that snapshots are kept beside the target. */
const [scene, other] = [onBtrfs(), onBtrfs('noatime')]
const onDisk = (title: string, work: () => Promise<void> | void) => gated(scene.possible, scene.needs, title, work)
const SOMEBODY = 4321

beforeAll(async () => {
  if (scene.possible) for (const each of [scene, other]) await each.setUp()
}, 60_000)
afterAll(async () => {
  if (scene.possible) for (const each of [scene, other]) await each.tearDown()
}, 60_000)

let space: Workspace
let elsewhere: Workspace
beforeEach(() => {
  if (!scene.possible) return
  space = scene.make()
  elsewhere = other.make()
})
afterEach(() => {
  if (!scene.possible) return
  scene.remove(space)
  other.remove(elsewhere)
})

const beside = (name: string) => join(space.base, name)

describe('a snapshot that is kept', () => {
  const lookInto = async (home: string) => {
    space.write('sub/a', '1\n')
    const savepoint = await space.open({ home, leaveUnread: true })
    const { id } = await savepoint.snapshot({ label: 'one' })
    const where = savepoint.nativeUsage(id)!.where
    const env = { ...space.env, SAVEPOINT_HOME: home }
    const said = `${id} of ${space.dir}, kept by the filesystem\n  hint: What you need can be copied from here. In ${space.dir}, `
    const runIn = (cwd: string, ...args: string[]) => cli(space, args, { cwd, env })
    for (const cwd of [where, join(where, 'sub')])
      for (const args of [
        ['snapshot'],
        ['run', '--', 'touch', 'x'],
        ['status'],
        ['log'],
        ['status', '--adopt', space.dir],
      ]) {
        const { status, stderr } = runIn(cwd, ...args)
        expect([args, status, stderr]).toEqual([
          args,
          args[0] === 'run' ? 125 : 1,
          expect.stringContaining(`Cannot use ${cwd}: this is snapshot ${said}`),
        ])
      }
    expect(readdirSync(join(home, 'timelines'))).toHaveLength(1)
    expect(runIn(where, 'verify')).toMatchObject({ status: 0 })
    // It does what it says.
    const [, from, to] = /`savepoint revert PATH (.*?)`.*`savepoint (rollback .*?) PLACE`/.exec(
      runIn(where, 'log').stderr,
    )!
    rmSync(space.at('sub/a'))
    expect(runIn(space.dir, 'revert', 'sub/a', ...from!.split(' '))).toMatchObject({ status: 0, stderr: '' })
    expect(space.read('sub/a')).toBe('1\n')
    expect(runIn(space.dir, ...to!.split(' '), beside('written'))).toMatchObject({ status: 0 })
    expect(readdirSync(beside('written'))).toEqual(['sub'])
  }

  onDisk('beside the target is no place for a timeline', () => lookInto(elsewhere.home))
  onDisk('nor is one in the home', () => lookInto(space.home))
})

describe('a directory for snapshots', () => {
  const foreign = (name: string): void => {
    mkdirSync(beside(name))
    chownSync(beside(name), SOMEBODY, SOMEBODY)
  }
  const kept = async () => {
    const savepoint = await space.open({ home: elsewhere.home, leaveUnread: true })
    const { id } = await savepoint.snapshot({ label: 'one' })
    return (await space.open({ home: elsewhere.home })).nativeUsage(id)?.where
  }

  onDisk('of another user, a link, or one that others may write in, is not used, but one of our own', async () => {
    space.write('a', '1\n')
    const own = new RegExp(`/\\.savepoint-snapshots-${process.geteuid!()}/[^/]+/snap_`)
    mkdirSync(beside('theirs'))
    symlinkSync('theirs', beside('.savepoint-snapshots'))
    expect(await kept()).toMatch(own)
    rmSync(beside('.savepoint-snapshots'))
    foreign('.savepoint-snapshots')
    elsewhere.sh(`rm -rf '${elsewhere.home}'`)
    expect(await kept()).toMatch(own)
    const savepoint = await space.open({ home: elsewhere.home })
    space.write('a', '2\n')
    await savepoint.rollback('one')
    expect(space.read('a')).toBe('1\n')
    // Found to be open to others later, it is not used any more, and the next one goes elsewhere.
    rmdirSync(beside('.savepoint-snapshots'))
    run('chmod', '777', beside(`.savepoint-snapshots-${process.geteuid!()}`))
    await expect(kept()).rejects.toMatchObject({
      code: 'backend.failed',
      message: expect.stringContaining('other users may write in'),
      hint: expect.stringContaining('--backend cas'),
    })
    expect(await kept()).toMatch(/\/\.savepoint-snapshots\/[^/]+\/snap_/)
  })

  onDisk('is missing where all names are taken: the store keeps it, and who names btrfs is told why', async () => {
    space.write('a')
    foreign('.savepoint-snapshots')
    foreign(`.savepoint-snapshots-${process.geteuid!()}`)
    expect(await kept()).toBeUndefined()
    await expect((await space.open({ home: elsewhere.home, backend: 'btrfs' })).snapshot({})).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('belongs to another user'),
    })
    // Each that was tried is named.
    const { checks } = await doctor({ cwd: space.dir, home: elsewhere.home, env: space.env })
    const { detail } = checks.find(({ name }) => name === 'backend')!
    for (const place of [
      join(elsewhere.home, 'native'),
      ...['', `-${process.geteuid!()}`].map(end => beside(`.savepoint-snapshots${end}`)),
    ])
      expect(detail).toContain(place)
  })

  onDisk('in a home that is not made yet is foreseen by doctor, which leaves nothing behind', async () => {
    const target = join(elsewhere.base, 'target')
    mkdirSync(target)
    run('mount', '--bind', space.dir, target)
    try {
      const home = beside('not made yet')
      const { checks } = await doctor({ cwd: target, home, env: space.env })
      expect(checks.find(({ name }) => name === 'backend')!.detail).toMatch(/^btrfs: the filesystem keeps/)
      expect(readdirSync(space.base).filter(name => name.startsWith('.') || name === basename(home))).toEqual([])
      const savepoint = await space.open({ cwd: target, home })
      expect((await savepoint.snapshot({})).backend).toBe('btrfs')
      savepoint.close()
    } finally {
      run('umount', target)
    }
  })

  onDisk(
    'of a subvolume that is not mounted any more: its mount point is not offered as the new target alone',
    async () => {
      const target = join(elsewhere.base, 'target')
      mkdirSync(target)
      run('mount', '--bind', space.dir, target)
      const opened = () => space.open({ cwd: target, home: beside('home') })
      let where: string
      try {
        const { id } = await (await opened()).snapshot({})
        where = (await opened()).nativeUsage(id)!.where
      } finally {
        run('umount', target)
      }
      await expect((await opened()).snapshot({})).rejects.toMatchObject({
        code: 'target.replaced',
        hint: expect.stringContaining(
          `Nothing is mounted there: if the filesystem of ${where} was, mount it again; if `,
        ),
      })
    },
  )

  onDisk('cannot be made on a filesystem that is read-only: doctor says that', async () => {
    run('mount', '-o', 'remount,ro', scene.disk())
    try {
      const { checks } = await doctor({ cwd: space.dir, home: elsewhere.home, env: space.env })
      expect(checks.find(({ name }) => name === 'backend')!.detail).toMatch(
        /btrfs: .*cannot be made: the filesystem is read-only/,
      )
    } finally {
      run('mount', '-o', 'remount,rw', scene.disk())
    }
  })
})

describe('a filesystem that is not mounted, on a mount point that is on btrfs as well', () => {
  const { target, opened, whileMounted } = mountedElsewhere(
    () => space,
    () => elsewhere,
  )

  onDisk('has lost nothing, and stops nothing: new ones are kept meanwhile', async () => {
    await whileMounted(async () => {
      space.write('a', '1\n')
      await (await opened()).snapshot({ label: 'read' })
      space.write('a', '2\n')
      await (await opened({ leaveUnread: true })).snapshot({ label: 'unread' })
    })
    const away = await opened()
    expect(space.notices).toEqual([
      expect.stringMatching(/is not read yet: .* is not there \(mount its filesystem; if that is gone for good/),
    ])
    expect(away.snapshots().map(({ label }) => label)).toEqual(['read', 'unread'])
    const message = expect.stringMatching(/^Cannot find snap_\w+: .* is not there \(mount its filesystem/)
    await expect(away.rollback('unread')).rejects.toMatchObject({ message })
    // Another directory is there now: HEAD cannot be read, and stops neither snapshots nor going back.
    mkdirSync(target())
    const file = join(target(), 'a')
    writeFileSync(file, '3\n')
    const stored = await opened({ force: true, backend: 'cas' })
    expect(await stored.snapshot({ label: 'stored' })).toMatchObject({ backend: 'cas', counts: { modified: 1 } })
    await stored.rollback('read')
    await stored.undo()
    expect(stored.find('stored').parent).toBe(stored.find('unread').id)
    // Whoever asks about something else is told.
    expect((await stored.history(file)).versions.map(({ snapshot }) => snapshot.label)).not.toContain('unread')
    expect(await stored.coverage(file)).toMatchObject({ covered: true })
    expect(await stored.why(file)).toMatchObject({ causes: [] })
    rmSync(target(), { recursive: true })
    await whileMounted(async () => {
      const back = await opened()
      expect(back.read('unread', file).toString()).toBe('2\n')
      // It was counted against the one before that could be read.
      expect(back.snapshotChanges('stored')).toMatchObject({ from: back.find('unread').id, changes: [{ path: 'a' }] })
      expect(back.snapshots().map(({ label }) => label)).toEqual(expect.arrayContaining(['read', 'unread', 'stored']))
      expect((await back.verify()).problems).toEqual([])
    })
  })

  onDisk('keeps what shall go until it is there again: a purge is not done before', async () => {
    await whileMounted(async () => {
      space.write('secret')
      await (await opened()).snapshot({ label: 'one' })
    })
    await expect((await opened()).purge(join(target(), 'secret'))).rejects.toMatchObject({
      message: expect.stringMatching(/^Cannot complete the purge: .* is not there/),
    })
    expect(scene.kept(space)).toHaveLength(1)
    await whileMounted(async () => {
      await opened()
      expect(space.notices.at(-1)).toBe('completed a purge that was interrupted: secret')
      expect(scene.kept(space)).toEqual([])
    })
  })
})

describe('a disk in whose place another one is mounted', () => {
  const opened = (options: object = {}) => space.open({ home: elsewhere.home, ...options })
  const take = async (label: string) => {
    space.write('a', `${label}\n`)
    await (await opened({ leaveUnread: true, force: true })).snapshot({ label })
  }

  onDisk('keeps what nobody has read, whatever the other one keeps under the same path', async () => {
    await take('first')
    renameSync(space.base, `${space.base}.away`)
    try {
      mkdirSync(space.base)
      run('btrfs', 'subvolume', 'create', space.dir)
      await take('second')
      expect((await opened()).read('second', 'a').toString()).toBe('second\n')
      expect(space.notices.join()).toContain('is not read yet')
      await take('third')
    } finally {
      renameSync(space.base, `${space.base}.other`)
      renameSync(`${space.base}.away`, space.base)
    }
    const back = await opened({ force: true })
    expect(back.read('first', 'a').toString()).toBe('first\n')
    expect(back.snapshots().map(({ label }) => label)).toEqual(['first', 'second', 'third'])
    renameSync(space.base, `${space.base}.away`)
    renameSync(`${space.base}.other`, space.base)
    expect((await opened({ force: true })).read('third', 'a').toString()).toBe('third\n')
    scene.remove(space)
    renameSync(`${space.base}.away`, space.base)
  })
})

describe('a directory for snapshots that was moved', () => {
  const labels = async (options: object) => {
    const savepoint = await space.open(options)
    expect(space.notices.filter(text => !text.includes('its timeline moves with it'))).toEqual([])
    return ['read', 'unread'].map(label => savepoint.read(label, 'a').toString())
  }
  const taken = async (options: object) => {
    space.write('a', '1\n')
    await (await space.open(options)).snapshot({ label: 'read' })
    space.write('a', '2\n')
    await (await space.open({ ...options, leaveUnread: true })).snapshot({ label: 'unread' })
  }

  onDisk('with the directory around the target: what it keeps is found, read and purged', async () => {
    const { home } = elsewhere
    mkdirSync(beside('around'))
    renameSync(space.dir, beside('around/work'))
    const at = (around: string) => ({ home, cwd: beside(`${around}/work`) })
    writeFileSync(beside('around/work/a'), '1\n')
    await (await space.open(at('around'))).snapshot({ label: 'read' })
    writeFileSync(beside('around/work/a'), '2\n')
    await (await space.open({ ...at('around'), leaveUnread: true })).snapshot({ label: 'unread' })
    renameSync(beside('around'), beside('moved'))
    expect(await labels(at('moved'))).toEqual(['1\n', '2\n'])
    const savepoint = await space.open(at('moved'))
    expect(savepoint.nativeUsage('unread')!.where).toContain('/moved/.savepoint-snapshots/')
    await savepoint.purge('a')
    expect(scene.kept(space)).toEqual([])
    renameSync(beside('moved/work'), space.dir)
  })

  onDisk('with our home', async () => {
    await taken({})
    const home = `${space.home} moved`
    renameSync(space.home, home)
    expect(await labels({ home })).toEqual(['1\n', '2\n'])
    expect(scene.kept(space).every(path => path.startsWith(home))).toBe(true)
  })

  onDisk('with our home, and the next one is kept there', async () => {
    await taken({})
    const home = `${space.home} moved`
    renameSync(space.home, home)
    const { backend } = await (await space.open({ home, leaveUnread: true })).snapshot({ label: 'moved' })
    expect(backend).toBe('btrfs')
    expect(scene.kept(space).filter(path => path.startsWith(home))).toHaveLength(3)
    expect((await space.open({ home })).read('moved', 'a').toString()).toBe('2\n')
  })

  onDisk('is not taken for one that others may write in', async () => {
    await taken({})
    const home = `${space.home} moved`
    renameSync(space.home, home)
    run('chmod', '777', join(home, 'native'))
    const savepoint = await space.open({ home })
    expect(space.notices.at(-1)).toMatch(/is not read yet: .* is not there/)
    expect(() => savepoint.read('unread', 'a')).toThrow('not read yet')
  })
})

describe('another subvolume in the place of the target', () => {
  /** A home of its own knows nothing from before. */
  const rootAfresh = async () => {
    const home = join(elsewhere.base, `fresh ${readdirSync(elsewhere.base).length}`)
    return (await (await space.open({ home, backend: 'cas' })).snapshot({})).root
  }

  onDisk('is refused, with the way out; with force, what either held can be had, and nothing is lost', async () => {
    space.write('a', '1\n')
    space.write('dir/b')
    await (await space.open()).snapshot({ label: 'read' })
    space.write('a', '2\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'unread' })
    const old = `${space.dir}.old`
    renameSync(space.dir, old)
    run('btrfs', 'subvolume', 'create', space.dir)
    run('cp', '-a', `${old}/.`, space.dir)
    space.write('a', '3\n')
    space.write('new')
    await expect((await space.open()).rollback('read')).rejects.toMatchObject({ code: 'target.replaced' })
    await expect((await space.open()).snapshot({})).rejects.toMatchObject({
      code: 'target.replaced',
      message: expect.stringContaining('another directory has taken its place'),
      hint: expect.stringContaining('savepoint snapshot --force'),
    })
    const taken = await (await space.open({ force: true, leaveUnread: true })).snapshot({ label: 'new' })
    expect(taken).toMatchObject({ backend: 'btrfs' })
    const savepoint = await space.open()
    // Two subvolumes have nothing in common: what differs is all found nevertheless.
    expect(savepoint.find('new').root).toBe(await rootAfresh())
    expect(savepoint.find('new').counts).toEqual({ added: 1, modified: 1, deleted: 0 })
    for (const [label, content] of [
      ['unread', '2\n'],
      ['read', '1\n'],
      ['new', '3\n'],
    ] as const) {
      await savepoint.rollback(label)
      expect(space.read('a')).toBe(content)
      expect(savepoint.find(label).root).toBe(await rootAfresh())
    }
    expect(scene.kept(space)).toHaveLength(3)
    expect((await savepoint.verify()).problems).toEqual([])
  })
})
