/**
 * A repository that goes back although somebody has worked in it since: what he has made may stand on objects that would go. Where
 * he has moved what the work tree stands on (HEAD, its branch, the index), the repository stays as a whole, because parts of two
 * states do not fit together. In branches and worktrees of his own he was beside that: then each part goes back by itself, but for
 * objects, which stay. What git keeps of a linked worktree stays as a whole, too, if he has worked there.
 */
import { blankEntry, type Entry, type Id } from '../../model/entry.ts'
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
  /** The branches that worktrees stand on which came, or went to them, since. */
  branches: ReadonlySet<Raw>
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

  /** Of the target itself, by its trees. */
  begin(trees: { live: Id; wanted: Id; base: Id }): void {
    const [live, wanted, base] = [trees.live, trees.wanted, trees.base].map(content => ({
      ...blankEntry('', 'dir'),
      content,
    }))
    this.whatStays({ path: '', live, wanted, base })
  }

  /** To be asked of a directory before what is in it. `objects`: nothing of them goes; what is missing comes back. */
  whatStays(at: Compared): 'repository' | 'objects' | 'part' | 'nothing' {
    const { path, live, base, wanted } = at
    if (live?.kind === 'file' && this.pointers.some(pointer => pointer.endsWith(`/${path}`))) return 'part'
    const stays = this.ofPart(path, base?.content !== wanted?.content)
    if (stays !== 'nothing') return stays
    if (live?.kind !== 'dir' || base?.kind !== 'dir' || live.content === base.content) return 'nothing'
    if (this.has(base.content, ['HEAD', 'commondir', 'gitdir']))
      return this.ofWorktree(path, base.content, live.content)
    if (!isNamedGit(path) && !this.has(base.content, ['HEAD', 'objects', 'refs'])) return 'nothing'
    return this.ofRepository(at, base.content, live.content)
  }

  private ofRepository({ path, wanted }: Compared, base: Id, live: Id): 'repository' | 'nothing' {
    const since = this.movedIn(path, base, live)
    if (since.length === 0) return 'nothing'
    const isMade = wanted?.kind !== 'dir'
    // The operation has only looked, or has changed nothing that others could stand on.
    if (!isMade && this.movedIn(path, wanted.content, base).length === 0) return 'nothing'
    const branch = this.branchOf(base)
    const isMoved = isMade || since.some(part => STANDS_ON.test(part) || part === branch)
    // The target itself is one, without a work tree: each part for itself.
    if (isMoved && path !== '') {
      for (const { content } of this.worktreesOf(live)) this.notePointer(content)
      return 'repository'
    }
    this.used.push({ path, since, branches: this.branchesSince(base, live) })
    return 'nothing'
  }

  private branchesSince(base: Id, live: Id): Set<Raw> {
    const before = new Map(this.worktreesOf(base).map(({ name, content }) => [name, this.textOf(content, 'HEAD')]))
    const moved = this.worktreesOf(live).filter(
      ({ name, content }) => before.get(name) !== this.textOf(content, 'HEAD'),
    )
    return new Set(moved.flatMap(({ content }) => this.branchOf(content) ?? []))
  }

  private worktreesOf(tree: Id): Entry[] {
    const all = entryAt(this.store, tree, 'worktrees')
    return all?.kind === 'dir' ? [...this.store.entries(all.content)].filter(({ kind }) => kind === 'dir') : []
  }

  private ofWorktree(path: Raw, base: Id, live: Id): 'repository' | 'nothing' {
    const branch = this.branchOf(base)
    const isMoved = this.used.some(
      ({ path: place, since }) => isWithin(path, place) && since.some(part => part === branch),
    )
    if (!isMoved && this.movedIn(path, base, live).length === 0) return 'nothing'
    this.notePointer(base)
    return 'repository'
  }

  private notePointer(worktree: Id): void {
    const pointer = this.textOf(worktree, 'gitdir')
    if (pointer !== undefined) this.pointers.push(pointer.trimEnd())
  }

  /** What others may need of a repository that they have made use of; also where its history begins. */
  private ofPart(path: Raw, isChanged: boolean): 'repository' | 'objects' | 'part' | 'nothing' {
    const used = this.used.findLast(each => isWithin(path, each.path))
    const part = used && (used.path === '' ? path : path.slice(used.path.length + 1))
    if (part === undefined) return 'nothing'
    if (OBJECTS.has(part)) return 'objects'
    return part === 'shallow' ? 'part' : isChanged && used!.branches.has(part) ? 'repository' : 'nothing'
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
const OBJECTS: ReadonlySet<Raw> = new Set(['objects', 'lfs', 'annex'])
/** Written by who only looks or fetches, or with what is moved. */
const ASIDE =
  /^(?:.*\/)?(?:FETCH_HEAD|ORIG_HEAD|COMMIT_EDITMSG|gc\.log|gc\.pid|[^/]*\.lock)$|^(?:modules\/.+\/|worktrees\/[^/]+\/)?(?:logs|hooks|info)(?:\/|$)|^config$|^description$/s

/** What is wanted below a directory and is not there: to be made. */
export function missingBelow(store: Store, path: Raw, live: Entry | undefined, wanted: Entry | undefined): Missing[] {
  if (wanted?.kind !== 'dir') return []
  if (live?.kind !== 'dir') return live ? [] : [{ path, entry: wanted }]
  if (live.content === wanted.content) return []
  const there = new Map([...store.entries(live.content)].map(entry => [entry.name, entry]))
  return [...store.entries(wanted.content)].flatMap(entry => {
    const below = joinRaw(path, entry.name)
    const now = there.get(entry.name)
    if (now) return missingBelow(store, below, now, entry)
    return entry.kind === 'unknown' ? [] : [{ path: below, entry }]
  })
}

interface Missing {
  path: Raw
  entry: Entry
}
