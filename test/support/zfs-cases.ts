/** What only ZFS can do, and what only it can do wrong. One suite runs it: all that use zfs-fuse share one daemon. */
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { COARSE_SLACK_MS } from '../../src/targets/dir/racy.ts'
import { type PoolScene, retried, run } from './backend-scene.ts'
import { builtCommand } from './built-cli.ts'
import { finishVerbs, startVerbs } from './engine-process.ts'
import { Workspace } from './workspace.ts'
import { oneAndTwo } from './zfs-rollback-cases.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

const WEEK_MS = 8 * 24 * 3600 * 1000

export function onlyZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  holds(
    'full, or without a snapshot that it kept, says the way out; nothing else is lost, the store works',
    async space => {
      space.write('a', '1\n')
      await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
      const dataset = scene.kept(space)[0]!.split('@')[0]!
      const poolName = dataset.split('/')[0]!
      run('zfs', 'create', '-o', 'mountpoint=none', `${poolName}/hog`)
      try {
        const available = run('zfs', 'get', '-Hp', '-o', 'value', 'available', poolName).trim()
        run('zfs', 'set', `reservation=${available}`, `${poolName}/hog`)
        await expect((await space.open({ leaveUnread: true })).snapshot({ label: 'two' })).rejects.toMatchObject({
          code: 'disk.full',
          message: expect.stringMatching(/^Cannot take a ZFS snapshot: .*out of space/),
          hint: expect.stringMatching(
            /savepoint gc` removes snapshots that were deleted more than 7 days ago.*--backend cas/,
          ),
        })
        // Named, it is refused with the same reason; what its filesystem keeps cannot be read now, and nothing is lost.
        await expect((await space.open({ backend: 'zfs', leaveUnread: true })).snapshot({})).rejects.toMatchObject({
          code: 'unsupported',
          hint: expect.stringContaining('Free some space'),
        })
      } finally {
        retried('zfs', 'destroy', `${poolName}/hog`)
      }
      const savepoint = await space.open({ backend: 'cas' })
      expect(await savepoint.snapshot({ label: 'stored' })).toMatchObject({ backend: 'cas', counts: { added: 0 } })
      expect(savepoint.read('one', 'a').toString()).toBe('1\n')
      space.write('a', '2\n')
      await (await space.open({ leaveUnread: true })).snapshot({ label: 'unread' })
      for (const name of scene.kept(space)) retried('zfs', 'destroy', name)
      const after = await space.open()
      expect(after.snapshots().map(({ label }) => label)).toEqual(['one', 'stored'])
      expect(space.notices.at(-1)).toMatch(/\(unread\) is lost: its zfs snapshot was removed by somebody else/)
      await after.rollback('one')
      expect(space.read('a')).toBe('1\n')
    },
  )

  holds('full by what is to go: who goes back is told which file to remove by hand', async space => {
    const elsewhere = new Workspace()
    const poolName = run('findmnt', '-no', 'SOURCE', '-T', space.dir).split('/')[0]!.trim()
    space.write('a', '1\n')
    const savepoint = await space.open({ home: elsewhere.home, backend: 'cas' })
    await savepoint.snapshot({ label: 'one' })
    space.sh('head -c 3000000 /dev/urandom > fill; sync')
    run('zfs', 'create', '-o', 'mountpoint=none', `${poolName}/hog`)
    try {
      const available = run('zfs', 'get', '-Hp', '-o', 'value', 'available', poolName).trim()
      run('zfs', 'set', `reservation=${available}`, `${poolName}/hog`)
      // Again after a sync: what was only reserved is free then.
      space.sh(
        'for pass in 1 2 3; do while head -c 8192 /dev/urandom >> fill; do :; done 2>/dev/null; while mkdir d$((n += 1)); do :; done 2>/dev/null; sync; done',
      )
      await expect(savepoint.rollback('one')).rejects.toMatchObject({
        code: 'disk.full',
        hint: expect.stringMatching(
          /^The target is back as it was\. It would delete fill \(.*B\) anyway: remove that by hand, /,
        ),
      })
      expect(existsSync(space.at('fill'))).toBe(true)
      rmSync(space.at('fill'))
    } finally {
      retried('zfs', 'destroy', `${poolName}/hog`)
      elsewhere.remove()
    }
  })

  holds('shows an edit of the same size, although FUSE still has the times from before it', async space => {
    space.write('a', '1\n')
    const savepoint = await space.open({ backend: 'cas' })
    await savepoint.snapshot({})
    // What was written within the same second, which is all that its clock tells, is read again in any case.
    await pause(2100)
    await savepoint.snapshot({})
    const file = openSync(space.at('a'), 'r+')
    writeSync(file, '2\n')
    closeSync(file)
    expect((await savepoint.diff()).changes).toMatchObject([{ kind: 'modified', path: 'a' }])
  })

  holds('is never an empty directory: what was mounted where we do not see it is read when we do', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    const { stdout, stderr } = spawnSync(
      'unshare',
      ['-m', '--propagation', 'private', ...builtCommand, 'show', 'one'],
      {
        cwd: space.dir,
        env: { ...space.env, SAVEPOINT_HOME: space.home },
        encoding: 'utf8',
      },
    )
    expect(stderr).toMatch(/is not read yet: Cannot read .*: its clone is not mounted where we see it/)
    expect(stdout).toContain('one')
    // Nor is it what somebody has put where ZFS would show it.
    const name = scene.kept(space)[0]!.split('@')[1]!
    space.write(`.zfs/snapshot/${name}/false`)
    const savepoint = await space.open()
    expect(savepoint.find('one').files).toBe(1)
    expect(savepoint.read('one', 'a').toString()).toBe('1\n')
  })

  holds('goes back as a whole, when asked: with what rules exclude, and says what is lost', async space => {
    const { savepoint } = await oneAndTwo(space, snapshot)
    const foreign = `${scene.kept(space)[0]!.split('@')[0]}@foreign`
    run('zfs', 'snapshot', foreign)
    space.notices.length = 0
    await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
      message: expect.stringMatching(/^Cannot roll back natively: .*@foreign would be lost$/),
    })
    await savepoint.rollback('one', { native: true, dryRun: true })
    expect([space.read('a'), scene.kept(space).length]).toEqual(['2\n', 3])
    expect(space.notices.join('\n')).toMatch(
      /also what rules exclude.*zfs would lose 1 later snapshot of this timeline/s,
    )
    // Killed before that, the files are back, and what would have been lost is in the store.
    retried('zfs', 'destroy', foreign)
    const failpoint = 'native:before-rollback'
    const child = startVerbs(space, [['rollback', 'one', { native: true }]], { failpoint })
    expect((await finishVerbs(child)).signal).toBe('SIGKILL')
    expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'after\n'])
    run('zfs', 'snapshot', foreign)
    const forced = await space.open({ force: true })
    await forced.rollback('one', { native: true })
    expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'before\n'])
    expect(scene.kept(space)).toEqual([forced.nativeUsage('one')!.where])
    expect(forced.find('two').backend).toBe('cas')
    expect(forced.read('two', 'a').toString()).toBe('2\n')
    await forced.undo()
    expect([space.read('a'), space.read('excluded')]).toEqual(['2\n', 'before\n'])
    await expect(forced.rollback('two', { native: true })).rejects.toMatchObject({ code: 'unsupported' })
  })

  holds('names what was too large where it was changed since, and not at each rollback', async space => {
    space.write('savepoint.yaml', 'snapshots: {max_file_bytes: 1 KB}\n')
    for (const name of ['large', 'same']) space.write(name, 'x'.repeat(2000))
    // Its time is told in seconds there.
    await pause(COARSE_SLACK_MS + 1000)
    await snapshot(space, 'one')
    space.write('large', 'another')
    const savepoint = await space.open()
    const { uncaptured } = await savepoint.rollback('one')
    expect(uncaptured.map(({ path, kept }) => [path, kept?.backend])).toEqual([
      ['large', 'zfs'],
      ['same', undefined],
    ])
  })

  holds('goes back as a whole only with force, where what is mounted in it would be out of reach', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    space.write('a', '2\n')
    mkdirSync(space.at('mounted'))
    run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', space.at('mounted'))
    try {
      const savepoint = await space.open()
      await savepoint.rollback('one', { native: true, dryRun: true })
      expect(space.notices.at(-1)).toBe('--native: what is mounted since then cannot be reached afterwards: mounted')
      await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
        code: 'backend.failed',
        message: 'Cannot roll back natively: mounted would be out of reach',
        hint: expect.stringContaining('Unmount it first'),
      })
      expect([space.read('a'), existsSync(space.at('mounted'))]).toEqual(['2\n', true])
    } finally {
      run('umount', space.at('mounted'))
    }
    await (await space.open()).rollback('one', { native: true })
    expect([space.read('a'), existsSync(space.at('mounted'))]).toEqual(['1\n', false])
  })

  holds('whose pool is exported has lost nothing, and stops nothing: new ones are kept meanwhile', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'read')
    await space.open()
    space.write('a', '2\n')
    await snapshot(space, 'unread')
    const opened = (options: object = {}) => space.open({ cwd: space.base, target: space.dir, ...options })
    await scene.whileExported(async () => {
      space.notices.length = 0
      const away = await opened()
      expect(space.notices).toEqual([expect.stringMatching(/is not read yet: .*does not exist \(import its pool/)])
      expect(away.snapshots().map(({ label }) => label)).toEqual(['read', 'unread'])
      expect(() => away.read('unread', space.at('a'))).toThrow('not read yet')
      await away.gc()
      // Another directory is there now: HEAD cannot be read, and stops neither snapshots nor going back.
      mkdirSync(space.dir, { recursive: true })
      space.write('a', '3\n')
      const stored = await opened({ force: true, backend: 'cas' })
      expect(await stored.snapshot({ label: 'stored' })).toMatchObject({ backend: 'cas', counts: { modified: 1 } })
      await stored.rollback('read')
      expect(space.read('a')).toBe('1\n')
      await stored.undo()
      expect(space.read('a')).toBe('3\n')
      await stored.gc()
      rmSync(space.dir, { recursive: true })
    })
    const back = await opened()
    expect(back.read('unread', space.at('a')).toString()).toBe('2\n')
    expect(back.snapshots().map(({ label }) => label)).toEqual(expect.arrayContaining(['read', 'unread', 'stored']))
    expect((await back.verify()).problems).toEqual([])
  })

  holds('keeps what shall go until its pool is imported again: a purge is not done before', async space => {
    space.write('secret')
    await snapshot(space, 'one')
    await space.open()
    const opened = () => space.open({ cwd: space.base, target: space.dir })
    await scene.whileExported(async () => {
      await expect((await opened()).purge(space.at('secret'))).rejects.toMatchObject({
        message: expect.stringMatching(/^Cannot complete the purge: .*does not exist \(import its pool/),
      })
    })
    expect(scene.kept(space)).toHaveLength(1)
    await opened()
    expect(space.notices.at(-1)).toBe('completed a purge that was interrupted: secret')
    expect(scene.kept(space)).toEqual([])
  })

  holds('keeps what was deleted long ago until its pool is imported again', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    space.write('a', '2\n')
    await snapshot(space, 'two')
    const opened = () => space.open({ cwd: space.base, target: space.dir, now: () => Date.now() + WEEK_MS })
    await (await space.open()).delete(['one'])
    await scene.whileExported(async () => {
      await (await opened()).gc()
      expect(space.notices.at(-1)).toMatch(/^a zfs snapshot that nothing needs is still there: .*import its pool/)
    })
    expect(scene.kept(space)).toHaveLength(2)
    await (await opened()).gc()
    expect(scene.kept(space)).toHaveLength(1)
  })

  holds('leaves alone what somebody received from one, and reads that where it is all that is left', async space => {
    space.write('secret', '1\n')
    await snapshot(space, 'read')
    await space.open()
    space.write('secret', '2\n')
    await snapshot(space, 'unread')
    const names = scene.kept(space)
    const backup = `${names[0]!.split('@')[0]}.backup`
    run('sh', '-c', `zfs send '${names[0]}' | zfs receive -u '${backup}'`)
    run('sh', '-c', `zfs send -i '${names[0]}' '${names[1]}' | zfs receive -u '${backup}'`)
    try {
      for (const name of names) retried('zfs', 'destroy', name)
      const savepoint = await space.open()
      expect(space.notices).toEqual([])
      expect(savepoint.read('unread', 'secret').toString()).toBe('2\n')
      await savepoint.purge('secret')
      expect([scene.kept(space).length, scene.snapshotsOf(backup).length]).toEqual([0, 2])
    } finally {
      retried('zfs', 'destroy', '-rRf', backup)
    }
  })

  holds('goes to a clone that is promoted, and is deleted there; before that, the clone is named', async space => {
    space.write('secret')
    await snapshot(space, 'one')
    await space.open()
    const [name] = scene.kept(space)
    const [dataset] = name!.split('@')
    const clone = `${dataset}.clone`
    run('zfs', 'clone', '-o', 'mountpoint=none', name!, clone)
    try {
      await expect((await space.open()).purge('secret')).rejects.toMatchObject({
        message: expect.stringMatching(`it has a clone, to be destroyed or promoted first \\(${clone}\\)$`),
      })
      run('zfs', 'promote', clone)
      await space.open()
      // The target is what must not go.
      expect(space.notices.at(-1)).toMatch(
        new RegExp(
          `: the target is a clone of it: zfs promote ${dataset}; then it goes when you destroy .* \\(${clone}\\)$`,
        ),
      )
      run('zfs', 'promote', dataset!)
    } finally {
      retried('zfs', 'destroy', clone)
    }
    await space.open()
    expect(space.notices.at(-1)).toBe('completed a purge that was interrupted: secret')
    expect(scene.kept(space)).toEqual([])
  })

  holds('whose dataset was renamed, with a new one in its place, has lost nothing, and purges it all', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'read')
    await space.open()
    space.write('a', '2\n')
    await snapshot(space, 'unread')
    const old = scene.replaceDataset(space)
    try {
      space.write('a', '3\n')
      space.notices.length = 0
      const taken = await (await space.open({ force: true, leaveUnread: true })).snapshot({ label: 'new' })
      expect(taken.backend).toBe('zfs')
      const savepoint = await space.open()
      expect(space.notices).toEqual([])
      for (const [label, content] of [
        ['unread', '2\n'],
        ['read', '1\n'],
        ['new', '3\n'],
      ] as const) {
        await savepoint.rollback(label)
        expect(space.read('a')).toBe(content)
      }
      // The old dataset is not the target's any more: it does not go back in its stead.
      await expect(savepoint.rollback('read', { native: true })).rejects.toMatchObject({
        message: expect.stringContaining('is not mounted at'),
      })
      await savepoint.purge('a')
      expect([...scene.kept(space), ...scene.snapshotsOf(old)]).toEqual([])
    } finally {
      retried('zfs', 'destroy', '-rRf', old)
    }
  })
}
