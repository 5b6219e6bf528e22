/** Whether packs that are missing, or cut off, had something of a state. Trees may be remembered that the store itself has lost. */
import { existsSync } from 'node:fs'
import type { Entry, Id } from '../model/entry.ts'
import { OBJECT } from './pack-format.ts'
import type { Store } from './store.ts'
import { EMPTY_TREE } from './tree-codec.ts'
import { withAllBelow } from './tree-lookup.ts'

/** `lost` is what `store.lostPacks()` answers: with none, nothing is looked at. */
export function hasLostPart(store: Store, lost: ReadonlySet<number>, entry: Entry): boolean {
  if (lost.size === 0) return false
  for (const { entry: below } of withAllBelow(store, { path: '', entry }))
    if (below.content !== '' && isLost(store, lost, below.content)) return true
  return false
}

/** Of one object, and of the chunks of a large file. */
export function isLost(store: Store, lost: ReadonlySet<number>, id: Id): boolean {
  if (lost.size === 0 || id === EMPTY_TREE) return false
  const location = store.index.find(id)
  if (!location) return true
  if (location.kind === OBJECT.clone) return !existsSync(store.cloneFile(id))
  if (lost.has(location.pack)) return true
  const source = location.kind === OBJECT.recipe ? store.contentSource(id) : undefined
  return source?.kind === 'recipe' && source.items.some(item => 'chunk' in item && isLost(store, lost, item.chunk))
}
