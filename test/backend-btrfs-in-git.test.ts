/** Where btrfs keeps snapshots of a subvolume inside of a repository: git does not see them. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect } from 'vitest'
import { makePlace, removeIfEmpty } from '../src/backends/place.ts'
import { onBtrfs, run, useElsewhere, useScene } from './support/backend-scene.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let [space, elsewhere]: Workspace[] = []
const onDisk = useScene(scene, made => {
  space = made
})
useElsewhere(made => {
  elsewhere = made
})

const shared = () => join(space!.base, '.savepoint-snapshots')
const ignored = () => readFileSync(join(shared(), '.gitignore'), 'utf8')
const opened = () => space!.open({ home: elsewhere!.home })

describe('a subvolume inside of a repository', () => {
  onDisk('`git add -A` stages nothing of its snapshots, and with the last one the directory goes', async () => {
    run('git', 'init', '-q', space!.base)
    space!.write('a')
    space!.write('.env', 'SECRET=1\n')
    writeFileSync(join(space!.base, '.gitignore'), '.env\n/user\n')
    await (await opened()).snapshot({})
    expect(scene.kept(space!)).toHaveLength(1)
    run('git', '-C', space!.base, 'add', '-A')
    const staged = run('git', '-C', space!.base, 'ls-files').trim().split('\n')
    expect(staged).toEqual(['.gitignore', 'work/a'])
    // Another one who is killed after he made the directory has left it without, or with a file that nothing is in.
    for (const left of [
      () => rmSync(join(shared(), '.gitignore')),
      () => writeFileSync(join(shared(), '.gitignore'), ''),
    ]) {
      left()
      await (await opened()).snapshot({})
      expect(ignored()).toBe('*\n')
    }
    // Whoever opens the timeline next hides them again.
    spawnSync('git', ['-C', space!.base, 'clean', '-fdx', '-e', '/user', '--', '.savepoint-snapshots'])
    expect([existsSync(join(shared(), '.gitignore')), scene.kept(space!).length]).toEqual([false, 3])
    ;(await opened()).snapshots()
    expect(ignored()).toBe('*\n')
    // Purged, they all go.
    await (await opened()).purge('a')
    expect(readdirSync(space!.base)).not.toContain('.savepoint-snapshots')
  })

  onDisk('the directory of another timeline in there keeps it hidden, and what the user has put there stays', () => {
    const [place, other] = [join(shared(), 'one'), join(shared(), 'other')]
    for (const each of [place, other]) makePlace(each, 'test')
    removeIfEmpty(place)
    expect([readdirSync(shared()).toSorted(), ignored()]).toEqual([['.gitignore', 'other'], '*\n'])
    rmdirSync(other)
    mkdirSync(place)
    writeFileSync(join(shared(), 'notes'), '')
    removeIfEmpty(place)
    expect(readdirSync(shared()).toSorted()).toEqual(['.gitignore', 'notes'])
    rmSync(join(shared(), 'notes'))
    mkdirSync(place)
    removeIfEmpty(place)
    expect(readdirSync(dirname(shared()))).not.toContain('.savepoint-snapshots')
  })
})
