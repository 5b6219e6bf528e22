/** R1, R2, R3, R16: rules that differ between a snapshot and now. Nothing that was not captured is ever touched. */
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
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
