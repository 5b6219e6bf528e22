/** git rewrites its index to note timestamps, as `git status` does: the same entries are the same index. */
import { indexDigest } from '../../files/git-index.ts'
import type { Entry } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import { readContent } from '../../store/read-content.ts'
import type { Store } from '../../store/store.ts'

/** A larger index is not compared entry by entry. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024

/** Whether `path` is an index of git, and both states of it have the same entries. */
export function isRefreshedIndex(store: Store, path: Raw, a: Entry | undefined, b: Entry | undefined): boolean {
  if (!isGitIndex(path)) return false
  const digests = [a, b].map(entry => (entry?.kind === 'file' ? digestOf(store, entry) : undefined))
  return digests[0] !== undefined && digests[0] === digests[1]
}

const isGitIndex = (path: Raw): boolean => /(^|\/)\.git(\/(modules|worktrees)\/.+)?\/index$/s.test(path)

function digestOf(store: Store, entry: Entry): string | undefined {
  const content = entry.size <= MAX_INDEX_BYTES ? readContent(store, entry) : undefined
  return content && indexDigest(content)
}
