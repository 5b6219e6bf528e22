/** Copies that somebody has made of ZFS snapshots: where nobody can tell them from the original, they stay, and that is said. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type PoolScene, retried, run } from './backend-scene.ts'
import { runCli } from './cli.ts'
import type { Workspace } from './workspace.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

export function copiedZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  const WEEK_MS = 8 * 24 * 3600 * 1000

  /** Of both snapshots, elsewhere; then that is cloned, and the clone promoted, so that they are older than what they are in. */
  function receiveAndPromote(space: Workspace, copy: string): string[] {
    const [one, two] = scene.kept(space)
    const clone = `${copy}.clone`
    run('sh', '-c', `zfs send '${one}' | zfs receive -u '${copy}'`)
    run('zfs', 'set', 'mountpoint=none', copy)
    run('sh', '-c', `zfs send -i '${one}' '${two}' | zfs receive -u '${copy}'`)
    run('zfs', 'clone', '-o', 'mountpoint=none', `${copy}@${two!.split('@')[1]}`, clone)
    run('zfs', 'promote', clone)
    return [one, two].map(name => `${clone}@${name!.split('@')[1]}`)
  }

  const destroyAll = (...datasets: string[]) => {
    for (const dataset of datasets) retried('zfs', 'destroy', '-rRf', dataset)
  }

  /** Two that nobody has read, and copies of them. */
  async function withCopies(space: Workspace, work: (copies: string[], dataset: string) => Promise<void>) {
    space.write('secret', '1\n')
    await snapshot(space, 'one')
    await snapshot(space, 'two')
    const dataset = run('findmnt', '-nro', 'SOURCE', space.dir).trim()
    const copies = receiveAndPromote(space, `${dataset}.copy`)
    try {
      await work(copies, dataset)
      expect(scene.snapshotsOf(`${dataset}.copy.clone`)).toEqual(copies)
    } finally {
      destroyAll(`${dataset}.copy.clone`, `${dataset}.copy`)
    }
  }

  holds('copies whose clone was promoted stay where the original was removed by hand', async space => {
    await withCopies(space, async () => {
      for (const name of scene.kept(space)) retried('zfs', 'destroy', name)
      const savepoint = await space.open()
      expect(savepoint.read('one', 'secret').toString()).toBe('1\n')
      expect(await savepoint.purge('secret')).toMatchObject({ mayBeLeft: [] })
      expect(scene.kept(space)).toEqual([])
    })
  })

  for (const verb of ['purge', 'gc'])
    holds(`where the dataset is gone, ${verb} leaves what may be a copy, says so, and is done`, async space => {
      await withCopies(space, async ([copy], dataset) => {
        destroyAll(dataset)
        const opened = (now = () => Date.now()) => space.open({ cwd: space.base, target: space.dir, now })
        try {
          const savepoint = await opened(() => Date.now() - WEEK_MS)
          expect(savepoint.read('one', space.at('secret')).toString()).toBe('1\n')
          const { id } = savepoint.snapshots()[0]!
          if (verb === 'gc') await savepoint.delete(['one'])
          const command = verb === 'gc' ? ['gc'] : ['purge', space.at('secret'), '--yes', '--json']
          const { status, stdout, stderr } = runCli(space, [...command, '-t', space.dir], { cwd: space.base })
          expect(stderr).toMatch(`may be left: ${copy} is that of ${id}, or a copy of it, which nobody can tell now`)
          expect(stderr).toMatch(`It stays; if you do not need it: zfs destroy ${copy}`)
          expect(status).toBe(3)
          if (verb === 'purge')
            expect(JSON.parse(stdout)).toMatchObject({
              snapshots: 2,
              may_be_left: [{ snapshot: id, backend: 'zfs', may_be: copy }, { backend: 'zfs' }],
            })
          space.notices.length = 0
          await (await opened()).gc()
          expect(space.notices).toEqual([])
        } finally {
          run('zfs', 'create', '-o', `mountpoint=${space.dir}`, dataset)
        }
      })
    })

  holds('a copy in another pool is read where it is all that is left, stays, and stops no purge', async space => {
    const pool = `savepoint-copies-${process.pid}`
    const disk = join(space.base, 'copies.img')
    run('truncate', '-s', '100M', disk)
    run('zpool', 'create', '-o', 'cachefile=none', '-m', 'none', pool, disk)
    try {
      space.write('secret')
      await snapshot(space, 'one')
      await snapshot(space, 'two')
      const copies = receiveAndPromote(space, `${pool}/copy`)
      for (const name of scene.kept(space)) retried('zfs', 'destroy', name)
      expect(await (await space.open()).purge('secret')).toMatchObject({ snapshots: 2, mayBeLeft: [] })
      expect(scene.snapshotsOf(pool)).toEqual(copies)
    } finally {
      spawnSync('zpool', ['destroy', '-f', pool])
    }
  })

  holds('what several promoted clones took along is known by where its dataset comes from', async space => {
    space.write('secret')
    await snapshot(space, 'one')
    space.write('b')
    await snapshot(space, 'two')
    const [one, two] = scene.kept(space)
    const [dataset] = two!.split('@')
    const [first, second] = [`${dataset}.first`, `${dataset}.second`]
    run('zfs', 'clone', '-o', 'mountpoint=none', two!, first)
    run('zfs', 'promote', first)
    run('zfs', 'snapshot', `${first}@other`)
    run('zfs', 'clone', '-o', 'mountpoint=none', one!.replace(dataset!, first), second)
    try {
      run('zfs', 'promote', second)
      expect(scene.snapshotsOf(second)).toHaveLength(1)
      const savepoint = await space.open()
      expect(savepoint.nativeUsage('one')!.where).toBe(one!.replace(dataset!, second))
      expect(savepoint.nativeUsage('two')!.where).toBe(two!.replace(dataset!, first))
      expect(savepoint.snapshots().map(({ nativeRef }) => JSON.parse(nativeRef!).mark)).toEqual([
        expect.any(String),
        expect.any(String),
      ])
    } finally {
      for (const name of [first, dataset!]) run('zfs', 'promote', name)
      destroyAll(second, first)
    }
  })
}
