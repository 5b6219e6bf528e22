/** By what ZFS datasets and their snapshots are known: by no name, which another one may have by now, and asked for no more often than needed. */
import { readFileSync } from 'node:fs'
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
}
