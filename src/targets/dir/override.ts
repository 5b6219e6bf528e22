/** The tree that a rollback goes to: what it has captured is captured before, whatever the rules say. */
import { isDamage } from '../../errors/errors.ts'
import type { Entry, Id } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { findEntry } from '../../store/tree-lookup.ts'
import type { DirNode } from './dir-node.ts'

export function overrideEntry(store: Store, node: DirNode, name: Raw, kind?: Entry['kind']): Entry | undefined {
  if (node.override === undefined) return undefined
  const entry = findEntry(overrideTree(store, node.override), name)
  return entry && entry.kind !== 'unknown' && (kind === undefined || entry.kind === kind) ? entry : undefined
}

/** One that the store has lost asks for nothing: the plan of the restore, which needs it, refuses. */
function overrideTree(store: Store, id: Id): Entry[] {
  try {
    return store.tree(id)
  } catch (error) {
    if (isDamage(error)) return []
    throw error
  }
}
