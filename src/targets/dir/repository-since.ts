/**
 * A repository that goes back although somebody has worked in it since: what he has made may stand on objects that would go. Where
 * he has moved what the work tree stands on (HEAD, its branch, the index), the repository stays as a whole, because parts of two
 * states do not fit together. In branches and worktrees of his own he was beside that: then each part goes back by itself, but for
 * objects, which stay.
 */
import type { Change, Entry, Id } from '../../model/entry.ts'
import { isWithin, joinRaw, type Raw } from '../../model/raw-path.ts'
import { readContent } from '../../store/read-content.ts'
import type { Store } from '../../store/store.ts'
import { treeChanges } from '../../store/tree-diff.ts'
import { entryAt } from '../../store/tree-lookup.ts'
import { isRefreshedIndex, type ReadLive } from './refreshed-index.ts'

/** `unchanged`: the operation itself has only looked. */
type WorkedSince = 'nowhere' | 'beside' | 'there' | 'unchanged'

export const isRepository = (path: Raw): boolean => path === '.git' || path.endsWith('/.git')

interface Repository {
  store: Store
  /** A `.git`. */
  path: Raw
  live: Entry | undefined
  wanted: Entry | undefined
  /** As the operation left it. */
  base: Entry | undefined
  readLive: ReadLive | undefined
}

export function workedSince(repository: Repository): WorkedSince {
  const { store, live, wanted, base } = repository
  if (live?.kind !== 'dir' || base?.kind !== 'dir' || live.content === base.content) return 'nowhere'
  const since = movedIn(repository, base.content, live.content)
  if (since.length === 0) return 'nowhere'
  if (wanted?.kind !== 'dir') return 'there'
  if (movedIn(repository, wanted.content, base.content).length === 0) return 'unchanged'
  const branch = branchOf(store, base.content)
  return since.some(part => STANDS_ON.test(part) || part === branch) ? 'there' : 'beside'
}

/** Whether what is at `path` is an object of one of the repositories. */
export const isObjectIn = (repositories: readonly Raw[], path: Raw): boolean =>
  repositories.some(repository => isWithin(path, repository) && OBJECTS.test(path.slice(repository.length + 1)))

/** Of a submodule, too. */
const STANDS_ON =
  /^(?:modules\/.+\/)?(?:HEAD|index|packed-refs|(?!FETCH_|ORIG_)[A-Z_]+_HEAD|(?:rebase-merge|rebase-apply|sequencer|reftable)(?:\/.*)?)$/s
const OBJECTS = /^(?:modules\/.+\/)?objects\//s
/** Written by who only looks or fetches, or with what is moved. */
const ASIDE =
  /^(?:.*\/)?(?:FETCH_HEAD|ORIG_HEAD|COMMIT_EDITMSG|gc\.log|gc\.pid|[^/]*\.lock)$|^(?:modules\/.+\/)?(?:logs|hooks|info)(?:\/|$)|^config$|^description$/s

/** What of it differs, relative to it, without what holds nothing together. */
function movedIn({ store, path, readLive }: Repository, before: Id, after: Id): Raw[] {
  const isRefreshed = (change: Change) =>
    isRefreshedIndex(store, joinRaw(path, change.path), change.before, change.after, readLive)
  return Array.from(treeChanges(store, before, after))
    .filter(change => !ASIDE.test(change.path))
    .filter(change => change.before?.kind !== 'dir' || change.after?.kind !== 'dir')
    .filter(change => !isRefreshed(change))
    .map(change => change.path)
}

/** Of a repository whose HEAD nobody has moved. */
function branchOf(store: Store, tree: Id): Raw | undefined {
  const head = entryAt(store, tree, 'HEAD')
  const content = head?.kind === 'file' ? readContent(store, head)?.toString('latin1') : undefined
  return /^ref: (.+)\n?$/s.exec(content ?? '')?.[1]?.trimEnd()
}
