/**
 * The index of git says what is staged, and git writes it anew also when it is only asked what has changed, to note the times of
 * files. So whoever has touched it has not always worked in the repository.
 */
import type { Change } from '../model/entry.ts'
import { parseGit } from '../model/git-call.ts'
import { onlyShowsCommit } from '../model/git-commit.ts'
import { isGitIndex, nameOf, type Raw } from '../model/raw-path.ts'
import type { Execution } from '../model/trace.ts'
import { isOtherIndex } from '../targets/dir/refreshed-index.ts'
import type { Context } from './context.ts'
import { readLive } from './resolve-path.ts'

const looks: ReadonlySet<string> = new Set(['status', 'diff', 'describe'])
const LOCK = /\.lock$/
/** Perhaps; most paths are none. */
const IS_INDEX = /\/index(?:\.lock)?$/
const REFRESHES = /^(?:-q|--refresh|--really-refresh|--unmerged|--ignore-missing|--ignore-submodules)$/

/** Whether something was staged or unstaged between the two states, and not only looked at. */
export const isStaged = (ctx: Context, { path, before, after }: Change): boolean =>
  isOtherIndex(ctx.store, path, before, after, at => readLive(ctx, at))

/** Removes from `touched` each index that the run has written only by looking, and the file that it was written to first. */
export function withoutLooks<T extends { keys(): Iterable<Raw>; delete(path: Raw): boolean }>(
  { db }: Context,
  run: string,
  touched: T,
): T {
  const indexes = [...touched.keys()].filter(path => IS_INDEX.test(path) && isGitIndex(path.replace(LOCK, '')))
  for (const path of indexes) if (db.trace.writersOf(run, path).every(isLookOfGit)) touched.delete(path)
  return touched
}

/** An alias counts as more: what it stood for then is not known. */
function isLookOfGit(execution: Execution | undefined): boolean {
  if (!execution || nameOf(execution.argv[0] ?? '') !== 'git') return false
  const { verb, words } = parseGit(execution.argv.slice(1), () => undefined)
  if (verb === 'update-index') return words.every(word => REFRESHES.test(word))
  return looks.has(verb) || (verb === 'commit' && onlyShowsCommit(words))
}
