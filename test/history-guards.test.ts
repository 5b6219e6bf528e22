/** What keeps history safe from accidents: of an agent inside a run, of a killed process, of a lost file of ours. */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { runCli } from './support/cli.ts'
import { runVerbs } from './support/engine-process.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'one')
  space.write('b', 'one')
})
afterEach(() => space.remove())

const timelineFile = (name: string) =>
  join(space.home, 'timelines', readdirSync(join(space.home, 'timelines'))[0]!, name)

describe('after a rollback that was killed', () => {
  it('what was edited or made since stays, and the state that was found is named', async () => {
    const first = await space.open()
    await first.snapshot({ label: 'one' })
    first.close()
    space.write('a', 'two')
    space.write('b', 'two')
    expect((await runVerbs(space, [['rollback', 'one']], { failpoint: 'restore:place' })).signal).toBe('SIGKILL')
    space.write('a', 'my work')
    space.write('new', 'mine')
    const savepoint = await space.open()
    expect([space.read('a'), space.read('b'), space.read('new')]).toEqual(['my work', 'one', 'mine'])
    const found = savepoint.snapshots().find(snapshot => snapshot.command?.includes('found after'))!
    expect(space.notices.join('\n')).toContain(found.id)
    expect(savepoint.read(found.id, 'new').toString()).toBe('mine')
  })
})

describe('a run whose supervisor was killed', () => {
  it('can be undone, and does not count as running', async () => {
    const script = 'echo agent > a; kill -9 $(ps -o ppid= -p $PPID); rm b'
    expect((await runVerbs(space, [['run', { command: ['sh', '-c', script] }]])).signal).toBe('SIGKILL')
    await expect.poll(() => existsSync(space.at('b'))).toBe(false)
    const savepoint = await space.open()
    await savepoint.undo()
    expect([space.read('a'), space.read('b')]).toEqual(['one', 'one'])
    expect(savepoint.runs()[0]).toMatchObject({ signal: 'SIGKILL', endedAt: expect.any(Number) })
  })
})

describe('after an undo that was killed', () => {
  it('the next command completes it, and says so in English', async () => {
    const first = await space.open()
    await first.run({ command: ['sh', '-c', 'echo two > a; echo two > b'] })
    first.close()
    expect((await runVerbs(space, [['undo']], { failpoint: 'restore:place' })).signal).toBe('SIGKILL')
    await space.open()
    expect(space.notices.join('\n')).toContain('completed an undo that was interrupted')
    expect([space.read('a'), space.read('b')]).toEqual(['one', 'one'])
  })
})

describe('an undo or redo that was killed', () => {
  it('is what saying it again means: it is completed, and no other one is taken back', async () => {
    const first = await space.open()
    await first.run({ command: ['sh', '-c', 'echo two > a'] })
    await first.run({ command: ['sh', '-c', 'echo three > a; echo three > b'] })
    first.close()
    const files = () => [space.read('a'), space.read('b')].map(text => text?.trim())
    const killed = (verb: string) =>
      expect(savepoint(space, [verb], { env: { ...space.env, SAVEPOINT_FAILPOINT: 'restore:place' } }).signal).toBe(
        'SIGKILL',
      )
    killed('undo')
    expect(savepoint(space, ['undo'])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(
        /^Undone: .*three.* \(it was interrupted, and is completed\)\nTo redo: savepoint redo\n$/,
      ),
    })
    expect(files()).toEqual(['two', 'one'])
    killed('redo')
    expect(savepointJson(space, ['redo'])).toMatchObject({ operation: { state: 'done' }, restore: null })
    expect(files()).toEqual(['three', 'three'])
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(files()).toEqual(['one', 'one'])
    killed('redo')
    // Another one is not what was interrupted.
    expect(savepoint(space, ['undo']).stderr).toContain('completed a redo that was interrupted')
    expect(files()).toEqual(['one', 'one'])
  })
})

describe('a run that was not protected', () => {
  const unprotected = async (script: string) => {
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots: { triggers: { disable_pre_run: true } }\n')
    await (await space.open()).run({ command: ['sh', '-c', script] })
    rmSync(join(space.home, 'config.yaml'))
  }
  const hintOf = async (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'no error',
      error => error.hint,
    )

  it('stops undo: what is older is not taken back from under it', async () => {
    const savepoint = await space.open()
    await savepoint.run({ command: ['sh', '-c', 'echo two > a'] })
    await unprotected('echo two > b')
    await expect(savepoint.undo()).rejects.toMatchObject({
      code: 'operation.none',
      message: expect.stringContaining('not protected'),
    })
    expect([space.read('a'), space.read('b')]).toEqual(['two\n', 'two\n'])
  })

  it('the hint of undo takes the run before it back, and `operations` promises no other way', async () => {
    const savepoint = await space.open()
    const { run } = await savepoint.run({ command: ['sh', '-c', 'echo two > a'] })
    await unprotected('echo two > b')
    expect(savepoint.operations().map(({ state }) => state)).toEqual(['past', 'fixed'])
    const hint = await hintOf(savepoint.undo())
    expect(hint).toContain(`\`savepoint rollback ${run!.id}\``)
    await savepoint.rollback(run!.id)
    expect([space.read('a'), space.read('b')]).toEqual(['one', 'two\n'])
    await savepoint.undo()
    expect(space.read('a')).toBe('two\n')
    expect(await hintOf(savepoint.undo())).toBe(hint)
  })

  it('after a rollback the hint names the snapshot of the state before that', async () => {
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.write('a', 'two')
    const { safety } = await savepoint.rollback(id)
    await unprotected('echo two > b')
    expect(await hintOf(savepoint.undo())).toContain(`\`savepoint rollback ${safety!.id}\``)
  })

  it('what was undone before it cannot be redone over it', async () => {
    const savepoint = await space.open()
    await savepoint.run({ command: ['sh', '-c', 'echo two > a'] })
    await savepoint.undo()
    await unprotected('echo three > a')
    await expect(savepoint.redo()).rejects.toMatchObject({ code: 'operation.none' })
    expect(space.read('a')).toBe('three\n')
  })

  it('stands in the list of operations as such', async () => {
    await (await space.open()).run({ command: ['sh', '-c', 'echo two > a'] })
    await unprotected('echo two > b')
    const { stdout } = runCli(space, ['operations'])
    expect(stdout).toMatch(/ run +.* not protected +run_/)
    expect(stdout).not.toContain('can be undone')
  })
})

describe('R18 inside a run', () => {
  it('gc, purge, prune and deleting what it did not make are refused', async () => {
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    const inside = await space.open({ env: { ...space.env, SAVEPOINT_RUN: 'run_x' } })
    const refused = { code: 'run.inside' }
    await expect(inside.gc()).rejects.toMatchObject(refused)
    await expect(inside.purge('a')).rejects.toMatchObject(refused)
    await expect(inside.prune({ keep: 0 })).rejects.toMatchObject(refused)
    const { before } = await savepoint.run({ command: ['sh', '-c', 'test -n "$SAVEPOINT_RUN" && echo x > a'] })
    await expect(inside.delete([before!.id])).rejects.toMatchObject(refused)
    await expect(inside.delete([id])).rejects.toMatchObject(refused)
    await expect(inside.compact([id, before!.id])).rejects.toMatchObject(refused)
    expect(space.read('a')).toBe('x\n')
    expect(savepoint.snapshots().map(snapshot => snapshot.id)).toEqual(expect.arrayContaining([id, before!.id]))
  })

  it('a purge that would be refused is not asked about', async () => {
    await (await space.open()).snapshot()
    const { status, stderr } = runCli(space, ['purge', 'a'], { env: { ...space.env, SAVEPOINT_RUN: 'run_x' } })
    expect(status).toBe(1)
    expect(stderr).toBe(
      'savepoint: Cannot purge: this is a process of run_x\n  hint: Do it after the run has ended, from outside of it\n',
    )
  })

  it('a manual snapshot carries the id of the run, which may compact and delete its own', async () => {
    const others = await (await space.open()).snapshot()
    const inside = await space.open({ env: { ...space.env, SAVEPOINT_RUN: 'run_x' } })
    const own = [await inside.snapshot(), await inside.snapshot(), await inside.snapshot()]
    expect([others, ...own].map(({ run }) => run)).toEqual([undefined, 'run_x', 'run_x', 'run_x'])
    await expect(inside.compact([others.id, own[0]!.id])).rejects.toMatchObject({
      code: 'run.inside',
      message: `Cannot compact ${others.id}, which is no manual snapshot of this run: this is a process of run_x`,
    })
    const { snapshot } = await inside.compact([own[0]!.id, own[1]!.id], {})
    await inside.delete([snapshot.id])
    const other = await space.open({ env: { ...space.env, SAVEPOINT_RUN: 'run_y' } })
    await expect(other.delete([own[2]!.id])).rejects.toMatchObject({ code: 'run.inside' })
  })
})

describe('files of ours that are lost', () => {
  it('gc refuses when a timeline has lost its database', async () => {
    const lost = await space.open()
    await lost.snapshot()
    lost.close()
    const file = timelineFile('timeline.sqlite')
    writeFileSync(file, '')
    for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
    const other = new Workspace()
    try {
      const savepoint = await other.open({ home: space.home })
      await savepoint.snapshot()
      await expect(savepoint.gc()).rejects.toMatchObject({
        code: 'store.damaged',
        message: expect.stringContaining('empty'),
      })
    } finally {
      other.remove()
    }
  })

  it('a damaged record of the target is said, and no second history begins', async () => {
    const savepoint = await space.open()
    await savepoint.snapshot()
    savepoint.close()
    writeFileSync(timelineFile('target.json'), 'x')
    await expect(space.open()).rejects.toMatchObject({
      code: 'store.damaged',
      message: expect.stringContaining('target.json'),
    })
    expect(readdirSync(join(space.home, 'timelines'))).toHaveLength(1)
  })

  it('R11 a target that is gone is not made again for a state that the store has lost', async () => {
    const savepoint = await space.open()
    await savepoint.snapshot({ label: 'one' })
    const packs = join(space.home, 'store/packs')
    for (const name of readdirSync(packs)) rmSync(join(packs, name))
    rmSync(space.dir, { recursive: true })
    savepoint.close()
    const later = await space.open({ target: space.dir, cwd: space.base })
    await expect(later.rollback('one')).rejects.toMatchObject({ code: 'store.damaged' })
    expect(existsSync(space.dir)).toBe(false)
  })
})

describe('the command line', () => {
  it('run exits 125 whatever kept it from starting', () => {
    space.write('savepoint.yaml', 'nonsense: 1\n')
    expect(runCli(space, ['run', '--', 'true']).status).toBe(125)
    expect(runCli(space, ['run', '-t', '/', '--', 'true']).status).toBe(125)
  })

  it('a prefix that fits several snapshots is ambiguous, however short', async () => {
    const savepoint = await space.open()
    const letters = new Map<string, number>()
    while (![...letters.values()].includes(2)) {
      const { id } = await savepoint.snapshot()
      letters.set(id[5]!, (letters.get(id[5]!) ?? 0) + 1)
    }
    const [letter] = [...letters].find(([, count]) => count === 2)!
    expect(() => savepoint.find(`snap_${letter}`)).toThrow(expect.objectContaining({ code: 'snapshot.ambiguous' }))
  })

  it('run in a subdirectory names the undo that works there', () => {
    space.write('sub/x', '1')
    const run = (script: string) => runCli(space, ['run', '--', 'sh', '-c', script], { cwd: space.at('sub') }).stderr
    expect(runCli(space, ['snapshot']).status).toBe(0)
    expect(run('echo 2 > x')).toMatch(/To undo: savepoint undo\n/)
    expect(run('echo 2 > ../a')).toMatch(/To undo: savepoint undo --all\n/)
    expect(runCli(space, ['undo'], { cwd: space.at('sub') }).status).toBe(2)
    expect(runCli(space, ['undo', '--all'], { cwd: space.at('sub') }).status).toBe(0)
    expect(space.read('a')).toBe('one')
  })

  it('the first snapshot counts what `show` lists: files, links, and directories with nothing captured in them', async () => {
    space.sh('rm -rf ./*; mkdir -p deep/empty full empty ignored; echo x > full/file; ln -s file full/link')
    space.sh('echo x > ignored/left; echo "ignored/*" > .savepointignore')
    const first = await (await space.open({ home: `${space.base}/fresh` })).snapshot()
    const { changes } = (await space.open({ home: `${space.base}/fresh` })).snapshotChanges(first.id)
    expect(changes.map(({ path }) => path)).toEqual([
      ...['.savepointignore', 'deep/empty', 'empty', 'full/file', 'full/link', 'ignored'],
    ])
    expect(first.counts).toEqual({ added: changes.length, modified: 0, deleted: 0 })
    expect(first.files).toBe(3)
  })

  it('compact counts against the parent that it gets', async () => {
    const savepoint = await space.open()
    const ids = []
    for (const content of ['two', 'three', 'four']) {
      space.write('a', content)
      if (content === 'three') rmSync(space.at('b'))
      ids.push((await savepoint.snapshot()).id)
    }
    expect((await savepoint.compact(ids.slice(1))).snapshot.counts).toEqual({ added: 0, modified: 1, deleted: 1 })
  })

  it('what comes after a compacted one is modified in history, not new', async () => {
    const savepoint = await space.open()
    for (const label of ['two', 'three', 'four']) {
      space.write('a', label)
      await savepoint.snapshot({ label })
    }
    await savepoint.compact(['two', 'three'])
    const { versions } = await savepoint.history('a')
    expect(versions.find(({ snapshot }) => snapshot.label === 'four')!.status).toBe('modified')
  })

  it('redo takes .git away whole, although git status wrote its index in between', () => {
    space.sh('git init -q; git add a; git commit -qm one')
    expect(runCli(space, ['run', '--', 'rm', '-rf', '.git']).status).toBe(0)
    expect(runCli(space, ['undo']).status).toBe(0)
    space.sh('touch a; git status')
    expect(runCli(space, ['redo']).status).toBe(0)
    expect(existsSync(space.at('.git'))).toBe(false)
  })
})
