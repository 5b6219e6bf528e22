/** Reads a whole file from the store, bounded, because it is held in memory. */
import { readFileSync } from 'node:fs'
import type { Entry } from '../model/entry.ts'
import type { Store } from './store.ts'

export const MAX_SHOWN_BYTES = 64 * 1024 * 1024

/** undefined when it is too large to be held in memory. */
export function readContent(store: Store, entry: Entry): Buffer | undefined {
  if (entry.size > MAX_SHOWN_BYTES) return undefined
  const source = store.contentSource(entry.content)
  if (source.kind === 'object') return store.readAt(source.location)
  if (source.kind === 'clone') return readFileSync(source.file)
  return Buffer.concat(source.items.map(item => ('hole' in item ? Buffer.alloc(item.hole) : store.read(item.chunk))))
}
