/**
 * Whether the store can give a state back: its trees, which may be remembered although the store has lost them, and the blocks
 * that have its contents. Each tree and each block is looked at once, because the states of snapshots mostly share them.
 */
import { existsSync } from 'node:fs'
import { isDamage } from '../errors/errors.ts'
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
import { isSoundClone, knownDamage, noteDamage } from './known-damage.ts'
import type { Location } from './object-index.ts'
import { OBJECT } from './pack-format.ts'
import type { Store } from './store.ts'
import { EMPTY_TREE } from './tree-codec.ts'

export interface Wholeness {
  /** An object with the chunks of a large file, not what lies below a directory. */
  hasObject(id: Id): boolean
  /** With everything below it. */
  hasAllOf(entry: Entry): boolean
}

/**
 * `readsBlocks`: a block, or the clone of a large file, counts when it can be read, and what cannot is noted; otherwise when its
 * file has not been lost or cut off. What is known to be damaged never counts.
 */
export function wholenessOf(store: Store, readsBlocks = true): Wholeness {
  const lost = readsBlocks ? undefined : store.lostPacks()
  const damaged = knownDamage(store.index)
  const blocks = new Map<string, boolean>()
  const clones = new Map<Id, boolean>()
  const trees = new Map<Id, boolean>()

  function hasBlock({ pack, block }: Location): boolean {
    if (lost) return !lost.has(pack)
    const key = `${pack}:${block}`
    const isThere = blocks.get(key) ?? store.packs.isIntact(pack, block)
    blocks.set(key, isThere)
    return isThere
  }

  function hasClone(id: Id): boolean {
    const isThere = clones.get(id) ?? (readsBlocks ? isSoundClone(store, id) : existsSync(store.cloneFile(id)))
    clones.set(id, isThere)
    return isThere
  }

  function hasObject(id: Id): boolean {
    if (id === EMPTY_TREE) return true
    const location = store.index.find(id)
    if (!location || damaged.has(id)) return false
    const isThere = location.kind === OBJECT.clone ? hasClone(id) : hasBlock(location)
    if (!isThere && readsBlocks) noteDamage(store, [id])
    if (!isThere || location.kind === OBJECT.clone) return isThere
    const source = location.kind === OBJECT.recipe ? store.contentSource(id) : undefined
    return source?.kind !== 'recipe' || source.items.every(item => !('chunk' in item) || hasObject(item.chunk))
  }

  function* hasTree(id: Id): Deep<boolean> {
    const known = trees.get(id)
    if (known !== undefined) return known
    const isThere = hasObject(id) && (yield* call(hasAllIn(id)))
    trees.set(id, isThere)
    return isThere
  }

  function* hasAllIn(tree: Id): Deep<boolean> {
    for (const { kind, content } of store.tree(tree)) {
      if (kind === 'dir' ? !(yield* call(hasTree(content))) : content !== '' && !hasObject(content)) return false
    }
    return true
  }

  return {
    hasObject,
    hasAllOf: ({ kind, content }) =>
      kind === 'dir' ? runDeep(hasTree(content)) : content === '' || hasObject(content),
  }
}

/** Whether a state, by its root tree, needs something that is known to be damaged: nobody reads blocks to tell that. */
export function needsDamaged(store: Store, root: Id): boolean {
  if (root === '' || knownDamage(store.index).size === 0) return false
  const whole = wholenessOf(store, false)
  try {
    return !whole.hasObject(root) || !store.tree(root).every(whole.hasAllOf)
  } catch (error) {
    if (isDamage(error)) return true
    throw error
  }
}
