/** What git's aliases mean, asked only for a verb that may be one. */

import { runGit } from '../files/run-git.ts'
import { callOf } from '../model/command-words.ts'
import { parseGit } from '../model/git-call.ts'
import { type Raw, rawToBytes } from '../model/raw-path.ts'
import type { Context } from './context.ts'

const TIMEOUT_MS = 1000
/** Verbs that git never takes for an alias, and that are used all the time. */
const known = new Set(
  'add am apply bisect blame branch cat-file checkout cherry-pick clean clone commit config diff fetch filter-branch gc grep init log ls-files ls-tree merge mv notes pull push rebase reflog remote reset restore rev-list rev-parse revert rm show stash status submodule switch symbolic-ref tag update-index update-ref version worktree'.split(
    ' ',
  ),
)

/** Of a command that is not git, or of a verb of git's own, none are asked for. */
export async function gitAliases(ctx: Context, cwd: Raw, argv: readonly string[]): Promise<Map<string, string>> {
  const aliases = new Map<string, string>()
  const { program, words } = callOf(argv)
  if (program !== 'git') return aliases
  const { verb } = parseGit(words, () => undefined)
  if (verb === '' || known.has(verb)) return aliases
  const { code, stdout } = await runGit('config', ['--null', '--get-regexp', '^alias\\.'], {
    cwd: rawToBytes(cwd),
    timeoutMs: TIMEOUT_MS,
    repository: '',
    env: ctx.env,
  })
  if (code !== 0) return aliases
  for (const entry of stdout.toString().split('\0').filter(Boolean)) {
    const [name, ...meaning] = entry.split('\n')
    aliases.set(name!.slice('alias.'.length), meaning.join('\n'))
  }
  return aliases
}
