/** The nouns of history: snapshots, runs, operations. Plain data, as faces show them. */
import type { ChangeCounts, Id, UnknownReason } from './entry.ts'
import type { Raw } from './raw-path.ts'

export const snapshotTypes = [
  'pre-run',
  'git',
  'build',
  'test',
  'idle',
  'interval',
  'change',
  'guard',
  'kept',
  'turn',
  'manual',
  'safety',
  'final',
  'import',
] as const
export type SnapshotType = (typeof snapshotTypes)[number]

export interface Skipped {
  path: Raw
  reason: UnknownReason
}

/** Stands for the root of a snapshot that its filesystem keeps, until what it holds is read into the store. */
export const UNREAD_ROOT: Id = '\0'.repeat(32)

export interface Snapshot {
  id: string
  /** Order of creation within the timeline. */
  seq: number
  parent: string | undefined
  type: SnapshotType
  label: string | undefined
  createdAt: number
  /** A tree with one entry, the target's root directory: proves the whole content. */
  root: Id
  run: string | undefined
  /** The command that caused it. */
  command: string | undefined
  /** Who keeps it: `cas` is the store. */
  backend: string
  /** Where the filesystem keeps it; see src/engine/native-ref.ts. */
  nativeRef: string | undefined
  /** What a look at its archive shows to be wrong: "is missing"; the store has what it holds. Only where it is shown. */
  damage?: string
  /** Bytes that this snapshot added to the store. */
  sizeDelta: number
  /** Against the parent. */
  counts: ChangeCounts
  files: number
  bytes: number
  /** What was left out although it should be protected. Not empty: the snapshot is PARTIAL. */
  skippedCount: number
  skipped: Skipped[]
  /** The tree kept changing while it was captured: files may be from slightly different moments. */
  unsettled: boolean
  /** Only what its run was seen to touch was looked at: what others changed since the snapshot before may be missing. */
  runOnly: boolean
  /** Of type `kept`: it has what somebody else had put there, perhaps the only copy. */
  holdsOthers: boolean
  deletedAt: number | undefined
  /** Of one that an agent's hook took: whose turn it was. */
  turn: Turn | undefined
}

/** A step of an agent, as it tells its hooks. */
export interface Turn {
  agent: string
  session: string
  /** Counts from 1 within the session: a prompt begins the next one. */
  number: number
  /** The name of the hook's event. */
  event: string
  tool: string | undefined
}

/** Of a snapshot that its filesystem keeps. */
export interface NativeUsage {
  /** For people: a path, or a name. */
  where: string
  /** That would be free without it; undefined when the filesystem does not tell, or it was removed. */
  bytes: number | undefined
  /** Somebody has removed it: then only the store has the snapshot. */
  isGone: boolean
}

export interface Run {
  id: string
  command: string[]
  cwd: string
  startedAt: number
  endedAt: number | undefined
  exitCode: number | undefined
  signal: string | undefined
  pid: number | undefined
  before: string | undefined
  after: string | undefined
}

export const operationKinds = [
  'run',
  'rollback',
  'revert',
  'delete',
  'compact',
  'prune',
  'tag',
  'undo',
  'redo',
  'gc',
  'purge',
  'import',
  'retention',
  'trust',
  'repair',
  'kill',
] as const
export type OperationKind = (typeof operationKinds)[number]

export interface Operation {
  id: string
  seq: number
  kind: OperationKind
  at: number
  /** done: can be undone. undone: can be redone. past: neither any more. fixed: never could be. */
  state: 'done' | 'undone' | 'past' | 'fixed'
  summary: string
  /** Snapshots around an operation that changed files: `before` holds the state to go back to. */
  before: string | undefined
  after: string | undefined
  headBefore: string | undefined
  headAfter: string | undefined
  /** What is needed to reverse it, by kind. */
  detail: Record<string, unknown>
  /** The retention rule that did it, when nobody asked for it. */
  rule: string | undefined
}
