/** Snapshots, nodes and results for the tests of the renderers. */
import type { LogNode, RestoreResult } from '../index.ts'
import type { Change, Entry } from '../model/entry.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'

export const noon = Date.UTC(2026, 0, 31, 12, 0, 0)

export function makeSnapshot(id: string, over: Partial<Snapshot> = {}): Snapshot {
  return {
    id: `snap_${id}`,
    seq: 1,
    parent: undefined,
    type: 'manual',
    label: undefined,
    createdAt: noon,
    root: '\x01'.repeat(32),
    run: undefined,
    command: undefined,
    backend: 'cas',
    nativeRef: undefined,
    sizeDelta: 0,
    counts: { added: 0, modified: 0, deleted: 0 },
    files: 1,
    bytes: 1,
    skippedCount: 0,
    skipped: [],
    unsettled: false,
    deletedAt: undefined,
    ...over,
  }
}

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

export function makeEntry(name: string, over: Partial<Entry> = {}): Entry {
  return {
    name,
    kind: 'file',
    mode: 0o644,
    uid: 0,
    gid: 0,
    mtimeNs: 5n,
    size: 3,
    content: '\x02'.repeat(32),
    target: '',
    linkGroup: 0n,
    xattrs: undefined,
    sparse: false,
    rdevMajor: 0,
    rdevMinor: 0,
    reason: undefined,
    ...over,
  }
}

export const added = (path: string): Change => ({ kind: 'added', path, after: makeEntry(path) })
export const deleted = (path: string): Change => ({ kind: 'deleted', path, before: makeEntry(path) })

export const makeRestore = (over: Partial<RestoreResult> = {}): RestoreResult => ({
  snapshot: makeSnapshot('aaaa2222', { label: 'works' }),
  dryRun: false,
  changes: [],
  files: { created: 0, deleted: 0, replaced: 0, metadata: 0 },
  leftAlone: [],
  keptDirs: [],
  hidden: { count: 0, paths: [] },
  safety: undefined,
  lateEdits: undefined,
  operation: undefined,
  ...over,
})

export const makeOperation = (over: Partial<Operation> = {}): Operation => ({
  id: 'op_aaaa2222',
  seq: 1,
  kind: 'rollback',
  at: noon,
  state: 'done',
  summary: 'rollback to snap_aaaa2222',
  before: undefined,
  after: undefined,
  headBefore: undefined,
  headAfter: undefined,
  detail: {},
  rule: undefined,
  ...over,
})

export const makeRun = (over: Partial<Run> = {}): Run => ({
  id: 'run_aaaa2222',
  command: ['sh', '-c', 'echo hi'],
  cwd: '/w',
  startedAt: noon,
  endedAt: noon + 12_000,
  exitCode: 0,
  signal: undefined,
  pid: 7,
  before: undefined,
  after: undefined,
  ...over,
})
