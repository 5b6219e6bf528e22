/** Rows of a timeline for tests. */
import type { Operation, Run, Snapshot } from './snapshot.ts'

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
    runOnly: false,
    holdsOthers: false,
    deletedAt: undefined,
    turn: undefined,
    ...over,
  }
}

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
