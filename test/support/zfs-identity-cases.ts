/** By what ZFS datasets and their snapshots are known: by no name, which another one may have by now, and asked for no more often than needed. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type PoolScene, retried, run } from './backend-scene.ts'
import type { Workspace } from './workspace.ts'
import { whileProgram } from './zfs-rollback-cases.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

export function identifiedZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  holds('a capture is one `zfs` command: what it is known by is asked by who reads it', async space => {
    await snapshot(space, 'one')
    await space.open()
    const asked = join(space.base, 'asked')
    const each = `rmdir '${join(space.base, 'programs/done')}'; echo "$1" >> '${asked}'`
    await whileProgram(space, 'true', each, async () => void (await snapshot(space, 'two')))
    expect(readFileSync(asked, 'utf8')).toBe('snapshot\n')
  })

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
}
