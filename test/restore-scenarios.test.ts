/** A restore never hurts: what was not captured, what others did, and what lies elsewhere survives it. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { fullImageOf } from './support/full-image.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let ws: Workspace
let sp: Savepoint
beforeEach(async () => {
  ws = new Workspace()
  sp = await ws.open()
})
afterEach(() => ws.remove())

const run = (script: string) => sp.run({ command: ['sh', '-ec', script] })
/** Inode, ctime and directory mtimes included: equal means that nothing was written there. */
const untouched = (path: string) => imageOf(ws.at(path), { untouched: true })

describe('what was never captured', () => {
  beforeEach(() => {
    ws.sh('git init -q')
    ws.write('.gitignore', 'node_modules\n*.sqlite\nsecret.env\nout/\n')
  })

  test('R1 ignored files survive rollback, undo and redo untouched, also below directories that are deleted', async () => {
    const { id } = await sp.snapshot()
    ws.write('node_modules/dep/index.js')
    ws.write('local.sqlite', 'a database')
    ws.write('secret.env', 'KEY=1')
    ws.write('made/sub/code.ts')
    ws.write('made/sub/data.sqlite', 'another')
    const ignored = ['node_modules', 'local.sqlite', 'secret.env', 'made/sub/data.sqlite']
    const before = ignored.map(untouched)
    const rolled = await sp.rollback(id)
    expect(rolled.keptDirs).toEqual(['made', 'made/sub'])
    expect(fs.existsSync(ws.at('made/sub/code.ts'))).toBe(false)
    await sp.undo()
    expect(ws.read('made/sub/code.ts')).toBe('made/sub/code.ts\n')
    await sp.redo()
    expect(ignored.map(untouched)).toEqual(before)
  })

  test('R1 a directory that must become a file but holds ignored files is a conflict: left alone and reported', async () => {
    ws.write('thing', 'a file')
    const { id } = await sp.snapshot()
    ws.sh('rm thing; mkdir thing; echo x > thing/cache.sqlite; echo y > thing/other')
    const before = untouched('thing')
    const rolled = await sp.rollback(id)
    expect(rolled.leftAlone).toEqual([{ path: 'thing', why: 'holds-uncaptured' }])
    expect(untouched('thing')).toEqual(before)
  })

  test('R2 rolling back across an edit of .gitignore deletes nothing that the newer rules protected', async () => {
    ws.write('code')
    const { id } = await sp.snapshot()
    ws.write('.gitignore', 'generated\n')
    ws.write('generated/big')
    const before = untouched('generated')
    await sp.snapshot()
    await sp.rollback(id)
    expect(ws.read('.gitignore')).toContain('node_modules')
    expect(untouched('generated')).toEqual(before)
  })

  test('R3 much output that nobody captured survives and is not read', async () => {
    ws.sh('mkdir out; truncate -s 1G out/huge')
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    const before = fs.statSync(ws.at('out/huge'), { bigint: true })
    ws.write('a', 'now')
    await sp.rollback(id)
    expect(ws.read('a')).toBe('then')
    const after = fs.statSync(ws.at('out/huge'), { bigint: true })
    expect([after.ino, after.size, after.ctimeNs, after.atimeNs]).toEqual([
      before.ino,
      before.size,
      before.ctimeNs,
      before.atimeNs,
    ])
  })

  test('R16 a file captured then and ignored now: its live bytes are in the safety snapshot', async () => {
    ws.write('config', 'then')
    const { id } = await sp.snapshot()
    ws.write('config', 'precious')
    ws.write('.gitignore', 'config\n')
    const { safety } = await sp.rollback(id)
    expect(ws.read('config')).toBe('then')
    expect(sp.read(safety!.id, 'config').toString()).toBe('precious')
    await sp.undo()
    expect(ws.read('config')).toBe('precious')
  })

  test('R16 a file captured then and above the size cap now: its live bytes are in the safety snapshot', async () => {
    ws.write('savepoint.yaml', 'snapshots: { max_file_bytes: 1KB }\n')
    const capped = await ws.open()
    ws.write('data', 'then')
    const { id } = await capped.snapshot()
    ws.write('data', 'x'.repeat(5000))
    expect((await capped.snapshot()).skipped).toContainEqual({ path: 'data', reason: 'too-large' })
    const { safety } = await capped.rollback(id)
    expect(ws.read('data')).toBe('then')
    expect(capped.read(safety!.id, 'data')).toHaveLength(5000)
  })
})

describe('runs', () => {
  test('R4 what a shell removed, sed edited and a build wrote over comes back', async () => {
    for (const path of ['removed', 'edited', 'd/built']) ws.write(path, 'then\n')
    const before = fullImageOf(ws.dir)
    await run('rm removed; sed -i s/then/now/ edited; echo binary > d/built; mkdir -p dist; echo x > dist/x')
    await sp.undo()
    expect(differences(before, fullImageOf(ws.dir))).toEqual([])
  })

  test('R5 a hand edit after the run: in the safety snapshot, and a conflict for the undo of that run', async () => {
    ws.write('shared', 'then\n')
    ws.write('other', 'then\n')
    const { id } = (await run('echo agent > shared; echo agent > other')).run!
    ws.write('shared', 'by hand\n')
    const rolled = await sp.rollback(id)
    expect(rolled.leftAlone).toEqual([{ path: 'shared', why: 'edited' }])
    expect([ws.read('shared'), ws.read('other')]).toEqual(['by hand\n', 'then\n'])
    expect(sp.read(rolled.safety!.id, 'shared').toString()).toBe('by hand\n')
  })

  test('R6 rollback, undo and redo five times: equal root ids, and no safety snapshot is lost', async () => {
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    ws.write('a', 'pending')
    ws.write('b', 'pending')
    const { safety } = await sp.rollback(id)
    const roots: unknown[] = []
    for (let i = 0; i < 5; i++) {
      await sp.undo()
      roots.push(sp.operations().at(-1)!.detail.after_root)
      await sp.redo()
      roots.push(sp.operations().at(-1)!.detail.after_root)
    }
    expect(new Set(roots).size).toBe(2)
    expect(roots[0]).not.toBe(roots[1])
    expect(sp.read(safety!.id, 'b').toString()).toBe('pending')
    expect(sp.snapshots().map(snapshot => snapshot.id)).toContain(safety!.id)
  })

  test('R7 undoing a run that changed nothing performs zero writes', async () => {
    ws.write('d/a')
    await run('cat d/a > /dev/null')
    const before = untouched('')
    await sp.undo()
    expect(untouched('')).toEqual(before)
  })

  test('R8 two runs in one workspace: taking one back leaves the work of the other', async () => {
    ws.write('a', 'then\n')
    ws.write('b', 'then\n')
    const first = await run('echo one > a; mkdir x; echo one > x/one')
    await run('echo two > b; echo two > x/two')
    const rolled = await sp.rollback(first.run!.id)
    expect(rolled.leftAlone).toEqual([])
    expect([ws.read('a'), ws.read('b'), ws.read('x/one'), ws.read('x/two')]).toEqual([
      'then\n',
      'two\n',
      undefined,
      'two\n',
    ])
  })

  test('R14 rm -rf of everything in the workspace, .git included, from inside the run', async () => {
    ws.sh('git init -q; echo x > a; git add -A; git commit -qm one; mkdir -p s/t; echo y > s/t/u')
    const before = fullImageOf(ws.dir)
    await run('rm -rf .git; find . -mindepth 1 -delete')
    expect(fs.readdirSync(ws.dir)).toEqual([])
    await sp.undo()
    expect(differences(before, fullImageOf(ws.dir))).toEqual([])
    expect(ws.git('fsck', '--strict')).toBe('')
  })

  test('R14 the workspace directory itself is removed by the run, also when another one takes its place', async () => {
    ws.write('d/a')
    fs.chmodSync(ws.dir, 0o751)
    const before = fullImageOf(ws.dir)
    const gone = `rm -rf ${ws.dir}`
    for (const script of [gone, `${gone}; mkdir ${ws.dir}; echo other > ${ws.dir}/other`]) {
      await run(`cd /; ${script}`)
      await sp.undo()
      expect(differences(before, fullImageOf(ws.dir))).toEqual([])
    }
  })
})

test('a directory in the place of a file, and the other way round, is counted as what comes and what goes', async () => {
  ws.sh('mkdir -p lib/deep lib/empty; for i in 1 2 3 4; do echo > lib/deep/$i; done; echo > other; echo > plain')
  const { id } = await sp.snapshot()
  ws.sh('rm -r lib other; echo > lib; mkdir other; echo > other/a; echo > other/b; echo new > plain')
  const { files, emptyDirs, changes } = await sp.rollback(id)
  // lib: 4 files and an empty directory for one file; other: a file for two.
  expect({ files, emptyDirs }).toEqual({
    files: { created: 6, deleted: 3, replaced: 1, metadata: 0 },
    emptyDirs: 1,
  })
  expect(changes.map(({ action, path, files }) => [action, path, files]).sort()).toEqual([
    ['replace', 'lib', 5],
    ['replace', 'other', 2],
    ['replace', 'plain', 1],
  ])
})

test('R9 started in a subdirectory, nothing elsewhere is touched', async () => {
  for (const path of ['frontend/a', 'backend/a']) ws.write(path, 'then')
  const { id } = await sp.snapshot()
  for (const path of ['frontend/a', 'backend/a', 'top', 'frontend/new']) ws.write(path, 'now')
  const before = [untouched('backend'), untouched('top')]
  const inside = await ws.open({ cwd: join(ws.dir, 'frontend') })
  expect(inside.subdirectory).toBe('frontend')
  await inside.rollback(id)
  expect([untouched('backend'), untouched('top')]).toEqual(before)
  expect([ws.read('frontend/a'), ws.read('frontend/new')]).toEqual(['then', undefined])
  await inside.rollback(id, { all: true })
  expect([ws.read('backend/a'), ws.read('top')]).toEqual(['then', undefined])
})

describe('paths', () => {
  test('a path is restored although the directories above it are gone, and they come back with their modes', async () => {
    ws.write('a/b/c/f', 'then')
    ws.write('a/b/g', 'then')
    fs.chmodSync(ws.at('a/b'), 0o710)
    await sp.snapshot()
    ws.sh('rm -r a')
    await sp.revert('a/b/c/f')
    expect(ws.sh('find a | sort')).toBe('a\na/b\na/b/c\na/b/c/f\n')
    expect(fs.statSync(ws.at('a/b')).mode & 0o777).toBe(0o710)
    await sp.undo()
    expect(fs.readdirSync(ws.dir)).toEqual([])
  })

  test('rollback --to writes the exact tree elsewhere and nothing here', async () => {
    ws.sh('mkdir d; echo a > d/a; ln d/a d/b; ln -s a d/l; mkfifo p; chmod 500 d; chmod 751 .')
    const { id } = await sp.snapshot()
    const then = fullImageOf(ws.dir)
    ws.write('later', 'x')
    const before = untouched('')
    const to = join(ws.base, 'elsewhere')
    await sp.rollback(id, { to })
    expect(differences(then, fullImageOf(to))).toEqual([])
    expect(untouched('')).toEqual(before)
    await expect(sp.rollback(id, { to })).rejects.toMatchObject({ code: 'usage' })
  })

  test('a dry run says what would happen and writes nothing', async () => {
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    ws.write('a', 'now')
    ws.write('b')
    const before = untouched('')
    const plan = await sp.rollback(id, { dryRun: true })
    expect(plan.changes.map(({ action, path }) => `${action} ${path}`)).toEqual(['replace a', 'delete b'])
    expect(untouched('')).toEqual(before)
    expect(sp.operations()).toEqual([])
  })
})
