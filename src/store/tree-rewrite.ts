/** Makes a tree with some entries changed. Only the directories on the way to them are written anew. */
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { Store } from './store.ts'
import type { StoreWriter } from './store-writer.ts'
import { encodeTree } from './tree-codec.ts'

/** `edits`: path → new entry, or undefined to remove it. Missing directories on the way are made. */
export function rewriteTree(
  store: Store,
  writer: StoreWriter,
  tree: Id | undefined,
  edits: ReadonlyMap<Raw, Entry | undefined>,
): Id {
  return runDeep(rewrite(store, writer, tree, edits))
}

function* rewrite(
  store: Store,
  writer: StoreWriter,
  tree: Id | undefined,
  edits: ReadonlyMap<Raw, Entry | undefined>,
): Deep<Id> {
  const entries = new Map((tree === undefined ? [] : store.tree(tree)).map(entry => [entry.name, entry]))
  const below = new Map<Raw, Map<Raw, Entry | undefined>>()
  for (const [path, entry] of edits) {
    const slash = path.indexOf('/')
    if (slash < 0) {
      if (entry) entries.set(path, entry)
      else entries.delete(path)
      continue
    }
    const name = path.slice(0, slash)
    if (!below.has(name)) below.set(name, new Map())
    below.get(name)!.set(path.slice(slash + 1), entry)
  }
  for (const [name, inside] of below) {
    const directory = entries.get(name)
    const old = directory?.kind === 'dir' ? directory.content : undefined
    const content = yield* call(rewrite(store, writer, old, inside))
    entries.set(name, {
      ...(directory?.kind === 'dir' ? directory : { ...blankEntry(name, 'dir'), mode: 0o755 }),
      content,
    })
  }
  const sorted = [...entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  return writer.put(encodeTree(sorted))
}
