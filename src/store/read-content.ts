/** Reads a whole file from the store, bounded, because it is held in memory. */
import { readFileSync } from 'node:fs'
import type { Entry } from '../model/entry.ts'
import { hashBytes } from '../model/id.ts'
import { noting } from './known-damage.ts'
import { wrongContent } from './recipe.ts'
import type { Store } from './store.ts'

export const MAX_SHOWN_BYTES = 64 * 1024 * 1024

/** Checked against its id; undefined when it is too large to be held in memory. */
export function readContent(store: Store, entry: Entry): Buffer | undefined {
  return entry.size > MAX_SHOWN_BYTES ? undefined : noting(store, [entry.content], () => wholeContent(store, entry))
}

function wholeContent(store: Store, entry: Entry): Buffer {
  const source = store.contentSource(entry.content)
  if (source.kind === 'object') return store.read(entry.content)
  const bytes =
    source.kind === 'clone'
      ? readFileSync(source.file)
      : Buffer.concat(
          source.items.map(item => ('hole' in item ? Buffer.alloc(item.hole) : store.readAt(store.locate(item.chunk)))),
        )
  if (hashBytes(bytes) !== entry.content) throw wrongContent()
  return bytes
}
