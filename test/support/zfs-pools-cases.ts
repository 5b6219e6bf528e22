/** Pools that are not there, or not known: what is kept in them is neither lost nor purged, unless somebody says that they are gone. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type PoolScene, retried, run } from './backend-scene.ts'
import { runCli } from './cli.ts'
import type { Workspace } from './workspace.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void

export function zfsWithoutPool(scene: PoolScene, holds: Holds): void {
  holds('another pool of the same name does not make what nobody has read gone', async space => {
    const [pool, disks] = [
      `savepoint-same-${process.pid}`,
      ['a', 'b'].map(name => join(space.base, `same-${name}`, 'disk')),
    ]
    const target = join(space.base, 'same')
    for (const disk of disks) run('sh', '-c', `mkdir -p "$(dirname '${disk}')"; truncate -s 100M '${disk}'`)
    const make = (disk: string) => {
      run('zpool', 'create', '-o', 'cachefile=none', '-m', 'none', pool, disk)
      run('zfs', 'create', '-o', `mountpoint=${target}`, `${pool}/w`)
    }
    try {
      make(disks[0]!)
      writeFileSync(join(target, 'secret'), 's')
      await (await space.open({ cwd: target })).snapshot({ label: 'one' })
      retried('zpool', 'export', pool)
      make(disks[1]!)
      const looking = await space.open({ cwd: space.base, target })
      expect(looking.snapshots().map(({ label }) => label)).toEqual(['one'])
      await expect(looking.purge(join(target, 'secret'))).rejects.toThrow(
        'is not imported, and the one of that name is another',
      )
      const taken = await (await space.open({ cwd: target, force: true, leaveUnread: true })).snapshot({
        label: 'other',
      })
      expect(taken.backend).toBe('zfs')
      retried('zpool', 'destroy', '-f', pool)
      run('zpool', 'import', '-d', join(space.base, 'same-a'), '-o', 'cachefile=none', pool)
      const savepoint = await space.open({ cwd: space.base, target })
      // Then the purge is completed.
      expect([savepoint.snapshots()[0]!.label, scene.snapshotsOf(`${pool}/w`)]).toEqual(['one', []])
    } finally {
      spawnSync('zpool', ['destroy', '-f', pool])
    }
  })

  holds('while `zpool list` fails, what is not found is neither lost nor purged', async space => {
    space.write('secret')
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'one' })
    await (await space.open({ leaveUnread: true })).snapshot({ label: 'two' })
    const [one] = scene.kept(space)
    retried('zfs', 'destroy', one!)
    const programs = join(space.base, 'programs')
    mkdirSync(programs)
    writeFileSync(join(programs, 'zpool'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    const env = { ...space.env, PATH: `${programs}:${process.env.PATH}` }
    const unknown = '`zpool list` does not tell which pools there are'
    const looked = runCli(space, ['status'], { env })
    expect([looked.status, looked.stderr]).toEqual([
      0,
      expect.stringContaining(`is not read yet: Cannot find snapshots`),
    ])
    expect(looked.stderr).toContain(unknown)
    expect((await space.open({ leaveUnread: true })).snapshots().map(({ label }) => label)).toEqual(['one', 'two'])
    const refused = runCli(space, ['purge', 'secret', '--yes'], { env })
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining(unknown)])
    // With it, the one is known to be lost, and the other one is read.
    expect((await space.open()).snapshots().map(({ label }) => label)).toEqual(['two'])
    retried('zfs', 'destroy', scene.kept(space)[0]!)
    const begun = runCli(space, ['purge', 'secret', '--yes'], { env })
    expect([begun.status, begun.stderr]).toEqual([1, expect.stringContaining('Cannot complete the purge: ')])
    expect(begun.stderr).toContain(unknown)
    await space.open()
    expect(space.notices.at(-1)).toBe('completed a purge that was interrupted: secret')
  })

  for (const isThere of [true, false])
    holds(`that a pool is gone for good can be said as the message says (dataset there: ${isThere})`, async space => {
      const [pool, disk] = [`savepoint-gone-${process.pid}`, join(space.base, 'gone.img')]
      const target = join(space.base, 'gone')
      const make = (...options: string[]) => {
        run('truncate', '-s', '100M', disk)
        run('zpool', 'create', '-o', 'cachefile=none', '-m', 'none', pool, disk)
        if (options.length > 0) run('zfs', 'create', ...options, `${pool}/w`)
      }
      try {
        make('-o', `mountpoint=${target}`)
        writeFileSync(join(target, 'secret'), 's')
        await (await space.open({ cwd: target })).snapshot({ label: 'one' })
        await space.open({ cwd: target })
        retried('zpool', 'destroy', '-f', pool)
        make(...(isThere ? ['-o', 'mountpoint=none'] : []))
        const refused = await (await space.open({ cwd: space.base, target }))
          .purge(join(target, 'secret'))
          .catch(String)
        run('sh', '-c', / gone for good, ([^)]*)\)/.exec(refused as string)![1]!)
        space.notices.length = 0
        await space.open({ cwd: space.base, target })
        expect(space.notices).toEqual(['completed a purge that was interrupted: secret'])
      } finally {
        spawnSync('zpool', ['destroy', '-f', pool])
      }
    })
}
