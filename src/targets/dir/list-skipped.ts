/** What a capture left out that belongs to the state: it makes the snapshot PARTIAL. */
import { joinRaw } from '../../model/raw-path.ts'
import type { Skipped } from '../../model/snapshot.ts'
import type { Store } from '../../store/store.ts'
import type { StoreWriter } from '../../store/store-writer.ts'
import type { StatCache } from './stat-cache.ts'
import { partialReasons } from './tree-builder.ts'

/** Its trees are committed first, because they are read. */
export function listSkipped({ dirs }: StatCache, store: Store, writer: StoreWriter): Skipped[] {
  if (dirs.skipped.size === 0) return []
  writer.commit()
  return [...dirs.skipped].flatMap(path =>
    store
      .tree(dirs.get(path)!.tree)
      .filter(entry => entry.reason !== undefined && partialReasons.has(entry.reason))
      .map(entry => ({ path: joinRaw(path, entry.name), reason: entry.reason! })),
  )
}
