/** Everything that some root trees need: trees, contents, and the chunks of large files. */
import type { Id } from '../model/entry.ts'
import { noting } from './known-damage.ts'
import { OBJECT } from './pack-format.ts'
import { decodeRecipe } from './recipe.ts'
import type { Store } from './store.ts'

/** Throws `store.damaged` when a tree cannot be read: then nothing may be deleted. */
export function reachableFrom(store: Store, roots: Iterable<Id>): Set<Id> {
  const alive = new Set<Id>()
  const trees = [...new Set(roots)]
  for (const root of trees) alive.add(root)
  while (trees.length > 0) {
    for (const entry of store.tree(trees.pop()!)) {
      if (entry.content === '' || alive.has(entry.content)) continue
      alive.add(entry.content)
      if (entry.kind === 'dir') trees.push(entry.content)
      else addChunks(store, entry.content, alive)
    }
  }
  return alive
}

function addChunks(store: Store, content: Id, alive: Set<Id>): void {
  const location = store.index.find(content)
  if (location?.kind !== OBJECT.recipe) return
  const items = noting(store, [content], () => decodeRecipe(store.readAt(location)))
  for (const item of items) if ('chunk' in item) alive.add(item.chunk)
}
