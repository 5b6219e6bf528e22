import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import type { Raw } from '../model/raw-path.ts'
import { type GitFacts, readGitFacts } from './git-facts.ts'
import { readOuter } from './git-outer.ts'
import { memoryCache, TestTree, walkTarget } from './git-test-tree.ts'
import { runGitSync } from './run-git.ts'

let tree: TestTree
const newTree = (name?: Raw) => {
  tree = new TestTree(name)
  return tree
}
afterEach(() => tree.remove())

/** Longer than an ignore file has to be left alone to count as settled. */
const SETTLE_MS = 80

/** A git that counts its calls. */
function countingGit(): { env: NodeJS.ProcessEnv; calls(): number } {
  const log = `${tree.home}/calls`
  const real = (process.env.PATH ?? '').split(':').find(dir => existsSync(`${dir}/git`))
  return {
    env: {
      ...tree.env,
      PATH: `${tree.program('git', `echo "$*" >>'${log}'; exec '${real}/git' "$@"`)}:${process.env.PATH}`,
    },
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').split('ls-files').length - 1 : 0),
  }
}

async function factsOf(repoRoot: Raw = '', env = tree.env, cache = memoryCache()): Promise<GitFacts> {
  const facts = await readGitFacts(tree.root, repoRoot, { cache, env })
  expect(facts).toBeDefined()
  return facts!
}

test('tells what is tracked although it is ignored, relative to the target', async () => {
  newTree()
  tree.initRepo('sub')
  tree.write('sub/.gitignore', '*.log\n/out/\n')
  tree.write('sub/.git/info/exclude', '*.priv\n')
  for (const path of ['a.log', 'b.log', 'out/deep/x', 'plain', 'x.priv', 'odd\nna\xffme.log']) tree.write(`sub/${path}`)
  tree.addForced(['a.log', 'out/deep/x', 'plain', 'x.priv', 'odd\nna\xffme.log'], 'sub')
  const facts = await factsOf('sub')
  expect([...facts.trackedIgnored].sort()).toEqual([
    'sub/a.log',
    'sub/odd\nna\xffme.log',
    'sub/out/deep/x',
    'sub/x.priv',
  ])
  expect(facts.infoExclude?.content.toString()).toBe('*.priv\n')
  expect(facts.warnings).toEqual([])
})

test('is undefined where .git is not a repository', async () => {
  newTree()
  const options = { cache: memoryCache(), env: tree.env }
  expect(await readGitFacts(tree.root, '', options)).toBeUndefined()
  mkdirSync(tree.at('.git'))
  expect(await readGitFacts(tree.root, '', options)).toBeUndefined()
  tree.write('x/.git', 'gitdir: ../nowhere\n')
  expect(await readGitFacts(tree.root, 'x', options)).toBeUndefined()
  mkdirSync(tree.at('loop'))
  symlinkSync('.git', tree.at('loop/.git'))
  expect(await readGitFacts(tree.root, 'loop', options)).toBeUndefined()
})

test('does not ask git when there is no index, and survives without one', async () => {
  newTree()
  tree.initRepo()
  const { env, calls } = countingGit()
  expect((await factsOf('', env)).trackedIgnored.size).toBe(0)
  expect(calls()).toBe(0)
})

test('does not wait for an ignore file that is a FIFO', async () => {
  newTree()
  tree.initRepo()
  execFileSync('mkfifo', [tree.at('.git/info/exclude').toString()])
  expect((await factsOf()).infoExclude).toBeUndefined()
})

test('understands worktrees and submodules', async () => {
  newTree()
  tree.git(['init', '-q', 'main'])
  const identity = ['-c', 'user.name=u', '-c', 'user.email=u@example.org']
  tree.write('main/.gitignore', '*.log\n')
  tree.write('main/a.log')
  tree.git(['add', '-f', '.'], '', 'main')
  tree.git([...identity, 'commit', '-qm', 'one'], '', 'main')
  tree.git(['worktree', 'add', '-q', '../linked'], '', 'main')
  tree.write('main/.git/info/exclude', '*.priv\n')
  const linked = await factsOf('linked')
  expect([...linked.trackedIgnored]).toEqual(['linked/a.log'])
  expect(linked.infoExclude?.content.toString()).toBe('*.priv\n')

  tree.git(['-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', `${tree.root}/linked`, 'sub'], '', 'main')
  tree.write('main/sub/b.log')
  tree.addForced(['b.log'], 'main/sub')
  expect([...(await factsOf('main/sub')).trackedIgnored]).toEqual(['main/sub/a.log', 'main/sub/b.log'])

  const { captured } = await walkTarget(tree)
  expect(captured).toEqual(expect.arrayContaining(['main/a.log', 'linked/a.log', 'main/sub/b.log']))
})

test('a bare repository as target, and one without a commit, are plain directories', async () => {
  newTree()
  tree.git(['init', '-q', '--bare', '.'])
  const { captured, excluded } = await walkTarget(tree)
  expect(captured).toContain('HEAD')
  expect(excluded.size).toBe(0)
})

test('asks once for one index and one set of rules', async () => {
  newTree()
  tree.initRepo()
  tree.write('.gitignore', '*.log\n')
  tree.write('d/.gitignore', '# nothing yet\n')
  for (const path of ['a.log', 'd/x.gen', 'd/y.gen', 'd/z']) tree.write(path)
  tree.addForced(['a.log', 'd/x.gen'])
  await sleep(SETTLE_MS)
  const { env, calls } = countingGit()
  const cache = memoryCache()
  const first = await walkTarget(tree, { env, cache })
  expect(calls()).toBe(1)
  const second = await walkTarget(tree, { env, cache })
  expect(calls()).toBe(1)
  expect(second.captured).toEqual(first.captured)
  expect(second.rules.key).toBe(first.rules.key)

  // A rule deep in the tree now excludes a tracked path, with the index unchanged: git has to be asked again.
  tree.write('d/.gitignore', '*.gen\n')
  await sleep(SETTLE_MS)
  const third = await walkTarget(tree, { env, cache })
  expect(calls()).toBe(2)
  expect(third.captured).toContain('d/x.gen')
  expect([...third.excluded]).toEqual([['d/y.gen', 'd/.gitignore:1']])
  await walkTarget(tree, { env, cache })
  expect(calls()).toBe(2)

  tree.write('.gitignore', '*.log\nz\n')
  await walkTarget(tree, { env, cache })
  expect(calls()).toBe(3)
})

test('does not remember an answer for an ignore file that may have changed while git read it', async () => {
  newTree()
  tree.initRepo()
  tree.write('d/a')
  tree.addForced(['d/a'])
  const cache = memoryCache()
  const { env, calls } = countingGit()
  tree.write('d/.gitignore', 'b\n')
  await walkTarget(tree, { env, cache })
  await sleep(SETTLE_MS)
  await walkTarget(tree, { env, cache })
  expect(calls()).toBe(2)
  await walkTarget(tree, { env, cache })
  expect(calls()).toBe(2)
})

test('the key follows the facts, not the index file', async () => {
  newTree()
  tree.initRepo()
  tree.write('.gitignore', '*.log\n')
  for (const path of ['a.log', 'b.log', 'plain']) tree.write(path)
  tree.addForced(['a.log'])
  const before = (await factsOf()).key
  utimesSync(tree.at('.git/index'), 1, 1)
  expect((await factsOf()).key).toBe(before)
  tree.addForced(['plain'])
  expect((await factsOf()).key).toBe(before)
  tree.write('.git/info/exclude', 'q\n')
  const withInfo = (await factsOf()).key
  expect(withInfo).not.toBe(before)
  tree.addForced(['b.log'])
  expect((await factsOf()).key).not.toBe(withInfo)
})

test('without git, with a broken index or a git that hangs, everything else works on', async () => {
  newTree()
  tree.initRepo()
  tree.write('.gitignore', '*.log\n')
  for (const path of ['a.log', 'b.txt']) tree.write(path)
  tree.addForced(['a.log'])
  const noGit = await walkTarget(tree, { env: { ...tree.env, PATH: '/nonexistent' } })
  expect(noGit.captured).toEqual(['.gitignore', 'b.txt'])
  expect(noGit.warnings).toEqual(['Tracked files that ignore rules exclude may not be captured: git is not installed'])

  const hanging = { ...tree.env, PATH: `${tree.program('git', 'sleep 5')}:${process.env.PATH}` }
  const started = performance.now()
  const slow = await readGitFacts(tree.root, '', { cache: memoryCache(), env: hanging, timeoutMs: 100 })
  expect(slow?.warnings[0]).toContain('did not end within 100 ms')
  expect(runGitSync('version', [], { cwd: tree.root, repository: undefined, env: hanging, timeoutMs: 100 }).code).toBe(
    -1,
  )
  expect(performance.now() - started).toBeLessThan(3000)

  tree.write('.git/index', 'DIRC nonsense')
  const broken = await walkTarget(tree)
  expect(broken.captured).toEqual(['.gitignore', 'b.txt'])
  expect(broken.warnings).toHaveLength(1)
})

test('global excludes: core.excludesFile, else the one in the configuration directory', async () => {
  newTree()
  tree.write('a.swp')
  tree.write('b.bak')
  tree.write('../.config/git/ignore', '*.swp\n')
  expect((await walkTarget(tree)).captured).toEqual(['b.bak'])
  const elsewhere = { ...tree.env, XDG_CONFIG_HOME: `${tree.home}/xdg` }
  expect((await walkTarget(tree, { env: elsewhere })).captured).toEqual(['a.swp', 'b.bak'])
  tree.write('../.gitconfig', '[core]\n\texcludesFile = ~/mine\n')
  tree.write('../mine', '*.bak\n')
  const { captured, excluded } = await walkTarget(tree)
  expect(captured).toEqual(['a.swp'])
  expect(excluded.get('b.bak')).toBe(`${tree.home}/mine:1`)
  // A repository may name its own, for itself only.
  tree.initRepo('sub')
  tree.write('sub/.git/config', '[core]\n\texcludesfile = own\n')
  for (const path of ['own', 'a.swp', 'b.bak', 'c.own']) tree.write(`sub/${path}`, path === 'own' ? '*.own\n' : '')
  expect((await walkTarget(tree)).captured).toEqual(['a.swp', 'sub/a.swp', 'sub/b.bak', 'sub/own'])
})

test('a repository around the target is found, but not from within its git directory', async () => {
  newTree()
  tree.initRepo()
  tree.write('.gitignore', '/s/t/x\n*.log\n')
  for (const path of ['s/t/x', 's/t/a.log', 's/t/b.log', 's/other.log', '.git/hooks/a.log']) tree.write(path)
  tree.addForced(['s/t/a.log', 's/other.log'])
  const options = { cache: memoryCache(), env: tree.env }
  const outer = await readOuter(tree.at('s/t'), options)
  expect([...outer.git!.trackedIgnored]).toEqual(['a.log'])
  expect((await walkTarget(tree, { target: 's/t' })).captured).toEqual(['a.log'])
  expect((await readOuter(tree.at('.git/hooks'), options)).files).toEqual([])
  expect((await readOuter(tree.root, options)).git).toBeUndefined()
  // A symlink to the target leads to the same repository, as git sees it.
  symlinkSync(tree.at('s/t'), `${tree.home}/link`)
  expect((await readOuter(Buffer.from(`${tree.home}/link`), options)).files).toHaveLength(1)
})

test('a target whose path is not UTF-8', async () => {
  newTree('w\xff\xfe')
  tree.initRepo()
  tree.write('.gitignore', '*.log\n')
  for (const path of ['a.log', 'b.log', 's/c.log']) tree.write(path)
  // child_process cannot name this directory as text, so the index is made in one that it can name.
  const plain = new TestTree()
  plain.initRepo()
  for (const path of ['a.log', 's/c.log']) plain.write(path)
  plain.addForced(['a.log', 's/c.log'])
  tree.write('.git/index', readFileSync(plain.at('.git/index')).toString('latin1'))
  plain.remove()
  expect((await walkTarget(tree)).captured).toEqual(['.gitignore', 'a.log', 's/c.log'])
  expect((await walkTarget(tree, { target: 's' })).captured).toEqual(['c.log'])
})
