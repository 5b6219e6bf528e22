/** btrfs beyond the contract: what it tells of changes is all of them, what it does not show, and what can go wrong. */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { btrfs } from '../src/backends/btrfs.ts'
import { doctor, open } from '../src/index.ts'
import { addon } from '../src/native/addon.ts'
import { tryLock } from '../src/store/file-lock.ts'
import { onBtrfs, run } from './support/backend-scene.ts'
import { savepoint as cli } from './support/built-cli.ts'
import { gated } from './support/machine.ts'
import { numbers } from './support/numbers.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
const closed = onBtrfs('noatime')
const small = onBtrfs('noatime', true)
const scenes = [scene, closed, small]
const onDisk = (title: string, work: () => Promise<void> | void) => gated(scene.possible, scene.needs, title, work)

beforeAll(async () => {
  if (scene.possible) for (const each of scenes) await each.setUp()
}, 60_000)
afterAll(async () => {
  if (scene.possible) for (const each of scenes) await each.tearDown()
}, 60_000)

let space: Workspace
beforeEach(() => {
  if (scene.possible) space = scene.make()
})
afterEach(() => {
  if (scene.possible) scene.remove(space)
})

const backendLine = async () => {
  const { checks } = await doctor({ cwd: space.dir, home: space.home, env: space.env })
  return checks.find(({ name }) => name === 'backend')!
}

describe('what btrfs tells of changes', () => {
  onDisk(
    'is all that there is: many changes at random, read by difference, are the state as a whole capture sees it',
    async () => {
      const random = numbers(7)
      for (let i = 0; i < 60; i++) space.write(`d${i % 6}/e${i % 4}/f${i}`, `${i}\n`)
      const differing = await space.open({ leaveUnread: true })
      await differing.snapshot({ label: 'first' })
      for (let round = 1; round <= 15; round++) {
        for (let i = 0; i < (round % 2 ? 4 : 15); i++) mutate(space, random)
        await differing.snapshot({ label: `${round}` })
        // Every third time it is read at once; otherwise several are read one after another.
        if (round % 3 > 0) continue
        const savepoint = await space.open()
        const { root } = savepoint.find(`${round}`)
        // A home of its own knows nothing from before.
        const home = join(space.base, `home ${round}`)
        const other = await open({ cwd: space.dir, env: space.env, home, create: true, backend: 'cas' })
        expect((await other.snapshot({})).root === root, `round ${round}`).toBe(true)
        other.close()
      }
      const savepoint = await space.open()
      expect(savepoint.snapshots()).toHaveLength(16)
      const states = savepoint.snapshots().map(({ nativeRef }) => JSON.parse(nativeRef!))
      // It did tell them, and was believed.
      expect(states.slice(1).filter((state, i) => btrfs.differing(states[i], state)).length).toBe(15)
      for (const label of ['first', '5', '11', '2']) {
        await savepoint.rollback(label)
        const { root } = savepoint.find(label)
        expect((await savepoint.diff({ from: label })).changes).toEqual([])
        expect(savepoint.head().root === root).toBe(true)
      }
    },
  )

  onDisk('is what the program of btrfs is told, asked without it; a list beyond the limit is none', async () => {
    for (let i = 0; i < 200; i++) space.write(`d${i % 7}/f${i}`, `${i}\n`)
    const savepoint = await space.open({ leaveUnread: true })
    await savepoint.snapshot({})
    for (let i = 0; i < 200; i += 3) space.write(`d${i % 7}/f${i}`, 'other\n')
    renameSync(join(space.dir, 'd1'), join(space.dir, 'moved'))
    await savepoint.snapshot({})
    const paths = savepoint.snapshots().map(({ nativeRef }) => {
      const { place, name } = JSON.parse(nativeRef!)
      return join(place, name)
    })
    const told = execFileSync('btrfs', ['-q', 'send', '--no-data', '-p', paths[0]!, paths[1]!])
    const opened = paths.map(path => openSync(path, 'r'))
    try {
      const stream = addon.btrfsDifferences(opened[0]!, opened[1]!, 2 ** 24)
      expect(stream.subarray(0, told.length).equals(told)).toBe(true)
      expect(stream.subarray(told.length).every(byte => byte === 0)).toBe(true)
      expect(() => addon.btrfsDifferences(opened[0]!, opened[1]!, told.length - 1)).toThrow(/EPERM/)
      expect(addon.btrfsDifferences(opened[0]!, opened[1]!, told.length)).toHaveLength(told.length)
    } finally {
      for (const fd of opened) closeSync(fd)
    }
  })

  onDisk('is read under the rules of today, although nothing changed', async () => {
    space.write('sub/a.log')
    space.write('sub/b')
    await (await space.open()).snapshot({ label: 'one' })
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots: {exclude: {additional: ["*.log"]}}\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'two' })
    const savepoint = await space.open()
    expect(savepoint.read('one', 'sub/a.log').toString()).toBe('sub/a.log\n')
    expect(() => savepoint.read('two', 'sub/a.log')).toThrow(/sub\/a\.log/)
    expect(savepoint.read('two', 'sub/b').toString()).toBe('sub/b\n')
  })

  onDisk('is read under the rules of then, also those that lie elsewhere: patterns of the user, an index', async () => {
    const main = `git -C '${space.base}/main'`
    const excludes = join(space.userHome, '.config/git/ignore')
    mkdirSync(dirname(excludes), { recursive: true })
    writeFileSync(excludes, '*.tmp\n')
    space.sh(`git init -q ../main; echo '*.log' > ../main/.gitignore; echo t > ../main/t.log; ${main} add -f .`)
    space.sh(`${main} -c user.name=a -c user.email=a@b commit -qm one; ${main} worktree add -q --detach "$PWD"`)
    for (const name of ['a.tmp', 'b.swp', 'c.log']) space.write(name)
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
    writeFileSync(excludes, '*.tmp\n*.swp\n')
    space.sh('git rm -q --cached t.log')
    const savepoint = await space.open()
    const { changes } = await savepoint.diff({ from: 'one' })
    expect([savepoint.read('one', 'b.swp').toString(), savepoint.read('one', 't.log').toString()]).toEqual([
      'b.swp\n',
      't\n',
    ])
    for (const name of ['a.tmp', 'c.log']) expect(() => savepoint.read('one', name)).toThrow(name)
    expect(changes).toEqual([])
  })

  onDisk('is read as git saw it then, wherever its work trees say that their repository is', async () => {
    const git = 'git -c user.name=a -c user.email=a@b'
    const commit = `echo '*.log' > .gitignore; echo t > t.log; ${git} add -f .; ${git} commit -qm one`
    space.sh(`${git} init -q; ${commit}; ${git} worktree add -q --detach whole`)
    space.sh(`mkdir link; cd link; ${git} init -q; ${commit}; mv .git ../../linked; ln -s "$PWD/../../linked" .git`)
    await (await space.open()).snapshot({ label: 'known' })
    await (await space.open()).status()
    // Of which no snapshot tells yet.
    space.sh(`git clone -q --bare . .bare; git -C .bare worktree add -q --detach "$PWD/bare"`)
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
    space.sh('git worktree remove --force whole; git -C link rm -q --cached t.log; rm -rf bare .bare')
    const savepoint = await space.open()
    for (const path of ['t.log', 'whole/t.log', 'link/t.log', 'bare/t.log'])
      expect(savepoint.read('one', path).toString()).toBe('t\n')
  })

  onDisk('includes an edit of the same size, in the moment of the snapshot, whose time was put back', async () => {
    space.write('a', 'one\n')
    const { atimeMs, mtimeMs } = lstatSync(space.at('a'))
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
    space.write('a', 'two\n')
    space.sh(`touch -d @${mtimeMs / 1000} a`)
    expect(atimeMs).toBeGreaterThan(0)
    const savepoint = await space.open()
    expect((await savepoint.diff({})).changes.map(({ path }) => path)).toEqual(['a'])
  })
})

onDisk('links and FIFOs with several names have changed under each of them', async () => {
  mkdirSync(space.at('a'))
  mkdirSync(space.at('b'))
  space.sh('ln -s x a/link; ln -P a/link b/link; mkfifo a/fifo; ln a/fifo b/fifo')
  await (await space.open()).snapshot({ label: 'one' })
  space.sh('touch -h -d 2001-01-01 a/link; chmod 600 a/fifo')
  await (await space.open({ leaveUnread: true })).snapshot({ label: 'two' })
  const savepoint = await space.open()
  const { changes } = await savepoint.diff({ from: 'one', to: 'two' })
  expect(changes.map(({ path }) => path)).toEqual(['a/fifo', 'a/link', 'b/fifo', 'b/link'])
  expect((await savepoint.diff({ from: 'two' })).changes).toEqual([])
})

describe('what a snapshot does not show', () => {
  onDisk('is unknown: nested subvolumes, mounts, our own home', async () => {
    run('btrfs', 'subvolume', 'create', space.at('nested'))
    space.write('nested/x')
    space.write('a')
    mkdirSync(space.at('mounted'))
    space.write('mounted/under')
    run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', space.at('mounted'))
    try {
      space.write('mounted/x')
      const home = space.at('our home')
      await (await space.open({ home, leaveUnread: true })).snapshot({ label: 'one' })
      space.write('nested/y')
      space.write('mounted/y')
      rmSync(space.at('a'))
      const savepoint = await space.open({ home })
      const [snapshot] = savepoint.snapshots()
      expect(snapshot).toMatchObject({ backend: 'btrfs', files: 1 })
      // Kept outside of what the target shows.
      expect(readdirSync(space.base)).toContain('.savepoint-snapshots')
      await savepoint.rollback('one')
      expect(readdirSync(space.dir).toSorted()).toEqual(['a', 'mounted', 'nested', 'our home'])
      expect([...readdirSync(space.at('nested')), ...readdirSync(space.at('mounted'))]).toEqual(['x', 'y', 'x', 'y'])
    } finally {
      run('umount', space.at('mounted'))
    }
  })

  onDisk('nor what is kept beside a target inside of this one: it comes and goes without a word', () => {
    // Not on this disk, so that they are kept beside their target.
    const home = ['--home', mkdtempSync(join(tmpdir(), 'savepoint-home-'))]
    run('btrfs', 'subvolume', 'create', space.at('nested'))
    space.write('a')
    const one = cli(space, ['snapshot', '-q', ...home]).stdout.trim()
    cli(space, ['snapshot', '-t', space.at('nested'), ...home])
    expect(readdirSync(space.dir)).toContain('.savepoint-snapshots')
    expect(cli(space, ['status', ...home]).stdout).toContain('Nothing changed since')
    const two = cli(space, ['snapshot', '-q', ...home]).stdout.trim()
    const nothing = (id: string) => `Nothing to change: everything is as in ${id}\n`
    expect(cli(space, ['rollback', one, ...home]).stdout).toBe(nothing(one))
    for (const path of scene.kept(space).filter(path => path.startsWith(space.dir)))
      run('btrfs', 'subvolume', 'delete', path)
    rmSync(space.at('.savepoint-snapshots'), { recursive: true })
    expect(cli(space, ['rollback', two, ...home]).stdout).toBe(nothing(two))
    rmSync(home[1]!, { recursive: true })
  })

  onDisk('is named when it is gone: a nested subvolume goes with `rm -r` like any directory', () => {
    const lost = 'NOT protected and gone: nested (mount or subvolume; it cannot be brought back)\n'
    run('btrfs', 'subvolume', 'create', space.at('nested'))
    space.write('nested/x')
    const one = cli(space, ['snapshot', '-q']).stdout.trim()
    expect(cli(space, ['run', '--', 'rm', '-r', 'nested']).stderr).toContain(lost)
    expect(cli(space, ['undo']).stdout).toContain(lost)
    expect(cli(space, ['rollback', one]).stdout).toContain(lost)
  })
})

describe('who keeps it', () => {
  onDisk('is said by status before anybody asked for one, and after another subvolume took the place', async () => {
    space.write('a')
    cli(space, ['run', '--', 'true'])
    const status = async () => (await (await space.open()).status()).backend
    expect(await status()).toBe('btrfs')
    await (await space.open()).snapshot({})
    run('btrfs', 'subvolume', 'snapshot', space.dir, `${space.dir}.other`)
    renameSync(space.dir, `${space.dir}.old`)
    renameSync(`${space.dir}.other`, space.dir)
    expect(await status()).toBe('btrfs')
    expect((await (await space.open()).snapshot({})).backend).toBe('btrfs')
    run('btrfs', 'subvolume', 'delete', `${space.dir}.old`)
  })

  onDisk('is said by doctor, by snapshot and by the footer of snapshots; nothing is read before it is needed', () => {
    space.write('a')
    expect(cli(space, ['doctor']).stdout).toContain('btrfs: the filesystem keeps the snapshots that you ask for')
    expect(readdirSync(space.base).toSorted()).toEqual(['user', 'work'])
    expect(cli(space, ['snapshot', '-m', 'one']).stdout).toMatch(/^snap_\w+ \(one\) {2}kept by btrfs\n$/)
    expect(readdirSync(join(space.home, 'store/packs'))).toEqual([])
    for (const list of ['snapshots', 'log', 'head', 'branches'])
      expect(cli(space, [list]).stdout).toContain('not read yet')
    expect(JSON.parse(cli(space, ['snapshots', '--json']).stdout)).toMatchObject([{ read: false }])
    expect(cli(space, ['snapshots']).stdout).toContain('1 snapshot (backend: btrfs)\n')
    expect(readdirSync(join(space.home, 'store/packs'))).toEqual([])
    expect(cli(space, ['show', 'one']).stdout).toMatch(/^ {2}kept {5}.*snap_\w+, .*B of its own$/m)
    expect(cli(space, ['snapshot', '--backend', 'cas', '-m', 'two']).stdout).toContain('no changes')
    expect(readdirSync(join(space.home, 'store/packs'))).toHaveLength(1)
    expect(cli(space, ['snapshots']).stdout).toContain('2 snapshots (backend: cas, btrfs)\n')
  })

  onDisk('programs are told at once what it holds; what was left out is said when it is read', () => {
    space.write('a')
    expect(JSON.parse(cli(space, ['snapshot', '--json']).stdout)).toMatchObject({
      backend: 'btrfs',
      stats: { files: 1 },
    })
    space.write('savepoint.yaml', 'snapshots: {max_file_bytes: 1 KB}\n')
    space.write('large', Buffer.alloc(2000))
    expect(cli(space, ['snapshot', '-m', 'partial'])).toMatchObject({ status: 0 })
    expect(cli(space, ['snapshots']).stderr).toMatch(/snap_\w+ is PARTIAL: 1 path not captured/)
    expect(cli(space, ['show', 'partial']).stdout).toMatch(/PARTIAL: 1 path not captured\n {2}large/)
  })

  onDisk('is the store for a directory that only lies in a subvolume; named, btrfs is refused there', async () => {
    mkdirSync(space.at('inside'))
    const cwd = space.at('inside')
    writeFileSync(join(cwd, 'a'), '')
    const refused = cli(space, ['snapshot', '--backend', 'btrfs'], { cwd })
    expect([refused.status, refused.stdout]).toEqual([13, ''])
    expect(refused.stderr).toContain('the target lies in a subvolume, but is none itself')
    const savepoint = await space.open({ cwd, target: cwd })
    expect(await savepoint.snapshot({})).toMatchObject({ backend: 'cas' })
    expect(scene.kept(space)).toEqual([])
  })

  const ordinary = scene.possible && canDropPrivilege
  gated(
    ordinary,
    'root, mkfs.btrfs and setpriv',
    'is btrfs for an ordinary user where the mount allows it',
    async () => {
      space.write('a', '1\n')
      const taken = await runAsUser(space, [['snapshot', { label: 'one' }]])
      expect(taken.results).toMatchObject([{ backend: 'btrfs' }])
      space.write('a', '2\n')
      const { error } = await runAsUser(space, [
        ['snapshot', { label: 'two' }],
        ['rollback', 'one'],
        ['undo'],
        ['redo'],
      ])
      expect(error).toBeUndefined()
      expect(space.read('a')).toBe('1\n')
      const savepoint = await space.open()
      expect(savepoint.find('two').counts).toEqual({ added: 0, modified: 1, deleted: 0 })
    },
  )

  gated(
    ordinary,
    'root, mkfs.btrfs and setpriv',
    'is the store where this user could not delete snapshots',
    async () => {
      const there = closed.make()
      try {
        there.write('a')
        const { results } = await runAsUser(there, [['snapshot', {}]])
        expect(results).toMatchObject([{ backend: 'cas' }])
        writeFileSync(there.at('savepoint.yaml'), 'snapshots: {backend: btrfs}\n')
        const { error } = await runAsUser(there, [['snapshot', {}]])
        expect(error).toMatchObject({
          code: 'unsupported',
          message: expect.stringContaining('this user may not delete snapshots'),
          hint: expect.stringContaining('user_subvol_rm_allowed'),
        })
        expect(closed.kept(there)).toEqual([])
      } finally {
        closed.remove(there)
      }
    },
  )
})

onDisk('who has the timeline open reads what another process took since', async () => {
  space.write('a', 'one\n')
  const savepoint = await space.open()
  expect(cli(space, ['snapshot', '-m', 'by another']).stdout).toContain('kept by btrfs')
  space.write('a', 'two\n')
  expect((await savepoint.diff({ from: 'by another' })).changes.map(({ path }) => path)).toEqual(['a'])
  expect(cli(space, ['snapshot', '-m', 'and again']).status).toBe(0)
  await savepoint.rollback('by another')
  expect(space.read('a')).toBe('one\n')
  expect(cli(space, ['snapshot', '-m', 'the last']).status).toBe(0)
  await savepoint.undo()
  expect(space.read('a')).toBe('two\n')
})

onDisk('who could not read one because another process was at work does not wait for that again', async () => {
  space.write('a', 'one\n')
  expect(cli(space, ['snapshot']).stdout).toContain('kept by btrfs')
  const [timeline] = readdirSync(join(space.home, 'timelines'))
  using held = tryLock(join(space.home, 'timelines', timeline!, 'lock'), 'exclusive', 'hold it')!
  const savepoint = await space.open({ env: { ...space.env, SAVEPOINT_LOCK_WAIT_MS: '3000' } })
  const start = performance.now()
  expect((await savepoint.status()).changes).toBeUndefined()
  expect(performance.now() - start).toBeLessThan(2500)
  held.release()
  expect((await savepoint.status()).changes).toEqual([])
})

onDisk('native_max of them stay, once they are read; the store keeps the others', async () => {
  for (const label of ['1', '2', '3']) {
    space.write('a', label)
    await (await space.open({ leaveUnread: true })).snapshot({ label })
  }
  writeFileSync(join(space.home, 'config.yaml'), 'snapshots: {retention: {native_max: 2}}\n')
  const [oldest] = (await space.open({ leaveUnread: true })).snapshots()
  expect(cli(space, ['prune', '--dry-run']).stdout).toContain(
    `Would leave ${oldest!.id} to the store alone (was: btrfs): native_max (2), unless a part of it cannot be read\n`,
  )
  expect(scene.kept(space)).toHaveLength(3)
  const savepoint = await space.open()
  expect(scene.kept(space)).toHaveLength(2)
  expect(savepoint.snapshots().map(({ backend }) => backend)).toEqual(['cas', 'btrfs', 'btrfs'])
  expect(savepoint.read('1', 'a').toString()).toBe('1')
  expect(savepoint.operations().at(-1)).toMatchObject({ kind: 'retention', rule: 'native_max (2)' })
})

describe('what can go wrong', () => {
  onDisk('a snapshot that somebody removed: unread it is lost, and said so; read it is not', async () => {
    space.write('a', '1\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'read' })
    await space.open()
    run('btrfs', 'subvolume', 'delete', ...scene.kept(space))
    space.write('a', '2\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'unread' })
    run('btrfs', 'subvolume', 'delete', ...scene.kept(space))
    space.notices.length = 0
    const savepoint = await space.open()
    expect(space.notices).toEqual([expect.stringMatching(/\(unread\) is lost: its btrfs snapshot was removed/)])
    expect(savepoint.operations().at(-1)).toMatchObject({ kind: 'retention', rule: 'lost' })
    expect(savepoint.snapshots().map(({ label }) => label)).toEqual(['read'])
    expect(savepoint.head().label).toBe('read')
    const named = { code: 'snapshot.unknown', message: 'Cannot find snapshot "unread": it is lost' }
    await expect(savepoint.diff({ from: 'unread' })).rejects.toMatchObject(named)
    await savepoint.rollback('read')
    expect(space.read('a')).toBe('1\n')
    await savepoint.gc()
    expect((await savepoint.verify()).problems).toEqual([])
    const unfit = { message: 'Cannot find snapshot "unread": no id, tag or label of this timeline fits' }
    await savepoint.snapshot({ label: 'unread' })
    await savepoint.snapshot({})
    await savepoint.delete(['unread'])
    await expect(savepoint.diff({ from: 'unread' })).rejects.toMatchObject(unfit)
    const later = await space.open({ now: () => Date.now() + 8 * 24 * 3600 * 1000 })
    expect(await later.gc()).toMatchObject({ forgottenSnapshots: 1 })
    await expect(later.diff({ from: 'unread' })).rejects.toMatchObject(unfit)
  })

  onDisk(
    'one that was away from its place for a moment, unread: whatever its name was, it is called lost',
    async () => {
      space.write('a', '1\n')
      const taking = await space.open({ leaveUnread: true })
      const { id } = await taking.snapshot({ label: 'one' })
      taking.tag('first', 'one')
      const [place] = scene.kept(space)
      renameSync(place!, `${place}-hidden`)
      const savepoint = await space.open()
      renameSync(`${place}-hidden`, place!)
      for (const name of [id, 'one', 'first'])
        expect(() => savepoint.read(name, 'a')).toThrow(`Cannot find snapshot "${name}": it is lost`)
      expect(() => savepoint.read('other', 'a')).toThrow('no id, tag or label of this timeline fits')
      space.notices.length = 0
      await savepoint.verify()
      expect(space.notices).toEqual([expect.stringContaining(place!)])
    },
  )

  onDisk('the filesystem is read-only: said with the way out, nothing is lost, the store still works', async () => {
    space.write('a', '1\n')
    // Its home is elsewhere, so that only the place beside the target counts.
    const elsewhere = closed.make()
    const home = elsewhere.home
    try {
      const savepoint = await space.open({ home, leaveUnread: true })
      await savepoint.snapshot({ label: 'one' })
      run('mount', '-o', 'remount,ro', scene.disk())
      try {
        await expect(savepoint.snapshot({ label: 'two' })).rejects.toMatchObject({
          code: 'backend.failed',
          message: expect.stringMatching(/read-only/i),
          hint: expect.stringContaining('--backend cas'),
        })
        const stored = await space.open({ home, backend: 'cas' })
        expect(await stored.snapshot({ label: 'three' })).toMatchObject({ backend: 'cas', counts: { modified: 0 } })
        expect(stored.snapshots().map(({ label }) => label)).toEqual(['one', 'three'])
      } finally {
        run('mount', '-o', 'remount,rw', scene.disk())
      }
    } finally {
      closed.remove(elsewhere)
    }
  })

  onDisk('the filesystem is full: said with the way out, nothing is lost, the store still works', async () => {
    const full = small.make()
    // Its home has room.
    const { home } = space
    try {
      full.write('a', '1\n')
      await (await full.open({ home, leaveUnread: true })).snapshot({ label: 'one' })
      // Again after a sync: what was only reserved is free then.
      full.sh(`for pass in 1 2 3; do dd if=/dev/zero of=fill$pass bs=64k 2>/dev/null || true
        while echo x > "f$((n += 1))"; do :; done 2>/dev/null || true; sync; done`)
      await expect((await full.open({ home, leaveUnread: true })).snapshot({})).rejects.toMatchObject({
        code: 'disk.full',
        message: expect.stringMatching(/^Cannot take a btrfs snapshot: no space left/),
        hint: expect.stringMatching(
          /savepoint gc` removes snapshots that were deleted more than 7 days ago.*--backend cas/,
        ),
      })
      const stored = await full.open({ home, backend: 'cas' })
      expect(await stored.snapshot({ label: 'two' })).toMatchObject({ backend: 'cas' })
      expect(stored.read('one', 'a').toString()).toBe('1\n')
    } finally {
      small.remove(full)
    }
  })

  onDisk('the target is on another filesystem than at the last snapshot', async () => {
    space.write('a', '1\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
    renameSync(space.dir, `${space.dir} moved`)
    mkdirSync(space.dir)
    run('mount', '-t', 'tmpfs', '-o', 'size=1m,mode=755', 'none', space.dir)
    try {
      space.write('a', '2\n')
      const savepoint = await space.open({ force: true, leaveUnread: true })
      expect(await savepoint.snapshot({ label: 'two' })).toMatchObject({ backend: 'cas', counts: { modified: 1 } })
      await savepoint.rollback('one')
      expect(space.read('a')).toBe('1\n')
      await expect((await space.open({ backend: 'btrfs' })).snapshot({})).rejects.toMatchObject({
        code: 'unsupported',
        message: 'Cannot use backend btrfs: the target is not on btrfs',
      })
    } finally {
      run('umount', space.dir)
    }
  })

  onDisk('another directory in the place of the target, and a target that moved', async () => {
    space.write('a', '1\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
    renameSync(space.dir, `${space.dir} moved`)
    mkdirSync(space.dir)
    const savepoint = await space.open()
    await expect(savepoint.snapshot({})).rejects.toMatchObject({ code: 'target.replaced' })
    // What was kept is there all the same.
    expect(savepoint.read('one', 'a').toString()).toBe('1\n')
    rmSync(space.dir, { recursive: true })
    renameSync(`${space.dir} moved`, space.dir)
    expect(await (await space.open()).snapshot({})).toMatchObject({ backend: 'btrfs' })
  })

  onDisk('is named by doctor when btrfs is wanted and does not work', async () => {
    expect(await backendLine()).toMatchObject({ state: 'ok' })
    writeFileSync(space.at('savepoint.yaml'), 'snapshots: {backend: zfs}\n')
    expect(await backendLine()).toMatchObject({
      state: 'problem',
      detail: 'zfs is configured, and does not work here: the target is not on ZFS',
    })
  })
})

/** One small change, of a kind that a list of differences could forget. What does not apply does nothing. */
function mutate(space: Workspace, random: (below: number) => number): void {
  const all = space.sh('find . -mindepth 1 -printf "%P\\n" | sort').split('\n').filter(Boolean)
  const dirs = ['.', ...all.filter(path => lstatSync(space.at(path)).isDirectory())]
  const files = all.filter(path => lstatSync(space.at(path)).isFile())
  const dir = dirs[random(dirs.length)]!
  const [file, other] = [files[random(files.length)]!, files[random(files.length)]!]
  const fresh = `n${random(1_000_000)}`
  const scripts = [
    `echo ${fresh} > '${dir}/${fresh}'`,
    `echo ${fresh} >> '${file}'`,
    `rm '${file}'`,
    `mkdir -p '${dir}/${fresh}/deep'`,
    `mv '${file}' '${dir}/${fresh}'`,
    `mv '${dir}' '${fresh}'`,
    `ln '${file}' '${dir}/${fresh}'`,
    `chmod ${random(2) ? 640 : 604} '${file}'`,
    `chmod ${random(2) ? 750 : 705} '${dir}'`,
    `mv '${file}' tmp; mv '${other}' '${file}'; mv tmp '${other}'`,
    `rm '${file}'; mkdir '${file}'; echo x > '${file}/x'`,
    `setfattr -n user.x -v ${fresh} '${file}'`,
    `rm -r '${dirs[dirs.length - 1]}'`,
    `touch -d @${1_000_000_000 + random(1000)} '${file}'`,
    `mv '${dir}' tmp && mkdir '${dir}' && echo y > '${dir}/y' && rm -r tmp`,
  ]
  if (files.length > 0) space.sh(`{ ${scripts[random(scripts.length)]}; } 2>/dev/null || true`)
}
