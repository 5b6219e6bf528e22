/**
 * A repository that goes back although somebody has worked in it since: what he has made may stand on objects that would go. Where
 * he has moved what the work tree stands on (HEAD, its branch, the index), the repository stays as a whole, because parts of two
 * states do not fit together. In branches and worktrees of his own he was beside that: then each part goes back by itself, but for
 * objects, which stay. What git keeps of a linked worktree stays as a whole, too, if he has worked there.
 */
import type { Entry, Id } from '../../model/entry.ts'
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

/** One in which somebody was beside what goes back. */
interface Used {
  path: Raw
  /** What of it he has moved. */
  since: Raw[]
}

export class Repositories {
  private readonly store: Store
  private readonly readLive: ReadLive | undefined
  private readonly used: Used[] = []
  /** Of worktrees that stay: the `.git` that leads to each, by its absolute path. */
  private readonly pointers: Raw[] = []

  constructor(store: Store, readLive: ReadLive | undefined) {
    this.store = store
    this.readLive = readLive
  }

  /** To be asked of a directory before what is in it. */
  whatStays(at: Compared): 'repository' | 'part' | 'nothing' {
    const { path, live, base, wanted } = at
    if (live?.kind === 'file' && this.pointers.some(pointer => pointer.endsWith(`/${path}`))) return 'part'
    if (this.isUsedPart(path, wanted)) return 'part'
    if (live?.kind !== 'dir' || base?.kind !== 'dir' || live.content === base.content) return 'nothing'
    if (this.has(base.content, ['HEAD', 'commondir', 'gitdir']))
      return this.ofWorktree(path, base.content, live.content)
    if (!isNamedGit(path) && !this.has(base.content, ['HEAD', 'objects', 'refs'])) return 'nothing'
    return this.ofRepository(at, base.content, live.content)
  }

  private ofRepository({ path, wanted }: Compared, base: Id, live: Id): 'repository' | 'nothing' {
    const since = this.movedIn(path, base, live)
    if (since.length === 0) return 'nothing'
    if (wanted?.kind !== 'dir') return 'repository'
    // The operation has only looked, or has changed nothing that others could stand on.
    if (this.movedIn(path, wanted.content, base).length === 0) return 'nothing'
    const branch = this.branchOf(base)
    if (since.some(part => STANDS_ON.test(part) || part === branch)) return 'repository'
    this.used.push({ path, since })
    return 'nothing'
  }

  private ofWorktree(path: Raw, base: Id, live: Id): 'repository' | 'nothing' {
    const branch = this.branchOf(base)
    const isMoved = this.used.some(
      ({ path: place, since }) => isWithin(path, place) && since.some(part => part === branch),
    )
    if (!isMoved && this.movedIn(path, base, live).length === 0) return 'nothing'
    const pointer = this.textOf(base, 'gitdir')
    if (pointer !== undefined) this.pointers.push(pointer.trimEnd())
    return 'repository'
  }

  /** What others may need of a repository that they have made use of: nothing that was added goes, and where its history begins stays. */
  private isUsedPart(path: Raw, wanted: Entry | undefined): boolean {
    const place = this.used.findLast(each => isWithin(path, each.path))
    const part = place && path.slice(place.path.length + 1)
    return part !== undefined && (part === 'shallow' || (wanted === undefined && OBJECTS.test(part)))
  }

  private has(tree: Id, names: readonly Raw[]): boolean {
    return names.every(name => entryAt(this.store, tree, name) !== undefined)
  }

  /** What of it differs, relative to it, without what holds nothing together. */
  private movedIn(place: Raw, before: Id, after: Id): Raw[] {
    return Array.from(treeChanges(this.store, before, after)).flatMap(({ path, before, after }) => {
      const isAside = ASIDE.test(path) || (before?.kind === 'dir' && after?.kind === 'dir')
      if (isAside || isRefreshedIndex(this.store, joinRaw(place, path), before, after, this.readLive)) return []
      return [path]
    })
  }

  /** Where nobody has moved HEAD. */
  private branchOf(tree: Id): Raw | undefined {
    return /^ref: (.+)$/s.exec(this.textOf(tree, 'HEAD') ?? '')?.[1]?.trimEnd()
  }

  private textOf(tree: Id, name: Raw): Raw | undefined {
    const entry = entryAt(this.store, tree, name)
    return entry?.kind === 'file' ? readContent(this.store, entry)?.toString('latin1') : undefined
  }
}

const isNamedGit = (path: Raw): boolean => path === '.git' || path.endsWith('/.git')

const STANDS_ON =
  /^(?:HEAD|index|packed-refs|(?!FETCH_|ORIG_)[A-Z_]+_HEAD|(?:rebase-merge|rebase-apply|sequencer|reftable)(?:\/.*)?)$/s
const OBJECTS = /^(?:objects|lfs|annex)(?:\/|$)/s
/** Written by who only looks or fetches, or with what is moved. */
const ASIDE =
  /^(?:.*\/)?(?:FETCH_HEAD|ORIG_HEAD|COMMIT_EDITMSG|gc\.log|gc\.pid|[^/]*\.lock)$|^(?:modules\/.+\/|worktrees\/[^/]+\/)?(?:logs|hooks|info)(?:\/|$)|^config$|^description$/s
