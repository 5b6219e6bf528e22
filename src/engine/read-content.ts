/** Reads a whole file from the store, for showing: bounded, because it is held in memory. */
import { SavepointError } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import { rawToBytes, showPath } from '../model/raw-path.ts'
import { readContent } from '../store/read-content.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { resolveSnapshot } from '../timeline/resolve-ref.ts'
import type { Context } from './context.ts'
import { resolvePath, typedPath } from './resolve-path.ts'
import type { FileVersion } from './results.ts'

function whyNot(entry: Entry | undefined): string {
  if (!entry) return 'it is not there'
  if (entry.kind === 'unknown') return `it was not captured (${entry.reason})`
  return entry.kind === 'file' ? 'it is too large' : `it is a ${entry.kind}`
}

function contentOf(ctx: Context, entry: Entry): Buffer | undefined {
  if (entry.kind === 'link') return rawToBytes(entry.target)
  return entry.kind === 'file' ? readContent(ctx.store, entry) : undefined
}

export function findEntry(ctx: Context, ref: string, path: string) {
  const snapshot = resolveSnapshot(ctx.db, ref)
  const raw = resolvePath(ctx, path)
  return { snapshot, raw, entry: entryAt(ctx.store, rootTreeOf(ctx.store, snapshot.root), raw) }
}

export function readFile(ctx: Context, ref: string, path: string): FileVersion {
  const { snapshot, raw, entry } = findEntry(ctx, ref, path)
  const content = entry && contentOf(ctx, entry)
  if (content) return { snapshot, path: raw, entry, content }
  const why = raw === '' ? 'it is a dir' : whyNot(entry)
  throw new SavepointError('path.unknown', `Cannot read ${showPath(raw) || '.'} in ${snapshot.id}: ${why}`, {
    hint: `\`savepoint history ${typedPath(ctx, raw)}\` shows its versions`,
  })
}
