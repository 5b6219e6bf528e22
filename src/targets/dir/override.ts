/**
 * The tree that a restore goes to, and of an undo the one that the operation left: what they have captured is captured
 * before, whatever the rules say.
 */
import { isDamage } from '../../errors/errors.ts'
import type { Entry, Id } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { findEntry } from '../../store/tree-lookup.ts'
import type { DirNode } from './dir-node.ts'

export const isOverridden = (store: Store, node: DirNode, name: Raw): boolean =>
  node.override.some(tree => (findEntry(overrideTree(store, tree), name)?.kind ?? 'unknown') !== 'unknown')

/** The trees of a directory in them. */
export const overridesIn = (store: Store, parent: DirNode, name: Raw): Id[] =>
  parent.override.flatMap(tree => {
    const entry = findEntry(overrideTree(store, tree), name)
    return entry?.kind === 'dir' ? [entry.content] : []
  })

/** One that the store has lost asks for nothing: the plan of the restore, which needs it, refuses. */
function overrideTree(store: Store, id: Id): Entry[] {
  try {
    return store.tree(id)
  } catch (error) {
    if (isDamage(error)) return []
    throw error
  }
}
