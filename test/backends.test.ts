/** One contract for all who keep snapshots: what a user can do with one does not depend on who keeps it. */
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { OpenOptions } from '../src/index.ts'
import { COARSE_SLACK_MS } from '../src/targets/dir/racy.ts'
import { archives, onBtrfs, onZfs, plain, run, type Scene, useDisk } from './support/backend-scene.ts'
import { runCli } from './support/cli.ts'
import { finishVerbs, startVerbs } from './support/engine-process.ts'
import { holedIn, holeProblems, mutateHoles } from './support/holes.ts'
import { gated } from './support/machine.ts'
import { MappedFile } from './support/mapped-file.ts'
import { numbers } from './support/numbers.ts'
import { differences, imageOf } from './support/tree-image.ts'
import type { Workspace } from './support/workspace.ts'
import { onlyZfs } from './support/zfs-cases.ts'
import { copiedZfs } from './support/zfs-copies-cases.ts'
import { identifiedZfs } from './support/zfs-identity-cases.ts'
import { interruptedZfs } from './support/zfs-interrupted-cases.ts'
import { leftInZfs } from './support/zfs-left-cases.ts'
import { mountedZfs } from './support/zfs-mount-cases.ts'
import { zfsWithoutPool } from './support/zfs-pools-cases.ts'
import { rolledBackZfs } from './support/zfs-rollback-cases.ts'

const WEEK_MS = 8 * 24 * 3600 * 1000
const HOLE_ROUNDS = 8

const pool = onZfs()

describe.each<Scene>([plain, archives, onBtrfs(), pool])('$name', scene => {
  useDisk(scene)

  const holds = (title: string, work: (space: Workspace) => Promise<void>) =>
    gated(scene.possible, scene.needs, title, async () => {
      const space = scene.make()
      try {
        await work(space)
      } finally {
        scene.remove(space)
      }
    })

  /** Captures as `savepoint snapshot` does: what can be read later, is. */
  async function snapshot(space: Workspace, label: string, options: OpenOptions = {}) {
    const savepoint = await space.open({ leaveUnread: true, ...options })
    return savepoint.snapshot({ label })
  }

  holds('what is stored through memory, without a timestamp, is in the next one', async space => {
    space.write('db', 'v0'.padEnd(4096))
    const inStore = { env: { ...space.env, SAVEPOINT_BACKEND: 'cas' } }
    const mapped = await MappedFile.open(space.at('db'))
    try {
      await mapped.store('v1')
      // Time itself is waited for: what is younger is not relied on anyway.
      await pause(COARSE_SLACK_MS + 100)
      await snapshot(space, 'native')
      await mapped.store('v2')
      await pause(COARSE_SLACK_MS + 100)
      await snapshot(space, 'store', inStore)
      await mapped.store('v3')
      await snapshot(space, 'native again')
      await mapped.store('v4')
      await snapshot(space, 'store again', inStore)
      await mapped.store('v5')
      await mapped.unmap()
      await snapshot(space, 'unmapped')
    } finally {
      await mapped.unmap()
    }
    const savepoint = await space.open()
    const seen = savepoint.snapshots().map(({ id }) => savepoint.read(id, 'db').toString().slice(0, 2))
    expect(seen).toEqual(['v1', 'v2', 'v3', 'v4', 'v5'])
  })

  holds('captures, lists and reads', async space => {
    space.write('a', 'one\n')
    space.write('dir/b', 'b\n')
    expect(await snapshot(space, 'first')).toMatchObject({ backend: scene.name, label: 'first' })
    space.write('a', 'two\n')
    space.write('dir/new')
    rmSync(space.at('dir/b'))
    await snapshot(space, 'second')
    const savepoint = await space.open()
    const [first, second] = savepoint.snapshots()
    expect(first).toMatchObject({ label: 'first', backend: scene.name, files: 2, bytes: 6 })
    expect(second).toMatchObject({ label: 'second', backend: scene.name, parent: first!.id })
    expect(second!.counts).toEqual({ added: 1, modified: 1, deleted: 1 })
    expect(savepoint.read('first', 'a').toString()).toBe('one\n')
    expect(savepoint.read('second', 'a').toString()).toBe('two\n')
    expect((await savepoint.verify()).problems).toEqual([])
  })

  holds('compares with another one and with what is there now', async space => {
    space.write('same')
    space.write('a', '1\n')
    await snapshot(space, 'one')
    space.write('a', '2\n')
    await snapshot(space, 'two')
    space.write('b')
    const savepoint = await space.open()
    const between = await savepoint.diff({ from: 'one', to: 'two' })
    expect(between.changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(['modified a'])
    const live = await savepoint.diff({ from: 'one' })
    expect(live.changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(['modified a', 'added b'])
  })

  holds('restores the whole, a path, or into a directory; undo and redo', async space => {
    mess(space)
    const before = imageOf(space.dir)
    await snapshot(space, 'good')
    const { ino } = lstatSync(space.dir)
    change(space)
    const after = imageOf(space.dir)
    const savepoint = await space.open()
    await savepoint.rollback('good', { to: join(space.base, 'elsewhere') })
    expect(differences(before, imageOf(join(space.base, 'elsewhere')))).toEqual([])
    expect(differences(after, imageOf(space.dir))).toEqual([])
    await savepoint.rollback('good', { paths: ['plain'] })
    expect(space.read('plain')).toBe('plain\n')
    expect(space.read('fresh')).toBe('fresh\n')
    await savepoint.undo()
    await savepoint.rollback('good')
    expect(differences(before, imageOf(space.dir))).toEqual([])
    // In place: whoever works in the directory still does.
    expect(lstatSync(space.dir).ino).toBe(ino)
    await savepoint.undo()
    expect(differences(after, imageOf(space.dir))).toEqual([])
    await savepoint.redo()
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect((await savepoint.verify()).problems).toEqual([])
  })

  holds('leaves alone what the rules exclude', async space => {
    space.git('init', '-q')
    space.write('.gitignore', 'modules\n.env\n')
    space.write('modules/large', 'before\n')
    space.write('.env', 'secret\n')
    space.write('a', '1\n')
    await snapshot(space, 'one')
    space.write('modules/large', 'after\n')
    space.write('.env', 'lost\n')
    space.write('a', '2\n')
    const savepoint = await space.open()
    await savepoint.rollback('one')
    expect([space.read('modules/large'), space.read('.env'), space.read('a')]).toEqual(['after\n', 'secret\n', '1\n'])
  })

  holds('keeps together what others keep: the store, and what came before', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    space.write('a', '2\n')
    await snapshot(space, 'two', { backend: 'cas' })
    space.write('a', '3\n')
    await snapshot(space, 'three')
    const savepoint = await space.open()
    expect(savepoint.snapshots().map(({ backend }) => backend)).toEqual([scene.name, 'cas', scene.name])
    expect(savepoint.snapshots().map(({ counts }) => counts.modified)).toEqual([0, 1, 1])
    for (const [label, content] of [
      ['one', '1\n'],
      ['two', '2\n'],
      ['three', '3\n'],
      ['one', '1\n'],
    ] as const) {
      await savepoint.rollback(label)
      expect(space.read('a')).toBe(content)
    }
    expect((await savepoint.diff({ from: 'one', to: 'two' })).changes).toHaveLength(1)
  })

  holds('deletes for good after the time in which that can be undone', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    space.write('a', '2\n')
    await snapshot(space, 'two')
    const before = scene.kept(space).length
    let now = Date.now()
    const savepoint = await space.open({ now: () => now })
    await savepoint.delete(['one'])
    await savepoint.gc()
    expect(scene.kept(space)).toHaveLength(before)
    await savepoint.undo()
    expect(savepoint.read('one', 'a').toString()).toBe('1\n')
    await savepoint.delete(['one'])
    now += WEEK_MS
    await savepoint.gc()
    expect(scene.kept(space)).toHaveLength(Math.max(0, before - 1))
    const usage = savepoint.nativeUsage('two')
    if (scene === plain) expect(usage).toBeUndefined()
    else expect(usage).toMatchObject({ where: scene.kept(space)[0], bytes: expect.any(Number) })
    expect(savepoint.read('two', 'a').toString()).toBe('2\n')
  })

  holds('killed in a capture, a reading or a restore, the next command goes on', async space => {
    const killed = async (failpoint: string, ...verbs: Parameters<typeof startVerbs>[1]) =>
      expect((await finishVerbs(startVerbs(space, verbs, { failpoint }))).signal).toBe('SIGKILL')
    space.write('a', '1\n')
    await killed(scene === plain ? 'capture:committed' : 'native:captured', ['snapshot', { label: 'lost' }])
    expect((await space.open()).snapshots()).toEqual([])
    await snapshot(space, 'one')
    // What was kept for the one that never was is gone.
    expect(scene.kept(space)).toHaveLength(scene === plain ? 0 : 1)
    if (scene !== plain && scene !== archives) await killed('native:before-read', ['status'])
    space.write('a', '2\n')
    await killed('restore:journal', ['rollback', 'one'])
    const savepoint = await space.open()
    expect(space.read('a')).toBe('1\n')
    await savepoint.undo()
    expect(space.read('a')).toBe('2\n')
    expect((await savepoint.verify()).problems).toEqual([])
  })

  holds('purges what it kept', async space => {
    space.write('secret', 'a very secret word\n')
    space.write('a')
    await snapshot(space, 'one')
    rmSync(space.at('secret'))
    const savepoint = await space.open()
    const kept = savepoint.leftByPurge('secret')
    expect(kept).toHaveLength(scene === plain ? 0 : 1)
    expect(await savepoint.purge('secret')).toMatchObject({ snapshots: 1, elsewhere: [], leftToStore: kept })
    expect(savepoint.operations().at(-1)?.summary).toBe(
      `purge secret${scene === plain ? '' : `; left 1 snapshot to the store alone (was: ${scene.name})`}`,
    )
    expect(scene.kept(space)).toEqual([])
    await savepoint.rollback('one')
    expect(readdirSync(space.dir)).toEqual(['a'])
  })

  holds('says of what was removed by hand that it was gone, when it purges the rest', async space => {
    space.write('secret', 'a very secret word\n')
    const { id } = await snapshot(space, 'one')
    await snapshot(space, 'two')
    await space.open()
    const byHand = { cas: undefined, archive: 'rm', btrfs: 'btrfs subvolume delete', zfs: 'zfs destroy' }[scene.name]
    const one = scene.kept(space).find(name => name.includes(id))
    if (byHand !== undefined) run('sh', '-c', `${byHand} '${one}'`)
    const { stdout } = runCli(space, ['purge', 'secret', '--yes'])
    const [, ...lines] = stdout.trimEnd().split('\n')
    if (byHand === undefined) return expect(lines.join()).not.toMatch(/Removed|Gone/)
    expect(lines[0]).toMatch(/^Removed, too: 1 (snapshot that \w+ kept|archive)/)
    expect(lines[1]).toBe(`Gone already, removed by somebody else: what was kept of ${id} beside the store`)
    expect(scene.kept(space)).toEqual([])
  })

  holds(
    'is named where its history, put back from an older copy, does not know it; and no purge believes it gone',
    async space => {
      const isKeptWhole = scene.name === 'btrfs' || scene.name === 'zfs'
      space.write('secret', 'a very secret word\n')
      const take = (label: string) => runCli(space, ['snapshot', '-q', '-m', label]).stdout.trim()
      const one = take('one')
      // What btrfs keeps lies in there, and is in no such copy.
      space.sh(`mkdir ../older; cd '${space.home}'; cp -a [!n]* ../older`)
      const two = take('two')
      space.sh(`cd '${space.home}'; rm -r [!n]*; mv ../older/* .`)
      const verified = runCli(space, ['verify'])
      expect(verified.stdout).toMatch(/^All good: /)
      const stray = `${scene.name} keeps 1 snapshot of ${space.dir} that its history does not know`
      expect(verified.stderr.includes(stray)).toBe(isKeptWhole)
      const purged = runCli(space, ['purge', 'secret', '--yes'])
      expect(purged.stdout).toMatch(/^Purged secret: 1 version/)
      if (!isKeptWhole) return expect([purged.status, purged.stderr.includes('does not know')]).toEqual([0, false])
      expect([purged.status, purged.stderr]).toEqual([
        3,
        expect.stringContaining(`${stray}, and that may have secret: `),
      ])
      expect(scene.kept(space)).toEqual([expect.stringContaining(two)])
      expect(purged.stderr).not.toContain(one)
      // Once more it is there alone: nothing else goes for that.
      const again = runCli(space, ['purge', 'secret', '--yes'])
      expect([again.status, again.stderr]).toEqual([12, expect.stringContaining(stray)])
      run('sh', '-c', /who does not need them: (.*)/.exec(purged.stderr)![1]!)
      expect([scene.kept(space), runCli(space, ['verify']).stderr]).toEqual([[], ''])
    },
  )

  holds('is named also where its history was put back from before anything was kept', async space => {
    const isKeptWhole = scene.name === 'btrfs' || scene.name === 'zfs'
    space.write('secret', 'a very secret word\n')
    runCli(space, ['snapshot', '-q', '--backend', 'cas'])
    space.sh(`cp -a '${space.home}' ../older`)
    // Of the same directory, and of another timeline.
    const another = { env: { ...space.env, SAVEPOINT_HOME: `${space.home}-another` } }
    for (const settings of [{}, another]) runCli(space, ['snapshot', '-q'], settings)
    space.sh(`cd '${space.home}'; rm -r [!n]*; mv ../older/* .`)
    const { stderr } = runCli(space, ['verify'])
    const stray = `${scene.name} keeps 1 snapshot of ${space.dir} that its history does not know`
    expect(stderr.includes(stray)).toBe(isKeptWhole)
    const purged = runCli(space, ['purge', 'secret', '--yes', '--json', '-q'])
    const left = scene.kept(space).filter(place => stderr.includes(`${place} (`))
    expect(left).toHaveLength(isKeptWhole ? 1 : 0)
    expect([purged.status, JSON.parse(purged.stdout).may_be_left, purged.stderr]).toEqual([
      isKeptWhole ? 3 : 0,
      left.map(place => expect.objectContaining({ backend: scene.name, may_be: place })),
      isKeptWhole ? expect.stringContaining(`what a filesystem keeps may still have it: ${left}; `) : '',
    ])
    if (isKeptWhole) run('sh', '-c', /who does not need them: (.*)/.exec(stderr)![1]!)
    expect(runCli(space, ['verify']).stderr).toBe('')
    expect(scene.kept(space)).toHaveLength(isKeptWhole ? 1 : 0)
  })

  holds('purges what rules exclude, where it kept that', async space => {
    space.write('.savepointignore', 'secret\n')
    space.write('secret', 'a very secret word\n')
    await snapshot(space, 'one')
    rmSync(space.at('secret'))
    const savepoint = await space.open()
    const isKeptWhole = scene.name === 'btrfs' || scene.name === 'zfs'
    expect((await savepoint.coverage('secret')).mayBeIn).toHaveLength(isKeptWhole ? 1 : 0)
    await expect(savepoint.purge('public')).rejects.toMatchObject({ code: 'path.unknown' })
    const purged = savepoint.purge('secret')
    if (isKeptWhole)
      expect(await purged).toMatchObject({ snapshots: 0, versions: 0, leftToStore: [{ backend: scene.name }] })
    else await expect(purged).rejects.toMatchObject({ code: 'path.unknown' })
    expect(scene.kept(space)).toHaveLength(scene === archives ? 1 : 0)
    await savepoint.rollback('one')
    expect(space.read('.savepointignore')).toBe('secret\n')
  })

  holds('removes once what several snapshots share since they were joined', async space => {
    space.write('secret', 'a very secret word\n')
    await snapshot(space, 'one')
    space.write('a')
    await snapshot(space, 'two')
    let now = Date.now()
    const savepoint = await space.open({ now: () => now })
    await savepoint.compact(['one', 'two'], { label: 'both' })
    expect(await savepoint.purge('secret')).toMatchObject({ snapshots: 3, elsewhere: [] })
    expect(scene.kept(space)).toEqual([])
    await snapshot(space, 'three')
    await snapshot(space, 'four')
    const later = await space.open({ now: () => now })
    await later.compact(['three', 'four'], { label: 'more' })
    await later.rollback('both')
    await later.delete(['more'])
    now += WEEK_MS
    await later.gc()
    expect([scene.kept(space), space.notices.join()]).toEqual([[], expect.not.stringContaining('still there')])
  })

  holds('brings holes back as holes: files changed at random, and compared block by block', async space => {
    const random = numbers(11)
    const states = new Map<string, ReturnType<typeof holedIn>>()
    for (let round = 0; round < HOLE_ROUNDS; round++) {
      for (let i = 0; i < 5; i++) mutateHoles(space, random)
      await snapshot(space, `${round}`)
      states.set(`${round}`, holedIn(space.dir))
    }
    const savepoint = await space.open()
    for (const label of ['0', '4', '2', '6', '1', '7']) {
      await savepoint.rollback(label)
      expect(holeProblems(states.get(label)!, holedIn(space.dir)), label).toEqual([])
      const to = join(space.base, `to ${label}`)
      await savepoint.rollback(label, { to })
      expect(holeProblems(states.get(label)!, holedIn(to)), `to ${label}`).toEqual([])
    }
  })

  // Here, because all that use zfs-fuse share it.
  if (scene === pool) onlyZfs(pool, holds, snapshot)
  if (scene === pool) mountedZfs(pool, holds, snapshot)
  if (scene === pool) leftInZfs(pool, holds, snapshot)
  if (scene === pool) identifiedZfs(pool, holds, snapshot)
  if (scene === pool) copiedZfs(pool, holds, snapshot)
  if (scene === pool) zfsWithoutPool(pool, holds)
  if (scene === pool) rolledBackZfs(pool, holds, snapshot)
  if (scene === pool) interruptedZfs(pool, holds, snapshot)
})

/** Whatever a directory can hold. */
function mess(space: Workspace): void {
  space.write('plain')
  space.write('dir/x')
  space.write('dir/sub/y')
  space.write('other/z')
  mkdirSync(space.at('empty'))
  space.sh(`chmod 600 plain; chmod 755 dir/x; ln dir/x other/linked; ln -s nowhere dangling; ln -s dir toDir
    printf x > 'with space'; printf y > "$(printf 'new\\nline')"; printf z > "$(printf 'byte\\377')"
    truncate -s 100000 sparse; touch -d '2001-02-03 04:05:06' plain; mkfifo pipe; chmod 700 empty`)
}

/** Everything that could be missed. */
function change(space: Workspace): void {
  space.write('plain', 'PLAIN\n')
  space.write('fresh')
  space.sh(`touch -d '2001-02-03 04:05:06' plain; echo more >> other/linked; chmod 750 empty
    mv dir swap; mv other dir; mv swap other; rm dangling toDir; mkdir dangling; echo in > dangling/in
    mv 'with space' empty/; rm sparse`)
  if (!existsSync(space.at('empty/with space'))) throw new Error('the scene is not as meant')
}
