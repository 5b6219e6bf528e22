/** A repository, however it is configured, cannot run programs through us. */
import { appendFileSync, chmodSync, existsSync, unlinkSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestTree, walkTarget } from './git-test-tree.ts'
import { runGit, runGitSync } from './run-git.ts'

let tree: TestTree
beforeEach(() => {
  tree = new TestTree()
})
afterEach(() => tree.remove())

test('a repository cannot run programs through us', async () => {
  tree.git(['init', '-q', '.'])
  tree.write('.gitignore', '*.log\n')
  tree.write('.gitattributes', '* filter=evil diff=evil merge=evil\n')
  for (const path of ['a.log', 'b.log', 'd/x', 'd/.gitignore']) tree.write(path)
  tree.git(['add', '-f', '.'])
  const marker = `${tree.home}/marker`
  const touch = `touch '${marker}'`
  const evil = `${tree.program('evil', touch)}/evil`
  // A missing object of a "promisor" remote is fetched by running uploadpack: here the ignore file of a skipped path.
  const config = `
[core]
	fsmonitor = ${evil}
	hooksPath = ${tree.root}/hooks
	pager = ${evil}
	sshCommand = ${evil}
	editor = ${evil}
	askPass = ${evil}
	alternateRefsCommand = ${evil}
	repositoryformatversion = 1
[extensions]
	partialClone = origin
[remote "origin"]
	url = ${tree.root}
	uploadpack = ${evil}
	promisor = true
[diff]
	external = ${evil}
[diff "evil"]
	textconv = ${evil}
	command = ${evil}
[filter "evil"]
	clean = ${evil}
	smudge = ${evil}
	process = ${evil}
[merge "evil"]
	driver = ${evil}
[gpg]
	program = ${evil}
[credential]
	helper = ${evil}
[alias]
	ls-files = !${evil}
	config = !${evil}
[trace2]
	eventTarget = ${marker}
`
  for (const hook of ['post-index-change', 'pre-commit', 'fsmonitor-watchman']) {
    for (const dir of ['hooks', '.git/hooks']) {
      tree.write(`${dir}/${hook}`, `#!/bin/sh\n${touch}\n`)
      chmodSync(tree.at(`${dir}/${hook}`), 0o755)
    }
  }
  const missing = '1234567890123456789012345678901234567890'
  tree.git(['update-index', '--cacheinfo', `100644,${missing},d/.gitignore`])
  tree.git(['update-index', '--skip-worktree', 'd/.gitignore'])
  appendFileSync(tree.at('.git/config'), config)
  tree.git(['rev-parse']) // the configuration is valid
  // The trap is real: git on its own falls into it.
  unlinkSync(tree.at('d/.gitignore'))
  const question = ['ls-files', '-z', '-c', '-i', '--exclude-standard']
  try {
    tree.git(question)
  } catch {}
  expect(existsSync(marker)).toBe(true)
  unlinkSync(marker)

  const env = { ...tree.env, GIT_DIR: '/nonexistent', GIT_EXTERNAL_DIFF: evil, GIT_SSH_COMMAND: evil, PAGER: evil }
  const { captured, warnings } = await walkTarget(tree, { env })
  expect(captured).toContain('b.log')
  expect(warnings.join()).not.toContain('not installed')
  const options = { cwd: tree.root, repository: '', env, timeoutMs: 5000 }
  expect(runGitSync('ls-files', question.slice(1), options).code).toBeGreaterThanOrEqual(0)
  expect((await runGit('config', ['--get', 'core.fsmonitor'], options)).stdout.toString()).toBe('false\n')
  expect((await runGit('rev-parse', ['--git-dir'], options)).stdout.toString()).toBe('.git\n')
  expect(existsSync(marker)).toBe(false)
})

test('git is not looked for in the repository', async () => {
  const marker = `${tree.home}/marker`
  tree.write('git', `#!/bin/sh\ntouch '${marker}'\n`)
  chmodSync(tree.at('git'), 0o755)
  const env = { ...tree.env, PATH: `.::./:${process.env.PATH}` }
  const options = { cwd: tree.root, repository: undefined, timeoutMs: 5000 }
  expect((await runGit('version', [], { ...options, env })).stdout.toString()).toContain('git version')
  const nowhere = { ...options, env: { ...env, PATH: '.:' } }
  expect(runGitSync('version', [], nowhere)).toMatchObject({ code: -1, stderr: 'git is not installed' })
  expect(existsSync(marker)).toBe(false)
})
