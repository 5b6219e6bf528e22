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

/** What is at a path: as it is, as it shall be, and as the operation left it. */
interface Compared {
  path: Raw
  live: Entry | undefined
  wanted: Entry | undefined
  base: Entry | undefined
}

export class Repositories {
  private readonly store: Store
  private readonly readLive: ReadLive | undefined
  /** Those in which somebody was beside what goes back. */
  private readonly used: Raw[] = []

  constructor(store: Store, readLive: ReadLive | undefined) {
    this.store = store
    this.readLive = readLive
  }

  /** To be asked of a repository before what is in it. */
  whatStays(at: Compared): 'repository' | 'object' | 'nothing' {
    if (!isRepository(at.path)) return at.wanted === undefined && this.isUsedObject(at.path) ? 'object' : 'nothing'
    const since = this.workedSince(at)
    if (since === 'beside') this.used.push(at.path)
    return since === 'there' ? 'repository' : 'nothing'
  }

  private isUsedObject(path: Raw): boolean {
    return this.used.some(place => isWithin(path, place) && OBJECTS.test(path.slice(place.length + 1)))
  }

  private workedSince({ path, live, wanted, base }: Compared): 'nowhere' | 'beside' | 'there' {
    if (live?.kind !== 'dir' || base?.kind !== 'dir' || live.content === base.content) return 'nowhere'
    const since = this.movedIn(path, base.content, live.content)
    if (since.length === 0) return 'nowhere'
    if (wanted?.kind !== 'dir') return 'there'
    // The operation has only looked, or has changed nothing that others could stand on.
    if (this.movedIn(path, wanted.content, base.content).length === 0) return 'nowhere'
    const branch = branchOf(this.store, base.content)
    return since.some(part => STANDS_ON.test(part) || part === branch) ? 'there' : 'beside'
  }

  /** What of it differs, relative to it, without what holds nothing together. */
  private movedIn(repository: Raw, before: Id, after: Id): Raw[] {
    const isRefreshed = ({ path, before, after }: Change) =>
      isRefreshedIndex(this.store, joinRaw(repository, path), before, after, this.readLive)
    return Array.from(treeChanges(this.store, before, after))
      .filter(change => !ASIDE.test(change.path))
      .filter(change => change.before?.kind !== 'dir' || change.after?.kind !== 'dir')
      .filter(change => !isRefreshed(change))
      .map(change => change.path)
  }
}

const isRepository = (path: Raw): boolean => path === '.git' || path.endsWith('/.git')

/** Of a submodule, too. */
const STANDS_ON =
  /^(?:modules\/.+\/)?(?:HEAD|index|packed-refs|(?!FETCH_|ORIG_)[A-Z_]+_HEAD|(?:rebase-merge|rebase-apply|sequencer|reftable)(?:\/.*)?)$/s
const OBJECTS = /^(?:modules\/.+\/)?objects\//s
/** Written by who only looks or fetches, or with what is moved. */
const ASIDE =
  /^(?:.*\/)?(?:FETCH_HEAD|ORIG_HEAD|COMMIT_EDITMSG|gc\.log|gc\.pid|[^/]*\.lock)$|^(?:modules\/.+\/)?(?:logs|hooks|info)(?:\/|$)|^config$|^description$/s

/** Of a repository whose HEAD nobody has moved. */
function branchOf(store: Store, tree: Id): Raw | undefined {
  const head = entryAt(store, tree, 'HEAD')
  const content = head?.kind === 'file' ? readContent(store, head)?.toString('latin1') : undefined
  return /^ref: (.+)\n?$/s.exec(content ?? '')?.[1]?.trimEnd()
}
