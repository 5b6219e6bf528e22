/** `rollback --native` while others work in the same dataset, fails or is killed on the way, or its dataset has another name. */
import { chmodSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { COARSE_SLACK_MS } from '../../src/targets/dir/racy.ts'
import { type PoolScene, retried, run } from './backend-scene.ts'
import { startRun } from './background-run.ts'
import { runCli } from './cli.ts'
import { finishVerbs, startVerbs } from './engine-process.ts'
import { flipIn, noise } from './tree-ops.ts'
import type { Workspace } from './workspace.ts'

type Holds = (title: string, work: (space: Workspace) => Promise<void>) => void
type Take = (space: Workspace, label: string) => Promise<unknown>

/** One, with what rules exclude, and two, which is later; both are read. */
export async function oneAndTwo(space: Workspace, snapshot: Take) {
  space.write('.savepointignore', 'excluded\n')
  space.write('excluded', 'before\n')
  space.write('a', '1\n')
  await snapshot(space, 'one')
  space.write('excluded', 'after\n')
  space.write('a', '2\n')
  await snapshot(space, 'two')
  const savepoint = await space.open()
  return { savepoint, one: savepoint.find('one').id, two: savepoint.find('two').id }
}

export function rolledBackZfs(scene: PoolScene, holds: Holds, snapshot: Take): void {
  holds('a run that has zfs take the dataset back did that: it is undone', async space => {
    space.write('a', '1\n')
    await snapshot(space, 'one')
    const [kept] = scene.kept(space)
    space.write('a', '2\n')
    const script = `echo made > made; rm -rf none; cd /; zfs rollback ${kept}`
    const { stderr } = runCli(space, ['run', '--', 'sh', '-c', script], {
      env: { ...space.env, PATH: process.env.PATH },
    })
    expect(stderr).toMatch(/1 modified/)
    expect(space.read('a')).toBe('1\n')
    const { restore } = await (await space.open()).undo()
    expect([restore!.leftAlone, space.read('a')]).toEqual([[], '2\n'])
    const savepoint = await space.open()
    const { id } = savepoint.snapshots().findLast(({ type }) => type === 'guard')!
    expect(savepoint.read(id, 'made').toString()).toBe('made\n')
  })

  holds('--native in a subdirectory: the dataset goes back as a whole, or not at all', async space => {
    space.write('sub/b', '1\n')
    await oneAndTwo(space, snapshot)
    const options = { cwd: space.at('sub'), env: { ...space.env, PATH: process.env.PATH } }
    const refused = runCli(space, ['rollback', 'one', '--native'], options)
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringMatching(/as a whole\n.*--all takes the whole/)])
    expect([/^savepoint: only/m.test(refused.stderr), space.read('a'), space.read('excluded')]).toEqual([
      false,
      '2\n',
      'after\n',
    ])
    const { status, stderr } = runCli(space, ['rollback', 'one', '--native', '--all', '--quiet'], options)
    expect([status, stderr]).toEqual([0, expect.stringContaining('also what rules exclude or was not captured')])
    expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'before\n'])
  })

  const datasetOf = (space: Workspace): string => scene.kept(space)[0]!.split('@')[0]!
  const idsOf = (space: Workspace): string[] => scene.kept(space).map(name => name.split(/@|-(?=snap_)/).at(-1)!)

  const scenery = (space: Workspace) => oneAndTwo(space, snapshot)

  for (const command of ['list', 'destroy', 'rollback'])
    holds(`goes back without losing what others make meanwhile (at zfs ${command})`, async space => {
      const { savepoint, one } = await scenery(space)
      const foreign = `${datasetOf(space)}@foreign`
      const before = command === 'rollback' ? ':' : `echo mine > '${space.at('edit')}'`
      await whileProgram(space, `[ "$1" = ${command} ]`, `zfs snapshot '${foreign}'; ${before}`, async () => {
        await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
          message: expect.stringMatching(/@foreign came meanwhile$/),
          hint: expect.stringContaining('The files are back, as without --native'),
        })
      })
      expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'after\n'])
      expect(idsOf(space)).toEqual(expect.arrayContaining([one, 'foreign']))
      if (command === 'destroy')
        expect(savepoint.read((await savepoint.status()).head!.id, 'edit').toString()).toBe('mine\n')
      await (await space.open()).undo()
      expect(space.read('a')).toBe('2\n')
    })

  holds('brings back what rules exclude and is gone, and does not call it lost', async space => {
    const { savepoint } = await scenery(space)
    space.sh('rm excluded')
    expect((await savepoint.rollback('two')).gone.paths).toMatchObject([{ path: 'excluded' }])
    for (const dryRun of [true, false])
      expect((await savepoint.rollback('two', { native: true, dryRun })).gone.count).toBe(0)
    expect(space.read('excluded')).toBe('after\n')
  })

  holds('names what only a later one has that goes with it: too large to be captured', async space => {
    space.write('savepoint.yaml', 'snapshots: {max_file_bytes: 1 KB}\n')
    const { two } = await scenery(space)
    space.write('large.bin', 'x'.repeat(2000))
    await snapshot(space, 'three')
    space.sh('rm large.bin')
    const three = (await space.open()).find('three').id
    const said = `zfs LOSES with them what the store does not have: large.bin (too-large) of ${three}\n`
    const native = (...words: string[]) => runCli(space, ['rollback', 'two', '--native', '--quiet', ...words])
    expect(native('--dry-run').stderr).toContain(said.replace('LOSES', 'would lose'))
    expect(idsOf(space)).toContain(three)
    expect(native().stderr).toContain(said.replace('LOSES', 'loses'))
    expect(idsOf(space).at(-1)).toBe(two)
    expect((await space.open()).operations().at(-1)!.summary).toMatch(
      new RegExp(`; zfs has lost .*${three}, with what only that had: large.bin \\(too-large\\) of ${three}$`),
    )
  })

  holds('names what is there now and no snapshot has, and does not call it kept', async space => {
    space.write('savepoint.yaml', 'snapshots: {max_file_bytes: 1 KB}\n')
    space.write('old.bin', 'x'.repeat(2000))
    // Its time is told in seconds there.
    await pause(COARSE_SLACK_MS + 1000)
    const { one } = await scenery(space)
    space.write('large.bin', 'x'.repeat(2000))
    space.write('a', '3\n')
    const said = 'zfs LOSES what is there now and is not captured: large.bin (too-large)\n'
    const native = (...words: string[]) => runCli(space, ['rollback', 'one', '--native', ...words])
    expect(native('--dry-run', '--quiet').stderr).toContain(said.replace('LOSES', 'would lose'))
    const { stderr } = native()
    expect(stderr).toContain(said.replace('LOSES', 'loses'))
    expect(stderr).toMatch(
      new RegExp(`what differed from ${one} .* is kept in snap_\\w+, but for large.bin \\(too-large\\)\\n`),
    )
    expect([space.read('large.bin'), space.read('old.bin')]).toEqual([undefined, 'x'.repeat(2000)])
  })

  holds('keeps what somebody writes before the filesystem goes back', async space => {
    const { savepoint, one } = await scenery(space)
    await whileProgram(space, '[ "$1" = destroy ]', `echo mine > '${space.at('edit')}'`, async () => {
      await savepoint.rollback('one', { native: true })
    })
    expect([space.read('a'), space.read('excluded'), space.read('edit')]).toEqual(['1\n', 'before\n', undefined])
    const said = space.notices.find(text => text.includes('is kept in'))
    const kept = /is kept in (snap_\w+)$/.exec(said ?? '')![1]!
    expect(savepoint.read(kept, 'edit').toString()).toBe('mine\n')
    expect((await savepoint.status()).head!.id).toBe(one)
    expect(savepoint.operations().map(({ rule, summary }) => `${rule}: ${summary}`)).toContainEqual(
      expect.stringMatching(/^--native: the filesystem went back to .*; zfs has lost .*$/),
    )
  })

  holds('stays as it was where a later snapshot is held: none of them goes, then or at the next gc', async space => {
    const { savepoint, one, two } = await scenery(space)
    const held = scene.kept(space)[1]!
    run('zfs', 'hold', 'mine', held)
    try {
      await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
        message: `Cannot roll back natively: ${held} is held, and cannot be destroyed`,
      })
    } finally {
      run('zfs', 'release', 'mine', held)
    }
    expect(space.read('a')).toBe('2\n')
    await (await space.open()).gc()
    expect(idsOf(space)).toEqual([one, two])
  })

  holds('never destroys what the store has lost; verify --repair stores it again from there', async space => {
    await scenery(space)
    space.write('noise', noise(100_000, 1))
    await snapshot(space, 'three')
    await space.open()
    space.write('noise', 'other\n')
    const damaged = globSync('store/packs/*.pack', { cwd: space.home })
    for (const pack of damaged) flipIn(join(space.home, pack))
    const savepoint = await space.open()
    const kept = idsOf(space)
    for (const dryRun of [true, false])
      await expect(savepoint.rollback('one', { native: true, dryRun })).rejects.toMatchObject({
        message: expect.stringMatching(
          /^Cannot roll back natively: the store has lost parts of snap_\w+, which zfs keeps/,
        ),
      })
    expect([idsOf(space), space.read('a')]).toEqual([kept, '2\n'])
    const { problems, isRepairable } = await savepoint.verify()
    expect([problems.map(({ what }) => what).join(), isRepairable]).toEqual([
      expect.stringMatching(/lost .*: zfs keeps it, `savepoint verify --repair` stores it again/),
      true,
    ])
    expect(await savepoint.verify({ repair: true })).toMatchObject({ problems: [] })
    await savepoint.rollback('one', { native: true })
    await savepoint.rollback('three')
    expect(readFileSync(space.at('noise')).equals(noise(100_000, 1))).toBe(true)
  })

  holds('never goes back under a run in a directory of the dataset', async space => {
    space.write('inside/f', 'f1')
    const { savepoint } = await scenery(space)
    const run = await startRun(space, 'READY; read x', { args: ['-t', space.at('inside')] })
    try {
      await expect(savepoint.rollback('one', { native: true })).rejects.toMatchObject({
        message: `Cannot roll back natively: ${run.id} is at work`,
      })
    } finally {
      run.say('')
    }
    expect((await run.ended).status).toBe(0)
    expect([space.read('a'), space.read('excluded')]).toEqual(['2\n', 'after\n'])
    await savepoint.rollback('one', { native: true })
    expect(space.read('excluded')).toBe('before\n')
  })

  holds('by two at once: what one has destroyed does not stop the other', async space => {
    const { savepoint } = await scenery(space)
    const later = scene.kept(space)[1]!
    // The other one, when this one has said what would go.
    await whileProgram(space, '[ "$1" = list ]', `zfs destroy '${later}'`, async () => {
      await savepoint.rollback('one', { native: true })
    })
    expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'before\n'])
    await savepoint.undo()
    expect(space.read('a')).toBe('2\n')
  })

  holds('that is killed on the way has lost nothing, and goes back when asked again', async space => {
    const { one, two } = await scenery(space)
    const killedAt = async (failpoint: string) => {
      const child = startVerbs(space, [['rollback', 'one', { native: true }]], { failpoint })
      expect((await finishVerbs(child)).signal, failpoint).toBe('SIGKILL')
      return space.open()
    }
    // Nothing has gone yet, and so nothing does.
    await (await killedAt('native:before-rollback')).gc()
    expect([idsOf(space), space.read('a'), space.read('excluded')]).toEqual([[one, two], '1\n', 'after\n'])
    const half = await killedAt('native:destroyed')
    expect(half.nativeUsage('two')).toMatchObject({ isGone: true, bytes: undefined })
    expect(half.read('two', 'a').toString()).toBe('2\n')
    expect([idsOf(space), space.read('excluded')]).toEqual([[one], 'after\n'])
    const whole = await killedAt('native:gone-back')
    expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'before\n'])
    expect((await whole.verify()).problems).toEqual([])
    await whole.rollback('two')
    expect(space.read('a')).toBe('2\n')
    await whole.rollback('one', { native: true })
    expect([space.read('a'), idsOf(space)]).toEqual(['1\n', [one]])
  })

  holds('never goes back with the home of Savepoint in it, whatever force', async space => {
    const home = space.at('.savepoint')
    const config = 'snapshots:\n  min_free_bytes: 1 MB\n'
    mkdirSync(home)
    writeFileSync(join(home, 'config.yaml'), config)
    const savepoint = await space.open({ home, force: true })
    space.write('a', '1\n')
    await savepoint.snapshot({ label: 'one' })
    space.write('a', '2\n')
    await savepoint.snapshot({ label: 'two' })
    space.write('a', '3\n')
    for (const dryRun of [true, false])
      await expect(savepoint.rollback('one', { native: true, dryRun })).rejects.toMatchObject({
        message: expect.stringContaining('where Savepoint keeps what it captured, would go back, too'),
      })
    expect(space.read('a')).toBe('3\n')
    await savepoint.rollback('one')
    expect(space.read('a')).toBe('1\n')
    await savepoint.undo()
    expect(space.read('a')).toBe('3\n')
    savepoint.close()
  })

  holds('whose dataset has another name is shown under that, and goes back', async space => {
    const { one, two } = await scenery(space)
    const dataset = datasetOf(space)
    const other = `${dataset}.renamed`
    retried('zfs', 'unmount', dataset)
    retried('zfs', 'rename', dataset, other)
    retried('zfs', 'mount', other)
    try {
      const savepoint = await space.open({ force: true })
      expect(savepoint.nativeUsage(one)).toMatchObject({ where: expect.stringContaining(`${other}@`), isGone: false })
      space.notices.length = 0
      await savepoint.rollback('one', { native: true })
      expect(space.notices.join('\n')).toContain(`1 later snapshot of this timeline; the store has what was captured`)
      expect(space.notices.join('\n')).not.toContain('somebody else')
      expect([space.read('a'), space.read('excluded')]).toEqual(['1\n', 'before\n'])
      expect(savepoint.nativeUsage(two)).toBeUndefined()
    } finally {
      retried('zfs', 'unmount', other)
      retried('zfs', 'rename', other, dataset)
      retried('zfs', 'mount', dataset)
    }
  })
}

/** Somebody does that, once, just before the first call of `zfs` for which `when` is true. */
export async function whileProgram(
  space: Workspace,
  when: string,
  does: string,
  work: () => Promise<void>,
): Promise<void> {
  const directory = join(space.base, 'programs')
  const real = run('sh', '-c', 'command -v zfs').trim()
  mkdirSync(directory)
  const once = `if ${when} && mkdir '${directory}/done' 2>/dev/null; then PATH='${real.slice(0, -4)}':$PATH; ${does}; fi`
  writeFileSync(join(directory, 'zfs'), `#!/bin/sh\n${once}\nexec ${real} "$@"\n`)
  chmodSync(join(directory, 'zfs'), 0o755)
  const before = process.env.PATH
  process.env.PATH = `${directory}${delimiter}${before}`
  try {
    await work()
  } finally {
    process.env.PATH = before
  }
}
