/** R1, R2, R3, R16: rules that differ between a snapshot and now. Nothing that was not captured is ever touched. */
import { existsSync, statSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { runCli } from './support/cli.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(() => {
  space = new Workspace()
  space.git('init', '-q', '-b', 'main', '.')
})
afterEach(() => space.remove())

const uncaptured = () =>
  new Map([...imageOf(space.dir, { untouched: true })].filter(([path]) => /^(node_modules|out|data\/local)/.test(path)))

describe('R1, R3: what was never captured', () => {
  it('survives rollback, undo, redo and revert without a touch', async () => {
    space.write('.gitignore', 'node_modules/\n*.sqlite\nout/\n')
    space.write('src/a', 'one')
    space.write('node_modules/dep/index.js')
    space.write('data/local.sqlite', Buffer.alloc(500_000, 1))
    space.sh('mkdir out; truncate -s 1G out/huge; ln -s huge out/link; chmod 555 node_modules/dep')
    savepoint = await space.open()
    const first = await savepoint.snapshot()
    // Less than the gigabyte by far: it was not read, and not stored.
    expect(first.sizeDelta).toBeLessThan(1_000_000)
    const kept = uncaptured()
    expect(kept.size).toBe(7)
    const same = () => expect(differences(kept, uncaptured())).toEqual([])
    space.write('src/a', 'two')
    space.write('data/new')
    space.write('.gitignore', 'node_modules/\n*.sqlite\nout/\n#\n')
    await savepoint.rollback(first.id)
    expect([space.read('src/a'), existsSync(space.at('data/new'))]).toEqual(['one', false])
    same()
    await savepoint.undo()
    same()
    await savepoint.redo()
    same()
    space.sh('rm -rf src')
    await savepoint.revert('src', { from: first.id })
    expect(space.read('src/a')).toBe('one')
    same()
  })

  it('survives when its directory did not exist in the snapshot: the directory stays, the captured files in it go', async () => {
    space.write('.gitignore', '*.cache\n')
    savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.write('made/later/code')
    space.write('made/later/x.cache', 'precious')
    space.write('made/code')
    const result = await savepoint.rollback(id)
    expect(space.read('made/later/x.cache')).toBe('precious')
    expect([space.read('made/later/code'), space.read('made/code')]).toEqual([undefined, undefined])
    expect(result.keptDirs).toEqual(['made', 'made/later'])
    expect(result.leftAlone).toEqual([])
  })
})

describe('a kept file (.env) that a directory replaced, which the rules exclude', () => {
  beforeEach(async () => {
    space.write('.gitignore', '.env\n')
    space.write('.env', 'TOKEN=1')
    savepoint = await space.open()
  })

  it.each([false, true])(
    'empty (in a snapshot of its own: %s): it comes back, and undo gives the directory back',
    async isCaptured => {
      const { id } = await savepoint.snapshot()
      space.sh('rm .env; mkdir .env')
      if (isCaptured) await savepoint.snapshot()
      expect((await savepoint.rollback(id)).leftAlone).toEqual([])
      expect(space.read('.env')).toBe('TOKEN=1')
      await savepoint.undo()
      expect(statSync(space.at('.env')).isDirectory()).toBe(true)
    },
  )

  it('by a run: undo brings it back', async () => {
    await savepoint.run({ command: ['sh', '-c', 'rm .env; mkdir .env'] })
    expect((await savepoint.undo()).restore!.leftAlone).toEqual([])
    expect(space.read('.env')).toBe('TOKEN=1')
  })

  it('with something in it: left alone and reported', async () => {
    const { id } = await savepoint.snapshot()
    space.sh('rm .env; mkdir .env; echo precious > .env/x')
    expect((await savepoint.rollback(id)).leftAlone).toEqual([{ path: '.env', why: 'holds-uncaptured' }])
    expect(space.read('.env/x')).toBe('precious\n')
  })
})

it('a file that the run replaced by what cannot be captured, and which is gone since: undo says that it is left alone', async () => {
  space.write('was-file', 'then')
  savepoint = await space.open()
  const listen = 'import os, socket; os.remove("was-file"); socket.socket(socket.AF_UNIX).bind("was-file")'
  await savepoint.run({ command: ['python3', '-c', listen] })
  space.sh('rm was-file')
  expect((await savepoint.undo()).restore!.leftAlone).toEqual([{ path: 'was-file', why: 'edited' }])
})

describe('what ignore rules hid is named by the rollback that leaves it where it is', () => {
  beforeEach(async () => {
    space.write('.gitignore', 'node_modules/\n')
    space.write('src/a', 'one')
    space.write('node_modules/dep/index.js')
    savepoint = await space.open()
  })
  const widen =
    "echo '*' > .gitignore; echo x > new; mkdir -p made/deep src/sub; echo x > made/deep/x; echo x > src/sub/y; echo x > node_modules/z; rm src/a"

  it('made while the rules were wider: listed with directories as one path, without what both rules exclude', async () => {
    const { id } = await savepoint.snapshot()
    space.sh(widen)
    const result = await savepoint.rollback(id)
    expect(result.hidden).toEqual({ count: 3, paths: ['made', 'new', 'src/sub'] })
    expect(result.leftAlone).toEqual([])
    expect([space.read('new'), space.read('src/a'), space.read('made/deep/x')]).toEqual(['x\n', 'one', 'x\n'])
    // They are captured now, and known: the next one takes them away.
    expect((await savepoint.rollback(id)).hidden).toEqual({ count: 0, paths: [] })
    expect([existsSync(space.at('new')), existsSync(space.at('node_modules/z'))]).toEqual([false, true])
  })

  it('what is not captured for another reason is not blamed on the rules', async () => {
    space.write('secret')
    const { id } = await savepoint.snapshot()
    await savepoint.purge('secret')
    space.write('src/a', 'two')
    const result = await savepoint.rollback(id)
    expect([result.hidden.count, result.uncaptured]).toEqual([0, [{ path: 'secret', reason: 'purged' }]])
    expect(space.read('secret')).toBe('secret\n')
  })

  it('by a run that is undone, too; a scoped rollback names only what is in its scope', async () => {
    const { run } = await savepoint.run({ command: ['sh', '-c', widen] })
    expect((await savepoint.undo()).restore!.hidden.paths).toEqual(['made', 'new', 'src/sub'])
    await savepoint.redo()
    const scoped = await savepoint.rollback(run!.before!, { paths: ['.gitignore', 'made'] })
    expect(scoped.hidden).toEqual({ count: 1, paths: ['made'] })
  })

  // What the real ones find afterwards, the others must foresee.
  it.each([
    ['of the root', widen, ['made', 'new', 'src/sub']],
    ['that come with a directory', 'mkdir -p made/in; echo x > made/in/.gitignore; echo x > made/in/x', ['made/in/x']],
    ['of a repository', 'echo out >> .git/info/exclude; echo x > out; echo x > node_modules/z', ['out']],
    ['of ours', 'echo big > .savepointignore; mkdir big; echo x > big/x', ['big']],
    [
      'of a repository that it makes',
      'git init -q made; echo x > made/x; echo x >> made/.git/info/exclude',
      ['made/x'],
    ],
    ['that hide themselves', "echo '*' > src/.gitignore; echo x > src/new", ['src/.gitignore', 'src/new']],
    ['that hide themselves, beside other changes', "echo '*' > src/.gitignore; echo x > other", ['src/.gitignore']],
    ['that hide themselves in a directory of their own', "mkdir made; echo '*' > made/.gitignore; echo x > made/x", []],
    ['that are gone', 'rm .gitignore; rm -rf node_modules; echo x > new', []],
  ])('the summary of a run and --dry-run foresee it: rules %s', async (_which, script, paths) => {
    const { run, hidden } = await savepoint.run({ command: ['sh', '-c', script] })
    const dry = [
      (await savepoint.undo({ dryRun: true })).restore!.hidden,
      (await savepoint.rollback(run!.id, { dryRun: true })).hidden,
      (await savepoint.rollback(run!.before!, { dryRun: true })).hidden,
    ]
    const real = (await savepoint.undo()).restore!.hidden
    expect(real).toEqual({ count: paths.length, paths })
    for (const each of [hidden, ...dry]) expect(each).toEqual(real)
  })

  it('the summary says it in words', () => {
    const { stderr } = runCli(space, ['run', '--', 'sh', '-c', 'echo out/ > .gitignore; mkdir out; echo x > out/x'])
    expect(stderr).toContain('NOT protected and made: out (ignored by rules of the run; undo leaves it)\n')
    expect(runCli(space, ['undo', '--dry-run']).stdout).toContain('Stay, because ignore rules hid them: out\n')
  })

  it('not in the snapshot because its rules excluded it, captured today: listed', async () => {
    const { id } = await savepoint.snapshot()
    space.sh('echo > .gitignore; echo changed > node_modules/dep/index.js')
    expect((await savepoint.rollback(id)).hidden).toEqual({ count: 1, paths: ['node_modules'] })
    expect(space.read('node_modules/dep/index.js')).toBe('changed\n')
  })

  it('very many: all are counted, a hundred are listed', async () => {
    const { id } = await savepoint.snapshot()
    space.sh("echo '*' > .gitignore; seq 300 | sed 's/^/made-/' | xargs touch")
    const { hidden } = await savepoint.rollback(id)
    expect([hidden.count, hidden.paths.length]).toEqual([300, 100])
  })
})

describe('R2: rules that became stricter or looser between two snapshots', () => {
  it('a path that the newer rules exclude is not deleted by a rollback to before it existed', async () => {
    space.write('.gitignore', '')
    savepoint = await space.open()
    const before = await savepoint.snapshot()
    space.write('.gitignore', 'local/\n.secrets\n')
    space.write('local/db', 'rows')
    space.write('.secrets', 'token')
    await savepoint.snapshot()
    await savepoint.rollback(before.id)
    expect(space.read('.gitignore')).toBe('')
    expect([space.read('local/db'), space.read('.secrets')]).toEqual(['rows', 'token'])
    // From now on they are captured, and the next rollback to the snapshot in between leaves them alone again.
    await savepoint.undo()
    expect([space.read('.gitignore'), space.read('local/db')]).toEqual(['local/\n.secrets\n', 'rows'])
  })

  it('excluded then, captured now: a rollback leaves it as it is', async () => {
    space.write('.gitignore', 'config\ndir/\n')
    space.write('config', 'mine')
    space.write('dir/a', 'mine')
    savepoint = await space.open()
    const excluded = await savepoint.snapshot()
    space.write('.gitignore', '')
    space.write('config', 'newer')
    space.write('dir/b', 'newer')
    await savepoint.snapshot()
    await savepoint.rollback(excluded.id)
    expect([space.read('config'), space.read('dir/a'), space.read('dir/b')]).toEqual(['newer', 'mine', 'newer'])
    expect(space.read('.gitignore')).toBe('config\ndir/\n')
  })

  it('captured then, excluded now: a rollback brings the old bytes, and undo the present ones (R16)', async () => {
    space.write('settings', 'old')
    space.write('gen/deep/code', 'old')
    savepoint = await space.open()
    const captured = await savepoint.snapshot()
    space.write('.gitignore', 'settings\ngen/\n')
    space.write('settings', 'edited while it was ignored')
    space.write('gen/deep/code', 'edited while it was ignored')
    space.write('gen/deep/other', 'never captured')
    await savepoint.snapshot()
    const before = imageOf(space.dir)
    const { leftAlone } = await savepoint.rollback(captured.id)
    expect(leftAlone).toEqual([])
    expect([space.read('settings'), space.read('gen/deep/code')]).toEqual(['old', 'old'])
    expect(space.read('gen/deep/other')).toBe('never captured')
    await savepoint.undo()
    expect(differences(before, imageOf(space.dir))).toEqual([])
    await savepoint.redo()
    expect([space.read('settings'), space.read('gen/deep/code')]).toEqual(['old', 'old'])
  })

  it('captured then, too large now: the live bytes are in the safety snapshot (R16)', async () => {
    space.write('data', 'small')
    savepoint = await space.open()
    const small = await savepoint.snapshot()
    space.write('data', Buffer.alloc(200_000, 5))
    space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 100 KB\n')
    const capped = await space.open()
    expect((await capped.snapshot()).skipped).toEqual([{ path: 'data', reason: 'too-large' }])
    const { safety } = await capped.rollback(small.id)
    expect(space.read('data')).toBe('small')
    expect(capped.read(safety!.id, 'data').equals(Buffer.alloc(200_000, 5))).toBe(true)
    await capped.undo()
    expect(space.read('data')?.length).toBe(200_000)
  })

  it('five times to and fro over an edit of the rules: nothing is lost', async () => {
    space.write('.gitignore', 'a\n')
    space.write('a', 'a1')
    space.write('b', 'b1')
    savepoint = await space.open()
    const one = await savepoint.snapshot()
    space.write('.gitignore', 'b\n')
    const two = await savepoint.snapshot()
    for (let round = 0; round < 5; round++) {
      await savepoint.rollback(one.id)
      await savepoint.rollback(two.id)
    }
    expect([space.read('a'), space.read('b'), space.read('.gitignore')]).toEqual(['a1', 'b1', 'b\n'])
  })
})

describe("undo of what today's rules exclude", () => {
  it('a revert that brought it: it goes again, and redo brings it', async () => {
    space.write('made/f', 'one')
    savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.sh('rm -r made; echo made > .gitignore')
    await savepoint.snapshot()
    expect((await savepoint.revert('made/f', { from: id })).changes).toHaveLength(2)
    const tried = await savepoint.undo({ dryRun: true })
    expect(tried.restore!.changes).toEqual([{ action: 'delete', path: 'made', files: 1 }])
    await savepoint.undo()
    expect(existsSync(space.at('made'))).toBe(false)
    await savepoint.redo()
    expect(space.read('made/f')).toBe('one')
    space.write('made/f', 'edited')
    space.write('made/other', 'ignored')
    const { restore } = await savepoint.undo()
    expect(restore!.leftAlone).toEqual([{ path: 'made/f', why: 'edited' }])
    expect([space.read('made/f'), space.read('made/other')]).toEqual(['edited', 'ignored'])
  })

  it('a run that made it before the rules excluded it: it goes, and what the rules always excluded stays', async () => {
    space.write('a')
    savepoint = await space.open()
    await savepoint.run({ command: ['sh', '-c', 'mkdir dist; echo x > dist/x'] })
    space.write('.gitignore', 'dist/\n')
    space.write('dist/later', 'precious')
    const { restore } = await savepoint.undo()
    expect([existsSync(space.at('dist/x')), space.read('dist/later')]).toEqual([false, 'precious'])
    expect(restore!.keptDirs).toEqual(['dist'])
    await savepoint.redo()
    expect(space.read('dist/x')).toBe('x\n')
  })
})

describe('conflicts', () => {
  it('a directory that must become a file but holds excluded children is left alone and reported', async () => {
    space.write('thing', 'a file')
    space.write('other', 'one')
    savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.sh(
      'rm thing; mkdir thing; echo "*.keep" > .gitignore; echo mine > thing/a.keep; echo code > thing/code; echo two > other',
    )
    const plan = await savepoint.rollback(id, { dryRun: true })
    expect(plan.leftAlone).toEqual([{ path: 'thing', why: 'holds-uncaptured' }])
    const result = await savepoint.rollback(id)
    expect(result.leftAlone).toEqual([{ path: 'thing', why: 'holds-uncaptured' }])
    expect([space.read('thing/a.keep'), space.read('thing/code')]).toEqual(['mine\n', 'code\n'])
    expect(space.read('other')).toBe('one')
    await savepoint.undo()
    expect([space.read('other'), space.read('thing/code')]).toEqual(['two\n', 'code\n'])
  })

  it('a file that must become a directory, where the file is excluded today, is kept in the safety snapshot', async () => {
    space.write('thing/code', 'in the directory')
    savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.sh('rm -r thing; echo "/thing" > .gitignore; echo precious > thing')
    const { safety, leftAlone } = await savepoint.rollback(id)
    expect([leftAlone, space.read('thing/code')]).toEqual([[], 'in the directory'])
    expect(savepoint.read(safety!.id, 'thing').toString()).toBe('precious\n')
    await savepoint.undo()
    expect(space.read('thing')).toBe('precious\n')
  })
})

describe('a name of a file that no rule excludes any more', () => {
  it('is the same file as its other names, in another directory as well', async () => {
    space.write('a', 'content')
    space.sh('ln a b; mkdir -p d/e; ln a d/e/c')
    space.write('.gitignore', 'a\nc\n')
    savepoint = await space.open()
    await savepoint.snapshot()
    space.sh('rm .gitignore')
    const { id } = await savepoint.snapshot()
    space.sh('rm -r a b d')
    await savepoint.rollback(id)
    expect(new Set(['a', 'b', 'd/e/c'].map(name => statSync(space.at(name)).ino)).size).toBe(1)
  })
})
