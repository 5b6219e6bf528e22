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
  run(`sleep 1.1; echo 2 >> ${file}; git commit -qam agent`)
  const { stderr } = savepoint(space, ['undo'], { cwd })
  expect(stderr).toMatch(said)
  space.sh(`cd '${cwd}'; ${/: (git reset [0-9a-f]+)\n/.exec(stderr)![1]}`)
  expect([git('rev-parse', 'HEAD'), git('status', '--porcelain')]).toEqual([before, ''])
})

it('who has committed since decides himself what stays', () => {
  const cwd = join(space.base, 'tree')
  savepoint(space, ['-q', 'run', '--', 'sh', '-ec', 'sleep 1.1; echo 2 >> b; git commit -qam agent'], { cwd })
  space.sh(`cd '${cwd}'; GIT_COMMITTER_DATE="$(( $(date +%s) + 5 )) +0000" git commit -q --allow-empty -m mine`)
  const { stderr } = savepoint(space, ['undo'], { cwd })
  expect(stderr).toMatch(said)
  expect(stderr).not.toContain('git reset')
})

it('a commit in the second in which the run began or ended may be of whoever said it', () => {
  const cwd = join(space.base, 'tree')
  const commit = (name: string) => `echo ${name} >> b; git commit -qam ${name}`
  const inTree = (script: string) => space.sh(`cd '${cwd}'; ${script}`)
  const run = (script: string) => {
    savepoint(space, ['-q', 'run', '--', 'sh', '-ec', script], { cwd })
    const [newest] = JSON.parse(savepoint(space, ['runs', '--json'], { cwd }).stdout)
    return { began: Date.parse(newest.started_at), ended: Date.parse(newest.ended_at) }
  }
  /** As if it had been made then. */
  const setTime = (name: string, ms: number) =>
    inTree(
      `log=$(git rev-parse --git-path logs/HEAD); cp -p "$log" old; sed -i -E '/: ${name}$/s/> [0-9]+/> ${Math.floor(ms / 1000)}/' "$log"; touch -r old "$log"; rm old`,
    )
  const undo = () => savepoint(space, ['undo'], { cwd }).stderr
  const stays = expect.stringMatching(/went on stays there; `git reflog` shows it\n/)

  inTree(commit('mine'))
  setTime('mine', run(`sleep 1.1; ${commit('first')}`).began)
  expect(undo()).toEqual(stays)
  const { ended } = run(`sleep 1.1; ${commit('second')}`)
  inTree(commit('later'))
  setTime('later', ended)
  expect(undo()).toEqual(stays)
})
