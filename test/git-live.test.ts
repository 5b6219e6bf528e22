/** G4: a repository that git keeps changing. Every snapshot of it restores to one that git finds sound. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Workspace } from './support/workspace.ts'

/** Beside which the repository is a small part, so that captures visit only what changed. */
const MANY_DIRS = 2500

let space: Workspace
let busy: ChildProcess | undefined
beforeEach(() => {
  space = new Workspace()
  busy = undefined
})
afterEach(async () => {
  if (busy && busy.exitCode === null && busy.signalCode === null) {
    // The whole group: git and what it started must be gone before the directory is.
    const exit = once(busy, 'exit')
    process.kill(-busy.pid!, 'SIGKILL')
    await exit
  }
  space.remove()
})

/** Runs in a loop until it is killed. */
const churn = `
i=0
while :; do
  i=$((i+1))
  echo "$i" > file-$((i % 7)); mkdir -p d/$((i % 3)); echo "$i" > d/$((i % 3))/f
  git add -A; git commit -qm "c$i" || :
  git checkout -q -b "topic-$i" HEAD~1 2>/dev/null && { echo "$i" > "t$((i % 4))"; git add -A; git commit -qm "t$i" || :; git rebase -q main >/dev/null 2>&1 || git rebase --abort >/dev/null 2>&1 || :; git checkout -q -f main; git branch -q -D "topic-$i"; }
  case $((i % 5)) in
    0) git repack -q -a -d ;;
    1) git pack-refs --all --prune ;;
    2) git reflog expire --expire=now --all; git gc -q --prune=now ;;
    3) git tag -f "v$i" >/dev/null; git stash -q 2>/dev/null && git stash drop -q || : ;;
  esac
  echo "$i"
done`

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', args, { cwd, env: space.env, stdio: ['ignore', 'pipe', 'pipe'] }).toString()

const locksIn = (dir: string) =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter(
    path => path.startsWith('.git') && path.endsWith('.lock'),
  )

it.each([
  [25, 0],
  [12, MANY_DIRS],
])(
  '%i snapshots during commits, rebases, repack, gc and pack-refs are sound repositories, beside %i directories',
  async (snapshots, dirs) => {
    if (dirs > 0) space.sh(`mkdir wide; cd wide; seq ${dirs} | xargs mkdir`)
    space.sh(
      'git init -q -b main .; for i in 1 2 3; do echo $i > a; git add a; git commit -qm $i; done; git config gc.auto 0',
    )
    busy = spawn('sh', ['-c', churn], {
      cwd: space.dir,
      env: space.env,
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    })
    await once(busy.stdout!, 'data')
    const savepoint = await space.open()
    const ids: string[] = []
    for (let count = 0; count < snapshots; count++) {
      // Wherever git is, but not all of them in the same round of it, however slow it is beside us.
      if (count % 2 === 1) await once(busy.stdout!, 'data')
      ids.push((await savepoint.snapshot()).id)
    }
    const exit = once(busy, 'exit')
    process.kill(-busy.pid!, 'SIGKILL')
    await exit

    const heads = new Set<string>()
    for (const id of ids) {
      const to = join(space.base, id)
      const { leftAlone } = await savepoint.rollback(id, { to })
      expect(leftAlone).toEqual([])
      expect(() => git(to, 'fsck', '--full'), `${id}: git fsck --full`).not.toThrow()
      expect(() => git(to, 'status', '--porcelain'), `${id}: git status`).not.toThrow()
      expect(locksIn(to)).toEqual([])
      heads.add(git(to, 'rev-parse', 'HEAD'))
      space.sh(`rm -rf '${to}'`)
    }
    // It did change under us, or the test would prove nothing.
    expect(heads.size).toBeGreaterThan(snapshots / 4)
  },
)

it('lock files do not come back, and one that is live is not removed', async () => {
  space.sh(
    'git init -q -b main .; echo a > a; git add a; git commit -qm one; touch .git/index.lock .git/refs/heads/main.lock',
  )
  const savepoint = await space.open()
  const { id, skipped } = await savepoint.snapshot()
  expect(skipped).toEqual([])
  space.sh(
    'rm .git/index.lock; touch .git/HEAD.lock; rm a; git update-ref -d refs/heads/main 2>/dev/null || rm .git/refs/heads/main',
  )
  const { leftAlone } = await savepoint.rollback(id)
  expect(leftAlone).toEqual([])
  expect(locksIn(space.dir).sort()).toEqual(['.git/HEAD.lock', '.git/refs/heads/main.lock'])
  expect(space.git('log', '--format=%s')).toBe('one\n')
  const to = join(space.base, 'elsewhere')
  await savepoint.rollback(id, { to })
  expect(locksIn(to)).toEqual([])
})

it('package-lock.json, Cargo.lock and yarn.lock outside of .git are files like others', async () => {
  space.sh('git init -q .; echo 1 > yarn.lock; mkdir crate; echo 2 > crate/Cargo.lock')
  const savepoint = await space.open()
  const { id } = await savepoint.snapshot()
  space.sh('rm yarn.lock crate/Cargo.lock')
  await savepoint.rollback(id)
  expect([space.read('yarn.lock'), space.read('crate/Cargo.lock')]).toEqual(['1\n', '2\n'])
})
