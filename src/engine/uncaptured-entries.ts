/** What a state knows only by name: no snapshot has it. */
import type { Entry, Id } from '../model/entry.ts'
import { parentOf, type Raw } from '../model/raw-path.ts'
import type { Skipped } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import { findEntry } from '../store/tree-lookup.ts'

/** The entries of a state that were not captured, by any path at or below them. */
export class UncapturedEntries {
  private readonly store: Store
  private readonly known = new Map<Raw, Id | Skipped | undefined>()

  constructor(store: Store, tree: Id) {
    this.store = store
    this.known.set('', tree)
  }

  of(path: Raw): Skipped | undefined {
    const above = this.above(parentOf(path))
    if (above === undefined || typeof above !== 'string') return above
    const entry = findEntry(this.store.tree(above), path.slice(path.lastIndexOf('/') + 1))
    return entry && unprotected(path, entry)
  }

  /** The mount or nested subvolume that it lies in. */
  mountAround(path: Raw): Skipped | undefined {
    const above = this.above(parentOf(path))
    return typeof above === 'object' && above.reason === 'mount' ? above : undefined
  }

  /** Of a directory: its tree, or by what it is not captured. */
  private above(directory: Raw): Id | Skipped | undefined {
    if (this.known.has(directory)) return this.known.get(directory)
    const outer = this.above(parentOf(directory))
    const name = directory.slice(directory.lastIndexOf('/') + 1)
    const entry = typeof outer === 'string' ? findEntry(this.store.tree(outer), name) : undefined
    const found =
      typeof outer !== 'string'
        ? outer
        : entry && (unprotected(directory, entry) ?? (entry.kind === 'dir' ? entry.content : undefined))
    this.known.set(directory, found)
    return found
  }
}

const unprotected = (path: Raw, { kind, reason }: Entry): Skipped | undefined =>
  kind === 'unknown' && reason !== undefined ? { path, reason } : undefined
