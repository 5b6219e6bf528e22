/** Which dataset is the one at the target, where it is mounted elsewhere, in the place of another, or over it. */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { mountedAt } from '../../src/backends/mounts-below.ts'
import { type PoolScene, retried, run } from './backend-scene.ts'
import { runCli } from './cli.ts'
import type { Workspace } from './workspace.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

export function mountedZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  holds('does not go back as a whole where it is mounted elsewhere by now, whatever force', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    const dataset = (await space.open()).nativeUsage('one')!.where.split('@')[0]!
    const elsewhere = join(space.base, 'elsewhere')
    retried('zfs', 'set', `mountpoint=${elsewhere}`, dataset)
    writeFileSync(join(elsewhere, 'work'), 'of somebody\n')
    mkdirSync(space.dir, { recursive: true })
    space.write('a', '2\n')
    const savepoint = await space.open({ force: true, backend: 'cas' })
    await savepoint.snapshot({ label: 'two' })
    await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
      code: 'backend.failed',
      message: expect.stringContaining('is not mounted at'),
      hint: expect.stringContaining('Leave --native out'),
    })
    expect([space.read('a'), readFileSync(join(elsewhere, 'work'), 'utf8')]).toEqual(['2\n', 'of somebody\n'])
    await savepoint.rollback('one')
    expect(space.read('a')).toBe('1\n')
  })

  holds(
    'is another one when another dataset is mounted in its place, under the same number of a device',
    async space => {
      space.write('a', 'of the first\n')
      await snapshot(space, 'one')
      const first = (await space.open()).nativeUsage('one')!.where.split('@')[0]!
      const second = `${first}.second`
      run('zfs', 'create', '-o', 'mountpoint=none', second)
      try {
        // zfs-fuse shows no time of birth, and the same inode: nothing else tells them apart.
        await mountedInPlace(space, first, second)
        space.write('a', 'of the second\n')
        const savepoint = await space.open({ force: true })
        await savepoint.snapshot({ label: 'two' })
        expect(savepoint.nativeUsage('two')!.where.split('@')[0]).toBe(second)
        expect(savepoint.read('two', 'a').toString()).toBe('of the second\n')
      } finally {
        retried('zfs', 'destroy', '-rRf', second)
        retried('zfs', 'mount', first)
      }
    },
  )

  /** The second one in the place of the first, under its number: whatever else is mounted meanwhile may get that, and lower ones become free. */
  async function mountedInPlace(space: Workspace, first: string, second: string) {
    const fillers: string[] = []
    const fill = (): number => {
      const filler = join(space.base, `filler${fillers.length}`)
      mkdirSync(filler)
      run('mount', '-t', 'tmpfs', 'savepoint-test', filler)
      fillers.push(filler)
      return statSync(filler).dev
    }
    try {
      for (let attempt = 0; attempt < 50; attempt++) {
        // What was recorded is of the number that it has now.
        await snapshot(space, `attempt ${attempt}`)
        const device = statSync(space.dir).dev
        retried('zfs', 'unmount', first)
        let next = fill()
        while (next < device) next = fill()
        if (next === device) run('umount', fillers.at(-1)!)
        retried('zfs', 'set', `mountpoint=${space.dir}`, second)
        if (statSync(space.dir).dev === device) return
        retried('zfs', 'set', 'mountpoint=none', second)
        retried('zfs', 'mount', first)
      }
      throw new Error('another mount has got the number each time')
    } finally {
      for (const filler of fillers) if (mountedAt(Buffer.from(filler))) run('umount', filler)
    }
  }

  holds(
    'is not another one that zfs-fuse shows with the same inode, whether mounted beside it or instead',
    async space => {
      const second = join(space.base, 'second')
      space.write('a', 'of the first\n')
      await snapshot(space, 'one')
      const first = (await space.open()).nativeUsage('one')!.where.split('@')[0]!
      run('zfs', 'create', '-o', `mountpoint=${second}`, `${first}.second`)
      const atSecond = { cwd: second, create: false }
      try {
        await expect(space.open(atSecond)).rejects.toMatchObject({ code: 'timeline.none' })
        retried('zfs', 'unmount', first)
        await expect(space.open(atSecond)).rejects.toMatchObject({ code: 'timeline.none' })
        retried('zfs', 'mount', first)
        writeFileSync(join(second, 'a'), 'of the second\n')
        await (await space.open({ cwd: second })).snapshot({ label: 'two' })
        rmSync(join(second, 'a'))
        await (await space.open({ cwd: second })).rollback('two')
        expect([space.read('a'), readFileSync(join(second, 'a'), 'utf8')]).toEqual([
          'of the first\n',
          'of the second\n',
        ])
      } finally {
        retried('zfs', 'destroy', '-rRf', `${first}.second`)
      }
    },
  )

  holds('is the one that is seen at the target, where another one or a part of it is mounted over it', async space => {
    const hidden = join(space.base, 'hidden')
    mkdirSync(hidden)
    run('mount', '--bind', space.dir, hidden)
    const first = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
    const second = `${first}.over`
    run('zfs', 'create', '-o', `mountpoint=${space.dir}`, second)
    try {
      writeFileSync(join(hidden, 'a'), 'hidden\n')
      space.write('a', 'seen\n')
      await snapshot(space, 'over')
      const savepoint = await space.open()
      expect(savepoint.nativeUsage('over')!.where.split('@')[0]).toBe(second)
      expect(savepoint.read('over', 'a').toString()).toBe('seen\n')
    } finally {
      retried('zfs', 'destroy', '-rRf', second)
      run('umount', hidden)
    }
    await (await space.open({ force: true })).snapshot({ label: 'whole' })
    space.write('part/a', 'of the part\n')
    run('mount', '--bind', space.at('part'), space.dir)
    try {
      const savepoint = await space.open({ force: true })
      expect(await savepoint.snapshot({ label: 'part' })).toMatchObject({ backend: 'cas' })
      expect(savepoint.read('part', 'a').toString()).toBe('of the part\n')
      await expect(savepoint.rollback('whole', { native: true })).rejects.toMatchObject({
        message: expect.stringContaining('is not mounted at'),
      })
    } finally {
      run('umount', space.dir)
    }
    expect([space.read('a'), space.read('part/a')]).toEqual(['hidden\n', 'of the part\n'])
  })

  holds(
    'a run names what no snapshot has and it changed, also in a dataset below; times are whole seconds',
    async space => {
      space.write('.gitignore', 'ignored\n')
      space.write('ignored', 'precious\n')
      await snapshot(space, 'one')
      const below = `${(await space.open()).nativeUsage('one')!.where.split('@')[0]}/below`
      run('zfs', 'create', '-o', `mountpoint=${space.at('below')}`, below)
      try {
        space.write('below/a', 'precious, too\n')
        await expect(space.open({ cwd: space.at('below'), create: false })).rejects.toMatchObject({
          code: 'timeline.none',
        })
        const { stderr } = runCli(space, ['run', '--', 'sh', '-c', 'echo 2 > ignored; echo 2 > below/a'])
        expect(stderr).toContain(
          'NOT protected and changed: below, ignored (mount or subvolume, ignored; undo cannot take that back)',
        )
      } finally {
        retried('zfs', 'destroy', '-rRf', below)
      }
    },
  )

  holds('that is not mounted is to be mounted, and its empty mount point not to be kept instead', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    const where = (await space.open()).nativeUsage('one')!.where
    const dataset = where.split('@')[0]!
    retried('zfs', 'unmount', dataset)
    try {
      await expect(snapshot(space, 'two')).rejects.toMatchObject({
        code: 'target.replaced',
        hint: `Nothing is mounted there: mount the filesystem of ${where} again`,
      })
      // One that is not to be mounted there any more, as one that was destroyed, is no way out.
      retried('zfs', 'set', 'mountpoint=none', dataset)
      const hint = expect.stringMatching(/^Nothing is mounted there, and .*snapshot --force/)
      await expect(snapshot(space, 'two')).rejects.toMatchObject({ code: 'target.replaced', hint })
    } finally {
      // Which mounts it.
      retried('zfs', 'set', `mountpoint=${space.dir}`, dataset)
    }
    expect(await snapshot(space, 'two')).toMatchObject({ backend: 'zfs' })
  })

  holds('that is not mounted, nor has a mount point, is not made again as a plain directory', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    const { where } = (await space.open()).nativeUsage('one')!
    const dataset = where.split('@')[0]!
    const opened = (target = space.dir) => space.open({ cwd: space.base, target })
    // Of one inside, no filesystem keeps a snapshot.
    const inner = space.at('inner')
    mkdirSync(inner)
    expect(await (await opened(inner)).snapshot({ label: 'one' })).toMatchObject({ backend: 'cas' })
    const isRefused = async () => {
      rmSync(space.dir, { recursive: true, force: true })
      const hint = expect.stringContaining(`Mount the filesystem of ${where} again. If`)
      await expect((await opened()).status()).rejects.toMatchObject({ code: 'target.missing', hint })
      await expect((await opened()).rollback('one')).rejects.toMatchObject({ code: 'target.missing', hint })
      const mount = expect.stringContaining(`Mount ${dataset} at ${space.dir} again. If`)
      await expect((await opened(inner)).rollback('one')).rejects.toMatchObject({ code: 'target.missing', hint: mount })
      expect(existsSync(space.dir)).toBe(false)
    }
    await scene.whileExported(isRefused)
    retried('zfs', 'unmount', dataset)
    await isRefused()
    retried('zfs', 'mount', dataset)
    expect(await snapshot(space, 'two')).toMatchObject({ backend: 'zfs' })
    // Destroyed, it cannot be mounted.
    retried('zfs', 'destroy', '-r', dataset)
    rmSync(space.dir, { recursive: true, force: true })
    await (await opened()).rollback('one')
    expect(space.read('a')).toBe('1\n')
    rmSync(space.dir, { recursive: true })
    run('zfs', 'create', '-o', `mountpoint=${space.dir}`, dataset)
  })

  holds('is read where its pool is imported under another name, and purged there', async space => {
    space.write('a', '1\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
    space.write('a', 'two\n')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'two' })
    const { where } = (await space.open({ leaveUnread: true })).nativeUsage('one')!
    const [pool, other] = [where.split('/')[0]!, 'savepointother']
    await scene.whileExported(async directory => {
      run('zpool', 'import', '-d', directory, '-o', 'cachefile=none', pool, other)
      try {
        space.write('a', '2\n')
        await (await space.open()).rollback('one')
        expect(space.read('a')).toBe('1\n')
        expect(scene.snapshotsOf(other).map(name => name.split('@')[1])).toContain(where.split('@')[1])
        await besideNamesake(space, where.split('@')[0]!)
      } finally {
        retried('zpool', 'export', other)
        run('zpool', 'import', '-d', directory, '-o', 'cachefile=none', other, pool)
        retried('zpool', 'export', pool)
      }
    })
  })

  /** Another pool has taken the name: nothing is taken for removed because that has no such snapshot. */
  async function besideNamesake(space: Workspace, dataset: string) {
    const [pool, image] = [dataset.split('/')[0]!, join(space.base, 'namesake.img')]
    run('truncate', '-s', '100M', image)
    run('zpool', 'create', '-o', 'cachefile=none', '-m', 'none', pool, image)
    try {
      run('zfs', 'create', '-p', '-o', 'mountpoint=none', dataset)
      space.write('a', '3\n')
      await (await space.open()).rollback('two')
      expect(space.read('a')).toBe('two\n')
      await (await space.open()).purge('a')
      expect(scene.snapshotsOf('savepointother').filter(name => name.includes('@savepoint-'))).toEqual([])
    } finally {
      retried('zpool', 'destroy', pool)
      rmSync(image)
    }
  }

  holds('does not go back as a whole where somebody works in a clone of a later one; nothing changes', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    space.write('a', '2\n')
    await snapshot(space, 'two')
    const savepoint = await space.open({ force: true })
    const { where } = savepoint.nativeUsage('two')!
    const clone = `${where.split('@')[0]}.clone`
    run('zfs', 'clone', '-o', 'mountpoint=none', where, clone)
    try {
      for (const dryRun of [true, false])
        await expect(savepoint.rollback('one', { native: true, dryRun })).rejects.toMatchObject({
          code: 'backend.failed',
          message: `Cannot roll back natively: ${clone} would be lost`,
          hint: expect.stringContaining('leave --native out'),
        })
      expect([space.read('a'), savepoint.find('two').backend]).toEqual(['2\n', 'zfs'])
    } finally {
      retried('zfs', 'destroy', clone)
    }
    await savepoint.rollback('one', { native: true })
    expect([space.read('a'), savepoint.find('two').backend]).toEqual(['1\n', 'cas'])
  })

  holds('says which of its snapshots has what was not captured and is gone', async space => {
    space.write('.savepointignore', '*.db\n')
    space.write('data.db')
    await snapshot(space, 'one')
    rmSync(space.at('data.db'))
    const [where] = scene.kept(space)
    const id = (await space.open()).find('one').id
    const has = `${id}, which zfs keeps, has data.db as it was then, in ${where} (a \`zfs clone\` of that shows it)\n`
    const said = ['rollback', 'history', 'coverage'].map(verb => {
      return runCli(space, [verb, verb === 'rollback' ? id : 'data.db']).stdout
    })
    expect(said).toEqual(said.map(() => expect.stringContaining(has)))
    expect(said[0]).toContain('gone: data.db (ignored; only zfs has it)\n')
    retried('zfs', 'destroy', where!)
    expect(runCli(space, ['rollback', id]).stdout).toContain('gone: data.db (ignored; it cannot be brought back)\n')
  })

  holds(
    'says of a later one that another home of Savepoint keeps it, and not that it is of somebody else',
    async space => {
      space.write('a', '1\n')
      await snapshot(space, 'one')
      const home = join(space.base, 'other home')
      await (await space.open({ home })).snapshot({})
      const other = scene.kept(space).at(-1)!
      const native = (...words: string[]) => runCli(space, ['rollback', 'one', '--native', ...words])
      const refused = native()
      expect(refused.stderr).toContain(`1 later snapshot that another home or timeline of Savepoint keeps: ${other}\n`)
      expect(refused.stderr).toContain('hint: They are of another home or timeline of Savepoint. --force destroys')
      run('zfs', 'snapshot', `${other.split('@')[0]}@mine`)
      const both = native().stderr
      expect(both).toContain('1 later snapshot that somebody else took: ')
      expect(both).toContain(`hint: ${other} is of another home or timeline of Savepoint. --force`)
    },
  )
}
