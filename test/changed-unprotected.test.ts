/** What no snapshot has and a run overwrote, truncated, chmodded or moved: it cannot be taken back, so it must be said. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { cliCommand, runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
  space.write('.gitignore', '*.log\nnode_modules/\n')
  space.write('savepoint.yaml', 'snapshots:\n  max_file_bytes: 100 KiB\n')
  for (const name of ['a', 'data', 'mode', 'other']) space.write(`${name}.log`, 'precious')
  space.write('large', Buffer.alloc(200 * 1024))
  space.write('node_modules/x/i.js', 'module')
  space.sh('git init -q .')
})
afterEach(() => space.remove())

const inRun = (script: string, ...options: string[]) => runCli(space, ['run', ...options, '--', 'sh', '-c', script])
const spoil = 'echo x > a.log; truncate -s 0 data.log; chmod 600 mode.log; echo y >> large; rm node_modules/x/i.js'

it('run, undo and rollback of the run name it', () => {
  const named =
    'NOT protected and changed: a.log, data.log, large, mode.log, node_modules (ignored, too large; undo cannot take that back)\n'
  const run = inRun(spoil)
  expect(run.stderr).toContain('nothing that is protected changed')
  expect(run.stderr).toContain(named)
  const id = /run (run_\w+)/.exec(run.stderr)![1]!
  expect(runCli(space, ['rollback', id, '--dry-run']).stdout).toContain(named)
  expect(runCli(space, ['undo']).stdout).toContain(named)
})

it('what may have been built from files that went back is to be built anew', () => {
  space.write('main.c', '1')
  inRun('echo 2 > main.c; echo built > a.log')
  const hint = 'Files that went back have their old times: build what is made of them anew\n'
  expect(runCli(space, ['undo']).stdout).toContain(hint)
  inRun('echo built > a.log; echo new > new')
  expect(runCli(space, ['undo']).stdout).not.toContain(hint)
})

it('in JSON, with the reason of each', () => {
  const result = JSON.parse(inRun(spoil, '--json').stderr.trim().split('\n').at(-1)!)
  expect(result.unprotected.count).toBe(5)
  expect(result.unprotected.paths).toContainEqual({ path: 'large', reason: 'too-large', to: null, kept: null })
  expect(JSON.parse(runCli(space, ['undo', '--json']).stdout).restore.unprotected).toEqual(result.unprotected)
})

it('not what is new, what a call failed to change, or what was only read', async () => {
  const savepoint = await space.open()
  const script =
    'cat a.log; echo n > new.log; echo n > node_modules/n; rm node_modules/n; chmod 600 gone.log; mkdir a.log'
  const { unprotected, gone } = await savepoint.run({ command: ['sh', '-c', `(${script}) > /dev/null 2>&1; true`] })
  expect([unprotected.count, gone.count]).toEqual([0, 0])
})

it('what was moved is not gone: where it is now is said', () => {
  space.write('src/x.log')
  const { stderr } = inRun('mv a.log b.log; mv b.log c.log; mv src lib')
  expect(stderr).not.toContain('gone')
  expect(stderr).toContain(
    'NOT protected and moved: a.log (now c.log), src/x.log (now lib/x.log) (ignored; undo does not move that back)\n',
  )
})

const exchange = (a: string, b: string) =>
  `python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b"${a}", -100, b"${b}", 2)'`
const swaps: [string, string][] = [
  ['by a copy with other content', 'cp -r src new; echo junk > new/x.log; mv src old; mv new src; rm -r old'],
  [
    'by an empty one that is filled',
    'mv src old; mkdir -p src/deep; echo junk > src/x.log; echo y > src/deep/large; rm -r old',
  ],
  ['by a copy of itself', 'mv src bak; cp -r bak src; echo junk > src/x.log; rm -r bak'],
  ['by an older one', 'mv src old; mv other src; rm -r old'],
  ['by one from outside', 'cp -r src ../new; mv src ../old; mv ../new src; rm -r ../old'],
  ['by exchange', `cp -r src new; ${exchange('src', 'new')}; rm -r new`],
  ['below', 'cp -r src/deep new; mv src/deep old; mv new src/deep; rm -r old; echo junk > src/x.log'],
  [
    'by itself, with other content meanwhile',
    'mv src t; echo junk >> t/x.log; rm t/deep/large; mv t src; cp large src/deep',
  ],
  ['after its place had others', 'mv src t; mv t u; mkdir t; rm -r u; mv other src; rmdir t'],
]

for (const [how, script] of swaps)
  it(`what lies in a directory that is replaced ${how}`, () => {
    for (const name of ['src', 'other']) {
      space.write(`${name}/code`)
      space.write(`${name}/x.log`, 'precious')
      space.write(`${name}/deep/large`, Buffer.alloc(200 * 1024))
    }
    const { stderr } = inRun(script)
    const named =
      'NOT protected and changed: src/deep/large, src/x.log (too large, ignored; undo cannot take that back)\n'
    expect(stderr).toContain(named)
    expect(runCli(space, ['undo']).stdout).toContain(named)
  })

it('not what is where it was, the same file, after directories were moved away and back', () => {
  space.write('src/x.log')
  space.write('src/code')
  space.write('lib/code')
  const { stderr } = inRun(`mv src t; mv t u; mkdir src; rmdir src; mv u src; mv src ../out; mv ../out src; mv a.log b;
    mv b a.log; mv node_modules n; mv n node_modules; ${exchange('src', 'lib')}; ${exchange('lib', 'src')}`)
  expect(stderr).toContain('nothing changed')
  expect(stderr).not.toContain('NOT protected')
})

it('what was moved, with something else in its place: where it is now is said, unless that is another by now', () => {
  space.write('src/x.log', 'precious')
  space.write('lib/y.log', 'precious')
  const { stderr } = inRun(`mv a.log a.log.1; echo new > a.log; mv src bak; cp -r bak src;
    mv lib old; cp -r old lib; rm -r old; cp -r lib old`)
  expect(stderr).toContain('NOT protected and changed: lib/y.log (ignored; undo cannot take that back)\n')
  expect(stderr).toContain('NOT protected and moved: a.log (now a.log.1), src/x.log (now bak/x.log) (ignored; undo')
})

it('a run that moved the directory away and made a new one: what is in the old one is not gone, and `undo` is found', () => {
  const words = cliCommand.map(word => `'${word}'`).join(' ')
  const move = `mv ../work ../moved; mkdir ../work; echo z > ../work/z`
  const out = space.sh(
    `{ ${words} run -- sh -c '${move}'; ${words} undo || echo "code $?"; cd "$PWD"; ${words} undo; cat a; } 2>&1`,
  )
  expect(out).not.toContain('gone')
  expect(out).toContain(`a.log (now ${join(space.base, 'moved/a.log')})`)
  expect(out).toContain(
    `this shell stands in the directory that is now ${join(space.base, 'moved')}; enter the new one with: cd "$PWD"`,
  )
  expect(out).toContain('code 10')
  expect(out).toMatch(/Undone: run_[\s\S]*a1$/)
  expect([space.read('a'), existsSync(space.at('z'))]).toEqual(['a1', false])
})

it.each([
  ['and the old one is gone', 'cd ..; mv work old; mv new work; rm -rf old', 'changed'],
  ['and the old one is there', 'cd ..; mv work old; mv new work', 'moved'],
])('what was not captured in a target that the run replaces, %s', (_, script, what) => {
  space.sh('cp -a . ../new; echo other > ../new/a.log')
  runCli(space, ['snapshot'])
  const isNamed = expect.stringMatching(new RegExp(`NOT protected and ${what}: a.log`))
  expect(inRun(script).stderr).toEqual(isNamed)
  expect(runCli(space, ['undo']).stdout).toEqual(isNamed)
})
