/** By what ZFS datasets and their snapshots are known: by no name, which another one may have by now, and asked for no more often than needed. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { type PoolScene, retried, run } from './backend-scene.ts'
import { runCli } from './cli.ts'
import type { Workspace } from './workspace.ts'
import { whileProgram } from './zfs-rollback-cases.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

export function identifiedZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  holds('a capture is one `zfs` command: what it is known by is asked by who reads it', async space => {
    await snapshot(space, 'one')
    await space.open()
    expect(await commandsOf(space, () => snapshot(space, 'two'))).toBe('snapshot\n')
  })

  holds(
    'another one of its name, made before the first was read, is read, and said to be perhaps another',
    async space => {
      space.write('a')
      await snapshot(space, 'one')
      const [name] = scene.kept(space)
      const { madeBy } = JSON.parse((await space.open({ leaveUnread: true })).snapshots().at(-1)!.nativeRef!)
      run('zfs', 'destroy', name!)
      space.write('a', 'later')
      // Its time is told in whole seconds.
      while (Date.now() < madeBy + 2100) await pause(50)
      run('zfs', 'snapshot', name!)
      const said = /\(one\) may not be what was captured: its zfs snapshot is younger than that/
      const savepoint = await space.open()
      expect(space.notices.filter(text => said.test(text))).toHaveLength(1)
      expect(savepoint.read('one', 'a').toString()).toBe('later')
      expect(
        savepoint.operations().filter(({ rule, summary }) => rule === 'changed' && said.test(summary)),
      ).toHaveLength(1)
      await snapshot(space, 'two')
      space.notices.length = 0
      await space.open()
      expect(space.notices).toEqual([])
    },
  )

  holds('what nobody has read is told from a copy that was received in its place, and goes alone', async space => {
    space.write('secret')
    await snapshot(space, 'one')
    const [name] = scene.kept(space)
    const [dataset, short] = name!.split('@')
    const [old, copy] = [`${dataset}.old`, `${dataset}.copy`]
    run('sh', '-c', `zfs send '${name}' | zfs receive -u '${copy}'`)
    run('zfs', 'set', 'mountpoint=none', copy)
    retried('zfs', 'unmount', dataset!)
    retried('zfs', 'rename', dataset!, old)
    retried('zfs', 'rename', copy, dataset!)
    try {
      const savepoint = await space.open()
      expect(savepoint.nativeUsage('one')!.where).toBe(`${old}@${short}`)
      await savepoint.purge('secret')
      expect([scene.snapshotsOf(old), scene.kept(space)]).toEqual([[], [name]])
    } finally {
      retried('zfs', 'destroy', '-rRf', dataset!)
      retried('zfs', 'rename', old, dataset!)
    }
  })

  holds('what a pool has that was split off from its own stays, also where only that is imported', async space => {
    const [pool, half] = [`savepoint-whole-${process.pid}`, `savepoint-half-${process.pid}`]
    const disks = ['one.img', 'two.img'].map(name => join(space.base, name))
    const target = join(space.base, 'mirrored')
    run('truncate', '-s', '100M', ...disks)
    run('zpool', 'create', '-o', 'cachefile=none', '-m', target, pool, 'mirror', ...disks)
    const opened = () => space.open({ cwd: target })
    const importAs = (...names: string[]) => run('zpool', 'import', '-d', space.base, '-o', 'cachefile=none', ...names)
    try {
      writeFileSync(join(target, 'secret'), '')
      expect(await (await opened()).snapshot({})).toMatchObject({ backend: 'zfs' })
      retried('zpool', 'split', pool, half, disks[1]!)
      retried('zpool', 'export', pool)
      importAs('-R', join(space.base, 'half'), half)
      const refused = (await space.open({ cwd: space.base, target })).purge(join(target, 'secret'))
      await expect(refused).rejects.toThrow(/^Cannot complete the purge: .*import its pool, under its own name/)
      importAs(pool, `${pool}.new`)
      await opened()
      expect(space.notices.at(-1)).toBe('completed a purge that was interrupted: secret')
      expect([scene.snapshotsOf(`${pool}.new`).length, scene.snapshotsOf(half).length]).toEqual([0, 1])
    } finally {
      for (const name of [pool, `${pool}.new`, half]) spawnSync('zpool', ['destroy', '-f', name])
    }
  })

  holds('what nobody has read and a promoted clone took along is purged there, not called removed', async space => {
    space.write('secret')
    await snapshot(space, 'one')
    space.write('b')
    await snapshot(space, 'two')
    const [first, name] = scene.kept(space)
    const [dataset] = name!.split('@')
    const clone = `${dataset}.clone`
    run('zfs', 'clone', '-o', 'mountpoint=none', name!, clone)
    try {
      run('zfs', 'promote', clone)
      expect([scene.kept(space), scene.snapshotsOf(clone).length]).toEqual([[], 2])
      await expect((await space.open()).purge('secret')).rejects.toThrow(
        `the target is a clone of it: zfs promote ${dataset}; then`,
      )
      run('zfs', 'promote', dataset!)
    } finally {
      retried('zfs', 'destroy', clone)
    }
    await space.open()
    expect(scene.kept(space)).toEqual([])
    expect(first).toBeDefined()
  })

  holds('snapshots of a dataset that was made anew under the same name are known by that', async space => {
    await snapshot(space, 'one')
    const dataset = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
    retried('zfs', 'destroy', '-rRf', dataset)
    run('zfs', 'create', '-o', `mountpoint=${space.dir}`, dataset)
    space.write('secret')
    await (await space.open({ force: true, leaveUnread: true })).snapshot({ label: 'new' })
    const guid = run('zfs', 'get', '-Hpo', 'value', 'guid', dataset).trim()
    const taken = (await space.open({ leaveUnread: true })).snapshots().at(-1)!
    expect(JSON.parse(taken.nativeRef!).of).toMatch(new RegExp(`/${guid}$`))
  })

  holds('a directory of another dataset that has its number is not taken for one that is gone', async space => {
    const dataset = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
    const places = ['old', 'new'].map(name => join(space.base, `set-${name}`))
    const sets = ['old', 'new'].map(name => `${dataset}.${name}`)
    try {
      for (const [i, place] of places.entries()) run('zfs', 'create', '-o', `mountpoint=${place}`, sets[i]!)
      const [old, other] = places.map(place => join(place, 'project'))
      for (const project of [old!, other!]) mkdirSync(project)
      writeFileSync(join(old!, 'a'), 'old')
      await (await space.open({ cwd: old! })).snapshot({ label: 'one' })
      writeFileSync(join(other!, 'mine'), 'mine')
      for (const gone of [`zfs unmount '${sets[0]}'`, `zfs mount '${sets[0]}'; rm -r '${old}'`]) {
        run('sh', '-c', gone)
        await expect(space.open({ cwd: other!, create: false })).rejects.toMatchObject({ code: 'timeline.none' })
      }
      await (await space.open({ cwd: space.base, target: old! })).rollback('one')
      expect([readFileSync(join(old!, 'a'), 'utf8'), existsSync(join(other!, 'a'))]).toEqual(['old', false])
    } finally {
      for (const set of sets) retried('zfs', 'destroy', '-rRf', set)
    }
  })

  /** Another one of whichever name is mounted at the target, with a file of the same name, while `work` is done. */
  async function whileReplaced(space: Workspace, isNamesake: boolean, work: () => Promise<void>) {
    const dataset = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
    const [old, other] = isNamesake ? [`${dataset}.old`, dataset] : [dataset, `${dataset}.other`]
    retried('zfs', 'unmount', dataset)
    if (isNamesake) retried('zfs', 'rename', dataset, old)
    run('zfs', 'create', '-o', `mountpoint=${space.dir}`, other)
    try {
      space.write('a', 'of the other\n')
      await work()
      expect(scene.snapshotsOf(other)).toEqual([])
    } finally {
      retried('zfs', 'destroy', '-rRf', other)
      if (isNamesake) retried('zfs', 'rename', old, dataset)
      retried('zfs', 'mount', dataset)
    }
  }

  for (const name of ['another name', 'its name'])
    holds(`another dataset of ${name} in its place is not taken for it: nothing is written`, async space => {
      space.write('a', '1\n')
      await snapshot(space, 'one')
      runCli(space, ['run', '--', 'sh', '-c', 'echo 2 > a'])
      const dataset = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
      const before = (await space.open()).snapshots().length
      await whileReplaced(space, name === 'its name', async () => {
        const savepoint = await space.open()
        const hint = expect.stringContaining(
          name === 'its name'
            ? `The dataset ${dataset} that is mounted there is another one than before: mount that again; if this`
            : `The dataset ${dataset}.other is mounted there, and not ${dataset}: zfs unmount ${dataset}.other; zfs mount ${dataset}; if this`,
        )
        const refused = { code: 'target.replaced', hint }
        await expect(savepoint.snapshot({})).rejects.toMatchObject(refused)
        await expect((await space.open({ backend: 'cas' })).snapshot({})).rejects.toMatchObject(refused)
        await expect(savepoint.status()).rejects.toMatchObject(refused)
        await expect(savepoint.undo()).rejects.toMatchObject(refused)
        await expect(savepoint.rollback('one')).rejects.toMatchObject(refused)
        await expect(savepoint.rollback('one', { noSafety: true })).rejects.toMatchObject(refused)
        await expect(savepoint.rollback('one', { native: true })).rejects.toThrow('is not mounted at')
        expect(runCli(space, ['run', '--', 'touch', 'made']).status).toBe(125)
        expect([space.read('a'), existsSync(space.at('made'))]).toEqual(['of the other\n', false])
      })
      const savepoint = await space.open()
      expect(savepoint.snapshots()).toHaveLength(before)
      await savepoint.undo()
      expect(space.read('a')).toBe('1\n')
      expect(await snapshot(space, 'two')).toMatchObject({ backend: 'zfs' })
    })

  holds(
    'another dataset in its place is told by its name where `zfs` does not answer, as to an ordinary user',
    async space => {
      space.write('a', '1\n')
      await whileProgram(space, 'true', `rmdir '${join(space.base, 'programs/done')}'; exit 1`, async () => {
        await (await space.open({ backend: 'cas' })).snapshot({ label: 'one' })
        const path = process.env.PATH
        await whileReplaced(space, false, async () => {
          process.env.PATH = path
          await expect((await space.open()).rollback('one')).rejects.toMatchObject({ code: 'target.replaced' })
          expect(space.read('a')).toBe('of the other\n')
        })
      })
    },
  )

  holds('of a nested dataset that a run destroyed, the way back is one that works', async space => {
    const dataset = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
    run('zfs', 'create', `${dataset}/kid`)
    const kid = space.at('kid')
    writeFileSync(join(kid, 'c'), 'c')
    await (await space.open({ cwd: kid })).snapshot({ label: 'mine' })
    await space.open({ cwd: kid })
    const { stderr } = runCli(space, [
      'run',
      '--',
      'sh',
      '-c',
      `until zfs destroy -r '${dataset}/kid'; do sleep 0.1; done`,
    ])
    const way = /kid has a timeline of its own: savepoint (rollback .*)\n/
    expect(stderr).toMatch(way)
    runCli(space, way.exec(stderr)![1]!.split(' '))
    expect(readFileSync(join(kid, 'c'), 'utf8')).toBe('c')
  })

  holds('a dataset that was mounted anew is asked who it is once; its timeline can be taken along', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    const dataset = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
    retried('zfs', 'unmount', dataset)
    retried('zfs', 'mount', dataset)
    await snapshot(space, 'two')
    expect(await commandsOf(space, () => snapshot(space, 'three'))).toBe('snapshot\n')
    const elsewhere = join(space.base, 'elsewhere')
    retried('zfs', 'set', `mountpoint=${elsewhere}`, dataset)
    run('zfs', 'create', '-o', `mountpoint=${space.dir}`, `${dataset}.other`)
    try {
      const adopted = await space.open({ cwd: elsewhere, adopt: space.dir })
      await adopted.snapshot({ label: 'four' })
      expect(adopted.snapshots().map(({ label }) => label)).toEqual(['one', 'two', 'three', 'four'])
    } finally {
      retried('zfs', 'destroy', '-rRf', `${dataset}.other`)
    }
  })
}

/** What `zfs` is asked to do meanwhile. */
async function commandsOf(space: Workspace, work: () => Promise<unknown>): Promise<string> {
  const asked = join(space.base, 'asked')
  const each = `rmdir '${join(space.base, 'programs/done')}'; echo "$1" >> '${asked}'`
  await whileProgram(space, 'true', each, async () => void (await work()))
  return readFileSync(asked, 'utf8')
}
