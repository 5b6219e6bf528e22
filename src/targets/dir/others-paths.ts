/**
 * Paths that changed while the operation that is undone was not alone. Whose a change there is cannot be told, so an undo
 * leaves them as they are.
 */
import type { Id } from '../../model/entry.ts'
import { isGitIndex, parentOf, type Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { stateChanges } from './state-changes.ts'

/** The states around what somebody else did. */
export interface Span {
  /** Root trees. */
  before: Id
  after: Id
  /** What of it that one is known to have touched; undefined: all that changed may be. */
  paths?: readonly Raw[]
  /** Those of them that nobody but that one has touched: none of the undone operation's business. */
  foreign?: readonly Raw[]
  /** It was no run: somebody or something outside of it. */
  isOutside?: boolean
}

export class OthersPaths {
  private readonly paths = new Set<Raw>()
  private readonly above = new Set<Raw>()
  private readonly repositories = new Set<Raw>()
  private readonly foreign = new Set<Raw>()
  private readonly outside = new Set<Raw>()

  constructor(store: Store, spans: readonly Span[]) {
    const shared = new Set<Raw>()
    for (const { before, after, paths, foreign = [], isOutside } of spans) {
      const alone = new Set(foreign)
      for (const path of paths ?? changedPaths(store, before, after)) {
        const place = this.add(path)
        if (place !== undefined && isOutside) this.outside.add(place)
        else if (place !== undefined) (alone.has(path) ? this.foreign : shared).add(place)
      }
    }
    for (const place of shared) this.foreign.delete(place)
  }

  /** Whether it is somebody else's alone: it stays, and there is nothing to say about it. */
  isForeign(path: Raw): boolean {
    return this.foreign.has(path)
  }

  /** Why it stays. */
  whyOf(path: Raw): 'outside' | 'overlapped' {
    return this.outside.has(path) ? 'outside' : 'overlapped'
  }

  has(path: Raw): boolean {
    return this.paths.has(path)
  }

  hasBelow(path: Raw): boolean {
    return this.above.has(path)
  }

  /** A `.git` in which somebody else worked: the references of one and the objects of another would not fit together. */
  isRepository(path: Raw): boolean {
    return this.repositories.has(path)
  }

  /** What counts for it: a repository is one thing. */
  private add(path: Raw): Raw | undefined {
    if (isGitIndex(path)) return undefined
    const repository = /^(?:.*?\/)?\.git(?=\/)/s.exec(path)?.[0]
    if (repository !== undefined) this.repositories.add(repository)
    else this.paths.add(path)
    const leaf = repository ?? path
    for (let at = leaf; at !== '' && !this.above.has(parentOf(at)); at = parentOf(at)) this.above.add(parentOf(at))
    return leaf
  }
}

const changedPaths = (store: Store, before: Id, after: Id): Raw[] =>
  Array.from(stateChanges(store, before, after), ({ path }) => path)
