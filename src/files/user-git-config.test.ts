import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runGitSync } from './run-git.ts'
import { mayNameExcludesFile } from './user-git-config.ts'

const space = mkdtempSync(join(tmpdir(), 'user-git-config-'))
afterAll(() => rmSync(space, { recursive: true }))

const named = '[core]\n\tExcludesFile = ~/ignored\n'
const included = '[include]\n\tpath = other\n'
const conditional = '[includeIf "gitdir:/"]\n\tpath = other\n'
const harmless = '[user]\n\tname = excludes\n'

it.each([
  ['nothing at all', {}, {}, false],
  ['.gitconfig that names it', { '.gitconfig': named }, {}, true],
  ['.gitconfig without it', { '.gitconfig': harmless }, {}, false],
  ['.gitconfig that includes a file that names it', { '.gitconfig': included, other: named }, {}, true],
  ['.gitconfig that includes on a condition', { '.gitconfig': conditional, other: named }, {}, true],
  ['.config/git/config', { '.config/git/config': named }, {}, true],
  ['XDG_CONFIG_HOME', { 'xdg/git/config': named }, { XDG_CONFIG_HOME: 'xdg' }, true],
  ['.config while XDG_CONFIG_HOME is elsewhere', { '.config/git/config': named }, { XDG_CONFIG_HOME: 'xdg' }, false],
])('%s', (name, files, variables, wanted) => {
  const home = join(space, name.replaceAll(/\W/g, '-'))
  mkdirSync(home)
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, file)), { recursive: true })
    writeFileSync(join(home, file), content)
  }
  const moved = Object.entries(variables).map(([key, value]) => [key, join(home, value)])
  const env = { PATH: process.env.PATH, HOME: home, ...Object.fromEntries(moved) }
  expect(mayNameExcludesFile(env)).toBe(wanted)
  // What git itself says is never missed. (A condition holds only inside of a repository.)
  const answer = runGitSync('config', ['--get', 'core.excludesFile'], {
    cwd: Buffer.from('/'),
    timeoutMs: 60_000,
    repository: undefined,
    env,
  })
  expect(answer.code).toBe(wanted && name.indexOf('condition') < 0 ? 0 : 1)
})

it('there is no need to ask a git that is not there', () =>
  expect(mayNameExcludesFile({ PATH: '/nonexistent', HOME: space })).toBe(false))
