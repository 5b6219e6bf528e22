/** Reads a whole file from the store, for showing: bounded, because it is held in memory. */
import { readFileSync } from 'node:fs'
import { SavepointError } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { showPath } from '../model/raw-path.ts'
import type { Store } from '../store/store.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { resolveSnapshot } from '../timeline/resolve-ref.ts'
import type { Context } from './context.ts'
import { resolvePath } from './resolve-path.ts'

const MAX_SHOWN_BYTES = 64 * 1024 * 1024

/** undefined when it is too large to be held in memory. */
export function readContent(store: Store, entry: Entry): Buffer | undefined {
  if (entry.size > MAX_SHOWN_BYTES) return undefined
  const source = store.contentSource(entry.content)
  if (source.kind === 'object') return store.readAt(source.location)
  if (source.kind === 'clone') return readFileSync(source.file)
  return Buffer.concat(source.items.map(item => ('hole' in item ? Buffer.alloc(item.hole) : store.read(item.chunk))))
}

function whyNot(entry: Entry | undefined): string {
  if (!entry) return 'it is not there'
  if (entry.kind === 'unknown') return `it was not captured (${entry.reason})`
  return entry.kind === 'file' ? 'it is too large' : `it is a ${entry.kind}`
}

export function readFile(ctx: Context, ref: string, path: string): Buffer {
  const snapshot = resolveSnapshot(ctx.db, ref)
  const raw = resolvePath(ctx, path)
  const entry = entryAt(ctx.store, rootTreeOf(ctx.store, snapshot.root), raw)
  if (entry?.kind === 'link') return Buffer.from(entry.target, 'latin1')
  const content = entry?.kind === 'file' ? readContent(ctx.store, entry) : undefined
  if (content) return content
  throw new SavepointError('path.unknown', `Cannot read ${showPath(raw)} in ${snapshot.id}: ${whyNot(entry)}`, {
    hint: `\`savepoint history ${showPath(raw)}\` shows its versions`,
  })
}
