/** git rewrites its index to note timestamps, as `git status` does: the same entries are the same index. */
import { indexDigest } from '../../files/git-index.ts'
import type { Entry } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import { readContent } from '../../store/read-content.ts'
import type { Store } from '../../store/store.ts'

/** A larger index is not compared entry by entry. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024

/** For contents that are not in the store: what a dry run has only looked at. */
export type ReadLive = (path: Raw) => Buffer | undefined

/** Whether `path` is an index of git, and both states of it have the same entries. */
export const isRefreshedIndex = (...states: States): boolean => compareIndexes(...states) === 'same'

/** Whether `path` is an index of git, and something was staged or unstaged between the two states. */
export const isOtherIndex = (...states: States): boolean => compareIndexes(...states) === 'other'

type States = [store: Store, path: Raw, a: Entry | undefined, b: Entry | undefined, readLive: ReadLive | undefined]

function compareIndexes(...[store, path, a, b, readLive]: States): 'same' | 'other' | 'unknown' {
  if (!isGitIndex(path)) return 'unknown'
  const [before, after] = [a, b].map(entry =>
    entry?.kind === 'file' ? digestOf(store, path, entry, readLive) : undefined,
  )
  if (before === undefined || after === undefined) return (a === undefined) === (b === undefined) ? 'unknown' : 'other'
  return before === after ? 'same' : 'other'
}

/** Also of a worktree whose repository has another name. What is none has no entries that could be the same. */
const isGitIndex = (path: Raw): boolean => /(?:^|\/)(?:\.git(?:\/modules\/.+)?|worktrees\/[^/]+)\/index$/s.test(path)

function digestOf(store: Store, path: Raw, entry: Entry, readLive: ReadLive | undefined): string | undefined {
  if (entry.size > MAX_INDEX_BYTES) return undefined
  const content = readLive && !store.has(entry.content) ? readLive(path) : readContent(store, entry)
  return content && indexDigest(content)
}
