/** What a run moved to where it is captured from where it was not: taking the run back does not remove the only copy. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint, savepointInShell } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('.gitignore', '*.db\nbuild/\n')
  space.sh('git init -q')
  space.write('app.db', 'production\n')
  space.write('src/s', 'source\n')
  space.write('build/model.bin', 'model\n')
})
afterEach(() => space.remove())

const run = (script: string) => expect(savepoint(space, ['run', '-q', '--', 'sh', '-ec', script]).status).toBe(0)
const left = (stdout: string) => [...stdout.matchAll(/^ {2}(\S+): the run moved it there/gm)].map(([, path]) => path)

it.each([
  ['an ignored file', 'mv app.db app.sqlite', ['app.sqlite'], 'mv -n app.sqlite app.db'],
  ['with more in it by now', 'mv app.db visible; echo agent >> visible', ['visible'], 'mv -n visible app.db'],
  ['over a file that was captured', 'mv app.db src/s', ['src/s'], 'mv -n src/s app.db'],
  ['a directory', 'mv build made', ['made/model.bin'], 'mv -n made build'],
])('%s stays, with the way back', (_what, script, paths, way) => {
  run(`echo new > other; ${script}`)
  const moved = space.read(paths[0]!)
  const { status, stdout } = savepoint(space, ['undo'])
  expect([status, left(stdout)]).toEqual([3, paths])
  expect(stdout).toContain(`To put it back: ${way}\n`)
  expect([space.read(paths[0]!), space.read('other')]).toEqual([moved, undefined])
  space.sh(way)
  expect(space.read(way.endsWith(' build') ? 'build/model.bin' : 'app.db')).toBe(moved)
})

it('what a renamed directory took along stays behind, with the way back', () => {
  const ignored = ['src/app.db', 'src/build/o', "src/sub/it's.db", 'src/-x.db']
  for (const path of ignored) space.write(path, path)
  space.write('src/sub/t', 't\n')
  run('mv src "new one"')
  expect(savepoint(space, ['undo', '--dry-run']).stdout).not.toContain('To put')
  const { status, stdout } = savepoint(space, ['undo'])
  expect([status, space.read('src/s'), space.read('src/sub/t')]).toEqual([0, 'source\n', 't\n'])
  const way = /^To put them back: (.*)$/m.exec(stdout)?.[1]
  const [inSrc, inSub] = ["'new one/-x.db' 'new one/app.db' 'new one/build' src/", `'new one/sub/it'\\''s.db' src/sub/`]
  expect(way).toBe(`mv -n ${inSrc}; mv -n ${inSub}`)
  space.sh(way!)
  for (const path of ignored) expect(space.read(path)).toBe(path)
})

it('of two directories that were swapped both get theirs back', () => {
  for (const at of ['src', 'other']) space.write(`${at}/app.db`, at)
  space.write('other/s', 'other\n')
  run('mv src third; mv other src; mv third other')
  space.sh(/^To put them back: (.*)$/m.exec(savepoint(space, ['undo']).stdout)![1]!)
  expect(['src', 'other'].map(at => [space.read(`${at}/app.db`), space.read(`${at}/app.db.aside`)])).toEqual([
    ['src', undefined],
    ['other', undefined],
  ])
})

it('the way back of very many is not endless, and replaces nothing', () => {
  for (let i = 0; i < 30; i++) space.write(`src/${i + 10}.db`, `${i}`)
  run('mv src made; mkdir src; echo mine > src/10.db')
  const { stdout } = savepoint(space, ['undo'])
  const way = /^To put them back: (mv -n (?:made\/\d+\.db ){20}src\/) … and 10 more \(see --json\)$/m.exec(stdout)?.[1]
  spawnSync('sh', ['-c', way!], { cwd: space.dir })
  expect([space.read('src/10.db'), space.read('made/10.db'), space.read('src/11.db')]).toEqual(['mine\n', '0', '1'])
})

it('so does what was in an ignored directory, when the run takes itself back', () => {
  run(`mv build/model.bin .; ${savepointInShell} rollback "$SAVEPOINT_RUN" > ../said || [ $? = 3 ]`)
  expect(left(readFileSync(join(space.base, 'said'), 'utf8'))).toEqual(['model.bin'])
  expect(space.read('model.bin')).toBe('model\n')
})

it('and what came from outside', () => {
  const outside = join(space.base, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'f'), 'theirs\n')
  writeFileSync(join(space.base, 'one'), 'one\n')
  run('mv ../outside in; mv ../one one; echo agent > in/g')
  const { status, stdout } = savepoint(space, ['undo'])
  expect([status, left(stdout)]).toEqual([3, ['in/f', 'one']])
  expect([space.read('in/f'), space.read('in/g'), space.read('one')]).toEqual(['theirs\n', undefined, 'one\n'])
})

it('what the run itself made there is its own work', () => {
  run('echo a > build/t; mv build/t a; echo b > ../t; mv ../t b; mkdir ../d; echo c > ../d/c; mv ../d d; mv src/s s')
  expect(savepoint(space, ['undo'])).toMatchObject({ status: 0, stdout: expect.not.stringContaining('Left alone') })
  expect(['a', 'b', 'd/c', 's', 'src/s'].map(path => space.read(path))).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    'source\n',
  ])
})

const emptied = (title: string, script: string) => [title, script] as const

it.each([
  emptied('an ignored file', 'echo new > app.db; mv app.db src/s'),
  emptied(
    'one in an ignored directory, by two renames',
    'echo n > build/model.bin; mv build/model.bin build/o; mv build/o src/s',
  ),
  emptied('one outside', 'sed s/source/new/ src/s > ../y; mv ../y src/s'),
  emptied(
    'one that was truncated, and filled bit by bit',
    'truncate -s 0 app.db; echo n >> app.db; echo m >> app.db; mv app.db src/s',
  ),
  emptied('one by another name of it', 'ln app.db ../name; echo new > ../name; mv app.db src/s'),
])('what the run wrote into a file that it had emptied is its own work: %s', (_title, script) => {
  writeFileSync(join(space.base, 'y'), 'stale\n')
  run(script)
  expect(space.read('src/s')).not.toBe('source\n')
  const { status, stdout } = savepoint(space, ['undo'])
  expect([status, space.read('src/s')]).toEqual([0, 'source\n'])
  expect(stdout).not.toMatch(/Left alone|now src\/s/)
})

it('and what was in that is told as gone', () => {
  const command = 'echo new > app.db; mv app.db src/s; exit 1'
  const { stderr } = savepoint(space, ['run', '--on-failure', 'rollback', '--', 'sh', '-c', command])
  expect(stderr).toContain('NOT protected and gone: app.db (ignored; it cannot be brought back)')
  expect([space.read('src/s'), space.read('app.db')]).toEqual(['source\n', undefined])
})

// A program that runs cannot be written to, whoever tries.
const tool = 'build/tool 9 & sleep 0.2; { true > build/tool; } 2> /dev/null && exit 1; kill $!; wait $! || :;'

it.each([
  ['appended to', 'echo more >> app.db; mv app.db src/s'],
  ['edited in place', 'printf P | dd of=app.db conv=notrunc 2> /dev/null; mv app.db src/s'],
  ['that could not be emptied', `${tool} mv build/tool src/s`],
  ['that could not be emptied, and was appended to', `${tool} echo more >> build/tool; mv build/tool src/s`],
  [
    'that is not to be made when it exists',
    '(set -C; true > app.db) 2> /dev/null && exit 1; echo more >> app.db; mv app.db src/s',
  ],
])('a file %s has still what was in it', (_title, script) => {
  space.sh('cp "$(command -v sleep)" build/tool')
  run(script)
  const moved = space.read('src/s')
  const { status, stdout } = savepoint(space, ['undo'])
  expect([status, left(stdout), space.read('src/s')]).toEqual([3, ['src/s'], moved])
})
