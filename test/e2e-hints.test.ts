/** Every command that an output names works when it is pasted where that output was shown. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { savepointInShell } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

interface Place {
  name: string
  /** Relative to the workspace's base. */
  cwd: string
  /** What the user writes before each verb. */
  before: string
  /** How the target's root is written from there. */
  root: string
}
const places: Place[] = [
  { name: 'at the root', cwd: 'work', before: 'savepoint', root: '.' },
  { name: 'in a subdirectory', cwd: 'work/sub dir/deep', before: 'savepoint', root: '../..' },
  { name: 'elsewhere, with -t', cwd: 'else where', before: 'savepoint -t ../work', root: '../work' },
  {
    name: 'elsewhere, with -t and --home',
    cwd: 'else where',
    before: "savepoint -t ../work --home '../other home'",
    root: '../work',
  },
]

describe.each(places)('$name', ({ cwd, before, root }) => {
  let space: Workspace
  let here: string

  beforeEach(() => {
    space = new Workspace()
    here = join(space.base, cwd)
    mkdirSync(join(space.base, 'else where'))
    mkdirSync(join(space.base, 'bin'))
    writeFileSync(join(space.base, 'bin/savepoint'), `#!/bin/sh\nexec ${savepointInShell} "$@"\n`)
    chmodSync(join(space.base, 'bin/savepoint'), 0o755)
    space.write('a.txt', 'one\n')
    space.write('sub dir/deep/b.txt', 'b\n')
    shell(`${before.includes('-t') ? before : `savepoint -t ${root}`} snapshot -m first`)
  })
  afterEach(() => space.remove())

  function shell(line: string): { status: number | null; text: string } {
    const env = { ...space.env, PATH: `${join(space.base, 'bin')}:${space.env.PATH}` }
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: here, env, encoding: 'utf8' })
    return { status, text: stdout + stderr }
  }
  const ours = (line: string) => shell(`${before} ${line}`)

  /** What the output names as a command: at the end of a line, or in backticks. */
  function hintsOf(line: string): string[] {
    const { text } = ours(line)
    const found = [...text.matchAll(/(?:: (savepoint [^`\n]+)$)|`(savepoint [^`]+)`/gm)]
    return found.map(([, plain, quoted]) => (plain ?? quoted)!)
  }

  /** The commands that `line` names, each of which then works. */
  function follow(line: string, ...wanted: RegExp[]): void {
    const hints = hintsOf(line)
    expect({ line, hints }).toEqual({ line, hints: wanted.map(pattern => expect.stringMatching(pattern)) })
    for (const hint of hints) {
      const { status, text } = shell(hint.replace('SNAPSHOT', 'first'))
      expect({ hint, status, text }).toMatchObject({ hint, status: 0 })
    }
  }
  /** Of a file in the target's root. */
  const at = (name: string) => `'${root}/${name}'`

  test('run, undo, redo, status', () => {
    const script = `cd "$1"; for i in 1 2 3 4 5 6 7 8 9 10 11; do echo $i > "$i"; done; echo two > a.txt`
    writeFileSync(join(space.base, 'script'), script)
    follow(
      `run -- sh '${join(space.base, 'script')}' '${space.dir}'`,
      /^savepoint.* diff run_\w+ --name-status$/,
      /undo/,
    )
    expect(space.read('a.txt')).toBe('one\n')
    follow('status', /redo/)
    expect(space.read('a.txt')).toBe('two\n')
    follow('status', /undo/)
    follow(root === '../..' ? 'redo --all' : 'redo', /undo/)
    expect(space.read('a.txt')).toBe('one\n')
  })

  test('rollback and revert', () => {
    space.write('a.txt', 'two\n')
    follow('rollback first --all', /undo/)
    expect(space.read('a.txt')).toBe('two\n')
    follow(`rollback first -- ${at('a.txt')}`, /undo/)
    rmSync(space.at('sub dir/deep/b.txt'))
    const both = hintsOf(`revert ${at('a.txt')} ${at('sub dir/deep/b.txt')}`)
    expect(both).toHaveLength(1)
    for (const _ of [1, 2]) expect(shell(both[0]!)).toMatchObject({ status: 0 })
    expect([space.read('a.txt'), space.read('sub dir/deep/b.txt')]).toEqual(['two\n', undefined])
    follow(`rollback ${at('a.txt')}`, /revert/)
    expect(space.read('a.txt')).toBe('one\n')
  })

  test('paths: history, show, revert, purge, diff of .git', () => {
    follow(`history ${at('sub dir/deep/b.txt')}`, /revert .* --from SNAPSHOT$/)
    space.write("it's new", 'new\n')
    ours('snapshot -m second')
    follow(`show first ${at("it'\\''s new")}`, /history/)
    space.sh('echo "left out" > .savepointignore; echo x > "left out"')
    ours('snapshot -m third')
    follow(`revert ${at('left out')} --from third`, /history/, /coverage/)
    follow(`purge ${at("it'\\''s new")}`, /purge .* --yes$/)
    space.sh('git init -q')
    follow('diff --name-only', /diff snap_\w+ -- /)
    ours('snapshot -m fourth')
    follow('show fourth', /diff snap_\w+ snap_\w+ -- /)
  })

  test('tag, delete, compact, prune, import', () => {
    follow('tag good', /undo/)
    for (const i of [1, 2, 3]) {
      space.write('a.txt', `${i}\n`)
      ours(`run -q -- sh -c 'echo ${i} > ${at('n')}'`)
    }
    const [newest, older] = ours('snapshots -q').text.split('\n')
    follow(`compact ${newest} ${older}`, /undo/)
    follow(`delete ${older}`, /undo/)
    follow('prune --keep 0', /undo/)
    ours("export first '../x.tar.gz'")
    follow("import '../x.tar.gz' -m back", /rollback snap_\w+ --dry-run/, /undo/)
  })
})
