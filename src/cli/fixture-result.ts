/** Nodes, changes and results for the tests of the renderers. */
import type { LogNode, RestoreResult } from '../index.ts'
import { blankEntry, type Change, type Entry } from '../model/entry.ts'
import { makeSnapshot } from '../model/fixture-snapshot.ts'

/** "c b", "b a", "a": each word pair is a child and its parent; the first is the newest. */
export function makeNodes(...pairs: string[]): LogNode[] {
  return pairs.map((pair, i) => {
    const [id, parent] = pair.split(' ')
    return {
      snapshot: makeSnapshot(id!, { seq: pairs.length - i, parent: parent && `snap_${parent}` }),
      tags: [],
      isHead: i === 0,
      children: [],
      isLeaf: false,
      shownParent: parent && `snap_${parent}`,
    }
  })
}

export const makeEntry = (name: string, over: Partial<Entry> = {}): Entry => ({
  ...blankEntry(name, 'file'),
  mode: 0o644,
  mtimeNs: 5n,
  size: 3,
  content: '\x02'.repeat(32),
  ...over,
})

export const added = (path: string): Change => ({ kind: 'added', path, after: makeEntry(path) })
export const deleted = (path: string): Change => ({ kind: 'deleted', path, before: makeEntry(path) })

export const makeRestore = (over: Partial<RestoreResult> = {}): RestoreResult => ({
  snapshot: makeSnapshot('aaaa2222', { label: 'works' }),
  dryRun: false,
  changes: [],
  files: { created: 0, deleted: 0, replaced: 0, metadata: 0 },
  emptyDirs: 0,
  leftAlone: [],
  keptDirs: [],
  hidden: { count: 0, paths: [] },
  gone: { count: 0, paths: [] },
  unprotected: { count: 0, paths: [] },
  mixed: [],
  uncaptured: [],
  safety: undefined,
  lateEdits: undefined,
  operation: undefined,
  stillOpen: [],
  ...over,
})
