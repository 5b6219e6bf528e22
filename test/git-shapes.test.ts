/** G2: repositories of every shape come back whole, and none of them needs an identity, a key or a filter program. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

/** Snapshot, destroy, roll back: everything is as it was. */
async function survives(destroy: string): Promise<void> {
  savepoint = await space.open()
  const before = imageOf(space.dir)
  const { id, skipped } = await savepoint.snapshot()
  expect(skipped).toEqual([])
  space.sh(destroy)
  expect(differences(before, imageOf(space.dir))).not.toEqual([])
  const { leftAlone } = await savepoint.rollback(id)
  expect(leftAlone).toEqual([])
  expect(differences(before, imageOf(space.dir))).toEqual([])
}

const isClean = (dir = space.dir) =>
  expect(
    execFileSync('git', ['fsck', '--full', '--strict'], { cwd: dir, env: space.env, stdio: 'pipe' }).toString(),
  ).toBe('')

const commit = 'git init -q -b main . ; echo 1 > file; git add file; git commit -qm one'

it('submodules, with the repository of each inside .git/modules', async () => {
  space.sh(`mkdir ../library; cd ../library; ${commit}`)
  space.sh(
    `${commit}; git -c protocol.file.allow=always submodule add -q "file://$PWD/../library" sub 2>/dev/null; git commit -qm sub`,
  )
  expect(existsSync(space.at('.git/modules/sub/HEAD'))).toBe(true)
  await survives('rm -rf .git/modules sub; git rm -q --cached sub; git commit -qm gone')
  expect(space.sh('git submodule status')).toMatch(/^ [0-9a-f]{40} sub/)
  isClean()
  isClean(space.at('sub'))
})

it('a repository inside the repository, with ignore rules of its own', async () => {
  space.sh(
    `${commit}; mkdir -p deep/inner; cd deep/inner; ${commit}; printf 'kept-out\n' > .gitignore; echo x > kept-out`,
  )
  space.write('kept-out', 'the outer repository does not ignore this')
  await survives('rm -rf deep/inner/.git deep/inner/file kept-out .git')
  expect((await savepoint.coverage('deep/inner/kept-out')).rule).toBe('deep/inner/.gitignore:1 kept-out')
  isClean(space.at('deep/inner'))
})

it('a repository that lies inside the objects of another', async () => {
  space.sh(`${commit}; mkdir .git/objects/lost; cd .git/objects/lost; ${commit}; git repack -adq`)
  await survives('rm -rf .git')
  isClean(space.at('.git/objects/lost'))
})

it('a linked worktree, whose .git is a file and whose index lies elsewhere', async () => {
  space.sh(`mkdir ../origin; cd ../origin; ${commit}; git worktree add -q -b side ../work/tree`)
  space.sh(
    "printf 'out\nin\n' > tree/.gitignore; echo x > tree/in; echo x > tree/out; git -C tree add -f in .gitignore",
  )
  await survives('rm tree/.git tree/file tree/in; mkdir tree/.git')
  expect((await savepoint.coverage('tree/in')).covered).toBe(true)
  expect((await savepoint.coverage('tree/out')).covered).toBe(false)
  expect(space.sh('git -C tree status --porcelain')).toBe('A  .gitignore\nA  in\n')
})

it('a worktree as the target itself', async () => {
  space.sh(`mkdir ../origin; cd ../origin; ${commit}; git worktree add -q -f -b side ../work`)
  space.sh('echo out > .gitignore; echo x > out')
  const outside = imageOf(join(space.base, 'origin'), { untouched: true })
  await survives('rm .git file; echo junk > junk')
  expect(space.read('out')).toBe('x\n')
  expect((await savepoint.coverage('out')).covered).toBe(false)
  expect(differences(outside, imageOf(join(space.base, 'origin'), { untouched: true }))).toEqual([])
})

it('a repository without a commit, with things staged', async () => {
  space.sh('git init -q -b main .; echo staged > a; git add a; echo unstaged > a')
  await survives('rm -rf .git a')
  expect(space.git('diff', '--cached', '--name-only')).toBe('a\n')
  expect(space.git('status', '--porcelain')).toBe('AM a\n')
})

it('no identity at all, and signing demanded', async () => {
  space.sh(`${commit}; git config commit.gpgsign true; git config tag.gpgsign true; git config gpg.program /bin/false
    git config user.useConfigOnly true; git config --unset-all user.email || true`)
  await survives('rm -rf .git file')
  isClean()
})

it('filters as LFS sets them up: the working file is what counts, and no filter program runs', async () => {
  const marker = join(space.base, 'ran')
  const filter = join(space.base, 'lfs')
  writeFileSync(filter, `#!/bin/sh\necho "$@" >> '${marker}'\ncat\n`)
  chmodSync(filter, 0o755)
  space.sh(`${commit}; echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes
    git config filter.lfs.clean '${filter} clean'; git config filter.lfs.smudge '${filter} smudge'
    git config filter.lfs.required true; echo '*.log' > .gitignore; echo l > a.log; git add -f a.log
    mkdir -p .git/lfs/objects/ab; echo object > .git/lfs/objects/ab/abcd`)
  space.write('big.bin', Buffer.alloc(300_000, 7))
  space.sh(`git add big.bin; test -e '${marker}'; rm '${marker}'`)
  space.write('big.bin', Buffer.alloc(300_000, 8))
  await survives('rm -rf .git/lfs big.bin .git/index')
  await savepoint.status()
  expect(existsSync(marker)).toBe(false)
})

it('a sparse checkout: files that git left out stay left out', async () => {
  space.sh(
    `${commit}; mkdir in out; echo i > in/i; echo o > out/o; git add .; git commit -qm two; git sparse-checkout set in`,
  )
  expect(existsSync(space.at('out/o'))).toBe(false)
  await survives('git sparse-checkout disable; rm in/i')
  expect(existsSync(space.at('out/o'))).toBe(false)
  expect(space.git('status', '--porcelain')).toBe('')
})

it('a bare repository as the workspace', async () => {
  space.sh(
    `mkdir ../origin; cd ../origin; ${commit}; git push -q --mirror ../work 2>/dev/null || (git init -q --bare ../work && git push -q --mirror ../work)`,
  )
  await survives('git update-ref -d refs/heads/main; git gc -q --prune=now; rm -rf objects hooks')
  isClean()
  expect(space.git('rev-parse', '--is-bare-repository', 'main')).toMatch(/^true\n[0-9a-f]{40}\n$/)
})

it('a target below the root of a repository follows its rules', async () => {
  space.sh(`${commit}; printf '/pkg/out\n*.tmp\n' > .gitignore; mkdir -p pkg/out; echo x > pkg/out/x; echo t > pkg/a.tmp; echo s > pkg/src
    git add -f pkg/a.tmp`)
  savepoint = await space.open({ cwd: space.at('pkg') })
  const { id } = await savepoint.snapshot()
  space.sh('rm pkg/a.tmp pkg/src; echo mine > pkg/out/x')
  await savepoint.rollback(id)
  expect([space.read('pkg/a.tmp'), space.read('pkg/src'), space.read('pkg/out/x')]).toEqual(['t\n', 's\n', 'mine\n'])
})

it('something called .git that is no repository: an empty directory, a broken file, a dangling link', async () => {
  space.sh(
    `mkdir -p a/.git b c; echo 'gitdir: /nowhere' > b/.git; ln -s nowhere c/.git; echo f > a/f; echo f > b/f; echo f > c/f`,
  )
  await survives('rm -rf a b c')
  expect(space.notices).toEqual([])
})
