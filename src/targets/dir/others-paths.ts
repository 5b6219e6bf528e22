/**
 * Paths that changed while the operation that is undone was not alone. Whose a change there is cannot be told, so an undo
 * leaves them as they are.
 */
import type { Entry, Id } from '../../model/entry.ts'
import { isGitIndex, parentOf, type Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { entryAt } from '../../store/tree-lookup.ts'
import { rootTreeOf } from './capture.ts'
import { sameAside } from './plan-entries.ts'
import { isOtherIndex } from './refreshed-index.ts'
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
  /** The run itself moved them there, and no state before it has them. */
  isOnlyCopy?: boolean
  /** Root trees around the step that took it back since. */
  takenBack?: { before: Id; after: Id } | undefined
}

export class OthersPaths {
  private readonly paths = new Set<Raw>()
  private readonly above = new Set<Raw>()
  private readonly repositories = new Set<Raw>()
  private readonly foreign = new Set<Raw>()
  private readonly outside = new Set<Raw>()
  private readonly onlyCopies = new Set<Raw>()

  private readonly store: Store
  private readonly takenBack: { before: Id; after: Id }[] = []

  constructor(store: Store, spans: readonly Span[]) {
    this.store = store
    const shared = new Set<Raw>()
    for (const { before, after, paths, foreign = [], isOutside, isOnlyCopy, takenBack } of spans) {
      if (takenBack) this.takenBack.push(takenBack)
      const alone = new Set(foreign)
      for (const path of paths ?? changedPaths(store, before, after)) {
        // Who only looks writes the index anew.
        if (isGitIndex(path) && !isOutside && !isStaged(store, path, before, after)) continue
        const place = this.add(path)
        if (isOnlyCopy) this.onlyCopies.add(place)
        else if (isOutside) this.outside.add(place)
        else (alone.has(path) ? this.foreign : shared).add(place)
      }
    }
    for (const place of shared) this.foreign.delete(place)
  }

  /** Whether it is somebody else's alone: it stays, and there is nothing to say about it. */
  isForeign(path: Raw): boolean {
    return this.foreign.has(path) && !this.onlyCopies.has(path)
  }

  /** Why it stays. */
  whyOf(path: Raw): 'only-copy' | 'outside' | 'overlapped' {
    if (this.onlyCopies.has(path)) return 'only-copy'
    return this.outside.has(path) ? 'outside' : 'overlapped'
  }

  /** Whether only taking back what others had done has made `live` of `base`. */
  isAsTakenBack(path: Raw, live: Entry | undefined, base: Entry | undefined): boolean {
    const entryIn = (root: Id) => entryAt(this.store, rootTreeOf(this.store, root), path)
    const steps = this.takenBack.map(({ before, after }) => ({ before: entryIn(before), after: entryIn(after) }))
    let now = base
    for (let rest = steps.length; rest > 0; rest--) {
      const next = steps.findIndex(({ before, after }) => sameAside(before, now) && !sameAside(before, after))
      if (next < 0) break
      now = steps.splice(next, 1)[0]!.after
    }
    return steps.length < this.takenBack.length && sameAside(live, now)
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
  private add(path: Raw): Raw {
    const repository = /^(?:.*?\/)?\.git(?=\/)/s.exec(path)?.[0]
    if (repository !== undefined) this.repositories.add(repository)
    else this.paths.add(path)
    const leaf = repository ?? path
    for (let at = leaf; at !== '' && !this.above.has(parentOf(at)); at = parentOf(at)) this.above.add(parentOf(at))
    return leaf
  }
}

function isStaged(store: Store, path: Raw, ...roots: [before: Id, after: Id]): boolean {
  const [before, after] = roots.map(root => entryAt(store, rootTreeOf(store, root), path))
  return isOtherIndex(store, path, before, after, undefined)
}

const changedPaths = (store: Store, before: Id, after: Id): Raw[] =>
  Array.from(stateChanges(store, before, after), ({ path }) => path)
