/** Repositories in which a run has worked, not only looked: what is in one of them belongs together, whoever wrote it. */
import type { Change } from '../model/entry.ts'
import { isGitIndex, type Raw } from '../model/raw-path.ts'
import { sameEntry } from '../store/tree-diff.ts'

/** Whether a path lies in the `.git` of one, of which something in `changes` is `isOwn`. */
export function inRepositoriesOf(changes: readonly Change[], isOwn: (path: Raw) => boolean): (path: Raw) => boolean {
  const own = new Set<Raw>()
  for (const { path, before, after } of changes) {
    // A local clone links the objects: those of the other repository are as they were, but for how many names they have.
    if (before && after && sameEntry({ ...before, linkGroup: after.linkGroup }, after)) continue
    const repository = repositoryOf(path)
    if (repository !== undefined && !isGitIndex(path) && isOwn(path)) own.add(repository)
  }
  return path => {
    const repository = repositoryOf(path)
    return repository !== undefined && own.has(repository)
  }
}

/** The `.git` that it is, or lies in. */
export const repositoryOf = (path: Raw): Raw | undefined => /^(?:.*?\/)?\.git(?=\/|$)/s.exec(path)?.[0]
