/** What git's aliases mean, asked only for a verb that may be one; and where git works by its variables. */

import { runGit } from '../files/run-git.ts'
import { callOf } from '../model/command-words.ts'
import { parseGit } from '../model/git-call.ts'
import { type Raw, rawToBytes, rawToText } from '../model/raw-path.ts'
import type { ExecEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'

const TIMEOUT_MS = 1000
/** Verbs that git never takes for an alias: its builtins, which it also starts itself. Newer ones are asked about, no more. */
const known = new Set(
  'add am annotate apply archive bisect bisect--helper blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout--worker checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects credential credential-cache credential-cache--daemon credential-store describe diagnose diff diff-files diff-index diff-tree difftool env--helper fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsck-objects fsmonitor--daemon gc get-tar-commit-id grep hash-object help hook index-pack init init-db interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-ours merge-recursive merge-recursive-ours merge-recursive-theirs merge-subtree merge-tree mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id pickaxe prune prune-packed pull push range-diff read-tree rebase receive-pack reflog remote remote-ext remote-fd repack replace rerere reset restore rev-list rev-parse revert rm send-pack shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule submodule--helper switch symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-archive--writer upload-pack var verify-commit verify-pack verify-tag version whatchanged worktree write-tree'.split(
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

/** Where an execution of git finds its directories by its environment. */
export function gitEnvOf({ env }: ExecEvent): { workTree: string | undefined; gitDirectory: string | undefined } {
  const find = (name: string) =>
    env
      .map(rawToText)
      .find(each => each.startsWith(`${name}=`))
      ?.slice(name.length + 1)
  return { workTree: find('GIT_WORK_TREE'), gitDirectory: find('GIT_DIR') }
}
