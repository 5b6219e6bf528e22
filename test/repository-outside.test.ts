/** A target whose repository is elsewhere: its commits stay when a run is taken back, and that is said. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  mkdirSync(space.at('sub'))
  space.sh(
    'echo 1 > sub/a; echo 1 > b; git init -q -b main; git add -A; git commit -qm one; git worktree add -q ../tree',
  )
})
afterEach(() => space.remove())

const said =
  /the repository of this directory is \S+\/\.git, outside of it: what was committed while run_\w+ went on stays there/

it.each([
  ['a linked worktree', () => join(space.base, 'tree'), 'b'],
  ['a directory of a work tree', () => space.at('sub'), 'a'],
])('%s', (_what, place, file) => {
  const cwd = place()
  const git = (...words: string[]) => space.sh(`cd '${cwd}'; git ${words.join(' ')}`).trim()
  const run = (script: string) => savepoint(space, ['-q', 'run', '--', 'sh', '-ec', script], { cwd })
  run(`echo 2 >> ${file}`)
  expect(savepoint(space, ['undo'], { cwd }).stderr).not.toMatch(said)
  const before = git('rev-parse', 'HEAD')
  run(`echo 2 >> ${file}; git commit -qam agent`)
  const { stderr } = savepoint(space, ['undo'], { cwd })
  expect(stderr).toMatch(said)
  space.sh(`cd '${cwd}'; ${/: (git reset [0-9a-f]+)\n/.exec(stderr)![1]}`)
  expect([git('rev-parse', 'HEAD'), git('status', '--porcelain')]).toEqual([before, ''])
})

it('who has committed since decides himself what stays', () => {
  const cwd = join(space.base, 'tree')
  savepoint(space, ['-q', 'run', '--', 'sh', '-ec', 'echo 2 >> b; git commit -qam agent'], { cwd })
  space.sh(`cd '${cwd}'; GIT_COMMITTER_DATE="$(( $(date +%s) + 5 )) +0000" git commit -q --allow-empty -m mine`)
  const { stderr } = savepoint(space, ['undo'], { cwd })
  expect(stderr).toMatch(said)
  expect(stderr).not.toContain('git reset')
})
