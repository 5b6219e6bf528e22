/** A run is taken back after somebody has worked on in the same repository: it stays whole, whatever goes back. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1\n')
  for (const name of ['b', 'c']) space.write(name, `${name}1\n`)
  space.sh('git init -q -b main; git add -A; git commit -qm one')
})
afterEach(() => space.remove())

const run = (script: string) => savepoint(space, ['-q', 'run', '--', 'sh', '-ec', script])
const commits = (ref = 'HEAD') => space.git('log', '--topo-order', '--format=%s', ref).trimEnd().split('\n')
const isWhole = () => expect(space.git('fsck', '--strict', '--no-dangling')).toBe('')
const commit = (name: string) => `echo ${name} >> ${name}; git add ${name}; git commit -qm ${name}`

it.each([
  ['commits on top', commit('a'), commit('b'), ['b', 'a', 'one']],
  ['commits what the run has staged', 'echo x >> a; git add a', 'git commit -qm mine', ['mine', 'one']],
  [
    'merges the branch of the run',
    `git checkout -qb own; ${commit('a')}; git checkout -q main`,
    'git merge -q --no-ff -m merged own',
    ['merged', 'a', 'one'],
  ],
  ['stages more', commit('a'), 'echo x >> b; git add b', ['a', 'one']],
  ['stashes what the run has staged', 'echo x >> a; git add a', 'git stash -q', ['one']],
  ['goes to a branch that the run has made', 'git branch own', 'git checkout -q own', ['one']],
  ['packs', commit('a'), 'git gc -q', ['a', 'one']],
])('somebody %s: it stays as a whole, and that is said', (_what, own, since, left) => {
  run(own)
  space.sh(since)
  const branch = space.git('symbolic-ref', 'HEAD')
  for (const dry of [['--dry-run'], []]) {
    const { restore } = savepointJson(space, ['undo', ...dry])
    expect(restore.left_alone).toContainEqual({ path: '.git', why: 'edited' })
    expect(restore.changes.filter(({ path }: { path: string }) => path.startsWith('.git'))).toEqual([])
  }
  expect([commits(), space.git('symbolic-ref', 'HEAD')]).toEqual([left, branch])
  isWhole()
  space.sh('git commit -qam next --allow-empty; if git rev-parse -q --verify stash; then git stash pop -q; fi')
  isWhole()
})

it.each([
  ['keeps it by a branch', 'git branch keep', 'keep'],
  ['keeps it by a tag', 'git tag keep', 'keep'],
  ['works on in a worktree', `git worktree add -q -b keep ../wt; cd ../wt; ${commit('b')}`, 'keep'],
  ['pushes it', 'git init -q --bare ../far; git remote add far ../far; git push -q far main', 'far/main'],
])('somebody %s: the branch goes back, and what he has stays', (_what, since, ref) => {
  run(commit('a'))
  space.sh(since)
  const kept = commits(ref)
  const { restore } = savepointJson(space, ['undo'])
  expect([restore.left_alone, commits(), commits(ref)]).toEqual([[], ['one'], kept])
  expect(space.git('status', '--porcelain')).toBe('')
  isWhole()
  expect(savepointJson(space, ['redo']).restore.left_alone).toEqual([])
  expect([commits(), commits(ref)]).toEqual([['a', 'one'], kept])
  isWhole()
})

it('one that the run has made, and somebody has worked in, stays', () => {
  space.sh('rm -rf .git')
  run(`git init -q -b main; ${commit('a')}`)
  space.sh(commit('b'))
  savepoint(space, ['undo'])
  expect([commits(), space.read('a')]).toEqual([['b', 'a'], 'a1\n'])
  isWhole()
})

it('one of two runs that have committed one after the other', () => {
  run(commit('a'))
  run(commit('b'))
  const first = savepoint(space, ['runs', '-q']).stdout.trimEnd().split('\n').at(-1)!
  expect(savepoint(space, ['rollback', '--run', first]).status).toBe(3)
  expect([commits(), space.read('a'), space.read('b')]).toEqual([['b', 'a', 'one'], 'a1\n', 'b1\nb\n'])
  isWhole()
})

it('one at which the run, and somebody since, have only looked is no conflict; nor one in which he alone has worked', () => {
  run('echo x >> a; touch c; git status > ../status')
  space.sh('touch c; git status > ../status')
  expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
  run('echo x >> a; touch c; git status > ../status')
  space.sh(commit('b'))
  expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
  expect([commits(), space.read('a')]).toEqual([['b', 'one'], 'a1\n'])
  isWhole()
})

it('settings and hooks of the run go back whatever somebody has committed since', () => {
  run('git config core.x 1; echo exit 1 > .git/hooks/pre-push')
  space.sh(commit('b'))
  expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
  expect([space.sh('git config core.x || echo none'), space.read('.git/hooks/pre-push')]).toEqual(['none\n', undefined])
  expect(commits()).toEqual(['b', 'one'])
  isWhole()
})

it('one that is not called .git, with a worktree for each branch', () => {
  space.sh('git clone -q --bare . .bare; rm -rf .git a b c; echo "gitdir: ./.bare" > .git; git worktree add -q main')
  run(`cd main; ${commit('a')}`)
  const git = (script: string) => space.sh(`cd main; git ${script}`)
  git('status > ../../status')
  expect(savepointJson(space, ['undo']).restore.left_alone).toEqual([])
  expect([git('log --format=%s'), git('status --porcelain')]).toEqual(['one\n', ''])
  savepoint(space, ['redo'])
  space.sh(`cd main; ${commit('b')}`)
  expect(savepoint(space, ['undo']).status).toBe(3)
  expect([git('log --format=%s'), git('fsck --strict --no-dangling')]).toEqual(['b\na\none\n', ''])
})

it.each(['wt', '../wt'])('a worktree that the run has made, and somebody has worked in, stays: %s', place => {
  run(`git worktree add -q -b side ${place}; cd ${place}; ${commit('a')}`)
  const there = (script: string) => space.sh(`cd ${place}; ${script}`)
  there(`${commit('b')}; echo staged >> c; git add c`)
  const { restore } = savepointJson(space, ['undo'])
  expect(restore.left_alone).toContainEqual({ path: '.git/worktrees/wt', why: 'edited' })
  expect(there('git log --format=%s; git diff --cached --name-only')).toBe('b\na\none\nc\n')
  expect([there('git rev-parse --show-toplevel').endsWith('/wt\n'), commits()]).toEqual([true, ['one']])
  space.sh('git worktree prune')
  expect(there('git diff --cached --name-only')).toBe('c\n')
  isWhole()
})

it('in a worktree only the last commit of the run was amended: what is staged there is not taken back', () => {
  space.sh('git worktree add -q -b side wt')
  run(`cd wt; ${commit('a')}`)
  space.sh('cd wt; git commit -q --amend -m mine')
  savepoint(space, ['undo'])
  expect(space.sh('cd wt; git log --format=%s; git diff --cached --name-only')).toBe('mine\none\n')
  isWhole()
})

it('where history begins stays with what somebody has made of it', () => {
  space.sh(`${commit('a')}; git clone -q . ../far; cd ../far; ${commit('b')}; ${commit('c')}`)
  run('git fetch -q --depth=1 file://$PWD/../far main:refs/remotes/far/main')
  space.sh('git branch keep far/main')
  savepoint(space, ['undo'])
  expect(commits('keep')).toEqual(['c'])
  isWhole()
})

it('large files that git keeps elsewhere stay for who has made use of them', () => {
  run(`mkdir -p .git/lfs/objects/ab; echo large > .git/lfs/objects/ab/abc; ${commit('a')}`)
  space.sh('git branch keep')
  savepoint(space, ['undo'])
  expect([commits(), space.read('.git/lfs/objects/ab/abc')]).toEqual([['one'], 'large\n'])
})

it('the target itself is a bare repository with worktrees in it', () => {
  space.sh(
    'git clone -q --bare . ../bare; cd ../bare; git worktree add -q -b feat feat; git worktree add -q -b mine mine',
  )
  const cwd = join(space.base, 'bare')
  const there = (script: string) => space.sh(`cd ../bare; ${script}`)
  savepoint(space, ['-q', 'run', '--', 'sh', '-ec', `cd feat; ${commit('a')}; git branch own`], { cwd })
  there(`cd mine; git merge -q own; ${commit('b')}`)
  savepoint(space, ['undo'], { cwd })
  expect(there('cd mine; git log --format=%s')).toBe('b\na\none\n')
  expect(there('git fsck --strict --no-dangling; git log --all --format=%h > ../status')).toBe('')
  there(`cd mine; ${commit('c')}`)
})

it.each([
  ['has made a worktree for it', 'git worktree add -q ../review own', 'git branch own; git checkout -q own'],
  ['has gone to it in a worktree of his', 'cd ../his; git checkout -q own', 'git branch own; git checkout -q own'],
])('a branch of the run that somebody %s stays', (_what, since, make) => {
  space.sh('git worktree add -q --detach ../his')
  run(`${make}; ${commit('a')}; git checkout -q main`)
  space.sh(since)
  const { restore } = savepointJson(space, ['undo'])
  expect(restore.left_alone).toContainEqual({ path: '.git/refs/heads/own', why: 'edited' })
  expect([commits('own'), commits()]).toEqual([['a', 'one'], ['one']])
  isWhole()
})

it('a worktree of the run whose repository stays as a whole keeps its way there', () => {
  run(`git worktree add -q -b own wt; cd wt; ${commit('a')}`)
  space.sh(`cd wt; ${commit('b')}; cd ..; git merge -q own`)
  savepoint(space, ['undo'])
  expect(space.sh('cd wt; git rev-parse --show-toplevel').endsWith('/wt\n')).toBe(true)
  isWhole()
})

it('objects that somebody has pruned since come back with what needs them', () => {
  space.sh('echo staged >> c; git add c; git stash -q')
  run('git stash drop -q')
  space.sh('git prune --expire=now; git branch other')
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect(space.sh('git stash show --name-only')).toBe('c\n')
  isWhole()
})
