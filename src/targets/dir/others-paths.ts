/**
 * Paths that changed while the operation that is undone was not alone. Whose a change there is cannot be told, so an undo
 * leaves them as they are.
 */
import type { Id } from '../../model/entry.ts'
import { parentOf, type Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { stateChanges } from './state-changes.ts'

/** The states around what somebody else did. */
export interface Span {
  /** Root trees. */
  before: Id
  after: Id
}

export class OthersPaths {
  private readonly paths = new Set<Raw>()
  private readonly above = new Set<Raw>()
  private readonly repositories = new Set<Raw>()

  constructor(store: Store, spans: readonly Span[]) {
    for (const { before, after } of spans) for (const { path } of stateChanges(store, before, after)) this.add(path)
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

  private add(path: Raw): void {
    // Every `git status` writes it anew; work that is staged shows in the objects, too.
    if (/(?:^|\/)\.git\/index$/.test(path)) return
    const repository = /^(?:.*?\/)?\.git(?=\/)/s.exec(path)?.[0]
    if (repository !== undefined) this.repositories.add(repository)
    else this.paths.add(path)
    const leaf = repository ?? path
    for (let at = leaf; at !== '' && !this.above.has(parentOf(at)); at = parentOf(at)) this.above.add(parentOf(at))
  }
}
