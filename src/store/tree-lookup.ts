/** Finds single paths in trees. */
import { descend } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
import { joinRaw, type Raw } from '../model/raw-path.ts'
import type { Store } from './store.ts'

/** Binary search: trees are sorted by name. */
export function findEntry(entries: readonly Entry[], name: Raw): Entry | undefined {
  let low = 0
  let high = entries.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const entry = entries[middle]!
    if (entry.name === name) return entry
    if (entry.name < name) low = middle + 1
    else high = middle - 1
  }
  return undefined
}

/** Finds entries of a sorted list in the order of their names, each asked for at most once, without holding the list. */
export class EntryCursor {
  private readonly entries: Iterator<Entry, undefined>
  private current: Entry | undefined

  constructor(entries: Iterable<Entry>) {
    this.entries = entries[Symbol.iterator]() as Iterator<Entry, undefined>
    this.current = this.entries.next().value
  }

  find(name: Raw): Entry | undefined {
    while (this.current && this.current.name < name) this.current = this.entries.next().value
    return this.current?.name === name ? this.current : undefined
  }
}

/**
 * The entry at `path` below the directory tree `tree`. An `unknown` entry on the way is returned instead, because it
 * answers for everything below it; undefined means known to be absent.
 */
export function entryAt(store: Store, tree: Id, path: Raw): Entry | undefined {
  let current = tree
  const names = path.split('/')
  for (const [i, name] of names.entries()) {
    const entry = findEntry(store.tree(current), name)
    if (!entry || entry.kind === 'unknown' || i === names.length - 1) return entry
    if (entry.kind !== 'dir') return undefined
    current = entry.content
  }
  return undefined
}

export interface PathEntry {
  path: Raw
  entry: Entry
}

/** Every entry below `tree`, parents before children. */
export function allEntries(store: Store, tree: Id): Generator<PathEntry> {
  return descend(childrenOf(store, '', tree), ({ path, entry }) =>
    entry.kind === 'dir' ? childrenOf(store, path, entry.content) : undefined,
  )
}

/** An entry and, if it is a directory, every entry below it. */
export function withAllBelow(store: Store, top: PathEntry): Generator<PathEntry> {
  return descend([top], ({ path, entry }) =>
    entry.kind === 'dir' ? childrenOf(store, path, entry.content) : undefined,
  )
}

export function* childrenOf(store: Store, directory: Raw, tree: Id): Generator<PathEntry> {
  for (const entry of store.tree(tree)) yield { path: joinRaw(directory, entry.name), entry }
}
