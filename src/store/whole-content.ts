/**
 * Whether the store can give a state back: its trees, which may be remembered although the store has lost them, and the blocks
 * that have its contents. Each tree and each block is looked at once, because the states of snapshots mostly share them.
 */
import { existsSync } from 'node:fs'
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
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

/** `readsBlocks`: a block counts when it can be read; otherwise when the pack that it is in has not been lost or cut off. */
export function wholenessOf(store: Store, readsBlocks = true): Wholeness {
  const lost = readsBlocks ? undefined : store.lostPacks()
  const blocks = new Map<string, boolean>()
  const trees = new Map<Id, boolean>()

  function hasBlock({ pack, block }: Location): boolean {
    if (lost) return !lost.has(pack)
    const key = `${pack}:${block}`
    const isThere = blocks.get(key) ?? store.packs.isIntact(pack, block)
    blocks.set(key, isThere)
    return isThere
  }

  function hasObject(id: Id): boolean {
    if (id === EMPTY_TREE) return true
    const location = store.index.find(id)
    if (!location) return false
    if (location.kind === OBJECT.clone) return existsSync(store.cloneFile(id))
    if (!hasBlock(location)) return false
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
