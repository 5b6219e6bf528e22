/** What the engine's verbs answer. Plain data with raw paths; faces render it. */
import type { Change, ChangeCounts, Entry, Id, UnknownReason } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { Running } from '../model/running.ts'
import type { Operation, Run, Skipped, Snapshot } from '../model/snapshot.ts'
import type { LeftAlone } from '../targets/dir/hidden.ts'
import type { LeftToStore } from './kept-limit.ts'
import type { LeftByPurge } from './left-by-purge.ts'
import type { PurgedTraces, TraceSummary } from './trace-results.ts'
import type { Gone, KeptCopy, UncapturedPath, Unprotected } from './unprotected-results.ts'

export type * from './archive-results.ts'
export type * from './run-results.ts'
export type * from './trace-results.ts'
export type * from './unprotected-results.ts'
export type * from './verify-results.ts'

/** How far a long operation is. `phase` is a verb form for people: "capturing", "restoring", "verifying". */
export interface Progress {
  phase: string
  files: number
  bytes: number
  totalFiles?: number
  totalBytes?: number
  /** Of a capture: what was found until now, directories included. */
  entries?: number
}

export interface PlannedChange {
  action: 'create' | 'delete' | 'replace' | 'metadata'
  path: Raw
  /** Of everything below, for directories. */
  files: number
}

export type LeftAlonePath = LeftAlone

export interface StillOpen {
  path: Raw
  processes: Running[]
}

export interface RestoreResult {
  /** What it went to; undefined for undo and redo across several. */
  snapshot: Snapshot | undefined
  dryRun: boolean
  changes: PlannedChange[]
  /** Files and empty directories. Where one takes the place of a directory, or is taken by one, that is no replacement. */
  files: { created: number; deleted: number; replaced: number; metadata: number }
  /** How many of those created and deleted are empty directories. */
  emptyDirs: number
  leftAlone: LeftAlonePath[]
  /** Directories that stay because files which are not captured live in them. */
  keptDirs: Raw[]
  /** Paths that stay because ignore rules hid them, in the snapshot or until now: how many, and the first hundred. */
  hidden: { count: number; paths: Raw[] }
  /** What was there in the wanted state, is not now, and cannot be brought back; of an operation that is undone, if it took that away. */
  gone: Gone
  /** Of a run that is taken back: what it did to what was not captured, and stays so. */
  unprotected: Unprotected
  /** Of a run that is taken back: what changed after it last opened it, and so may also hold somebody else's edit, or did when it was removed. */
  mixed: Raw[]
  /** Paths that stay because the snapshot did not capture them for another reason; written elsewhere (`to`): what is missing there. */
  uncaptured: UncapturedPath[]
  /** The state before, for `undo`; undefined for a dry run or when nothing had to change. */
  safety: Snapshot | undefined
  /** Edits that came in while the restore ran are kept here. */
  lateEdits: Snapshot | undefined
  operation: Operation | undefined
  /** What it replaced or removed while processes of a run, which go on, have it open for writing: they write to the old file. */
  stillOpen: StillOpen[]
  /** restore --to: where. */
  to?: string
  /** Of a dry run: which live runs it would stop first. */
  wouldStop?: string[]
}

export interface UndoResult {
  /** The operation that was undone or redone; as it is when that was only asked for. */
  operation: Operation
  dryRun: boolean
  restore: RestoreResult | undefined
  /** In words: "3 snapshots are back". */
  effect: string
}

/** Whoever asks gets the same objects: they are frozen. */
export interface LogNode {
  snapshot: Snapshot
  tags: string[]
  isHead: boolean
  /** Ids of the children that are not deleted. */
  children: string[]
  isLeaf: boolean
  /** The nearest ancestor that is not deleted. */
  shownParent: string | undefined
}

/** A run whose supervisor was killed: what `undo` would take back first. */
export interface InterruptedRun {
  run: Run
  /** Without a snapshot before it, or notes of what it changed before there was one, there is nothing to go back to. */
  isProtected: boolean
  /** Nothing was done since that `undo` takes back first. */
  isNext: boolean
  /** A path outside of the current subdirectory that is not as before it: then undoing it needs `all`. */
  changedOutside: Raw[]
}

export interface StatusResult {
  target: string
  timeline: string
  home: string
  backend: string
  head: Snapshot | undefined
  snapshots: number
  storeBytes: number
  /** Against HEAD; undefined when there is no snapshot yet, or HEAD cannot be read now. */
  changes: Change[] | undefined
  counts: ChangeCounts
  skipped: Skipped[]
  lastOperation: Operation | undefined
  /** A path outside of the current subdirectory that it changed: then undoing it, or redoing it, needs `all`. */
  lastChangedOutside: Raw[]
  writer: { pid: number; purpose: string } | undefined
  /** Runs that go on, in the order of their beginning. */
  running: Run[]
  /** Newest first. */
  interrupted: InterruptedRun[]
}

export interface HistoryVersion {
  snapshot: Snapshot
  status: 'new' | 'modified' | 'unchanged' | 'deleted' | 'unknown'
  /** unknown: why this snapshot cannot bring it back. */
  reason: UnknownReason | undefined
  size: number | undefined
  content: Id | undefined
  mode: number | undefined
}

export interface BeingTaken {
  /** The run whose process takes it. */
  run: string | undefined
}

export interface HistoryResult {
  path: Raw
  /** As it is on disk now; undefined when it does not exist, or that cannot be seen. */
  currentSize: number | undefined
  /** Now: versions are of all that is in it. */
  isDirectory: boolean
  /** A directory above it does not let this user look. */
  isHidden: boolean
  /** The last name under which snapshots have what a run moved away from here. */
  movedTo: Raw | undefined
  /** Where a filesystem keeps what snapshots did not capture. */
  kept: KeptCopy | undefined
  versions: HistoryVersion[]
}

export interface DiffResult {
  from: string
  to: string
  changes: Change[]
  /** Content for rendering: reads one side of a change; undefined when it is too large or not available. */
  content(change: Change, side: 'before' | 'after'): Buffer | undefined
}

/** A file or link as it was in a snapshot. */
export interface FileVersion {
  snapshot: Snapshot
  path: Raw
  entry: Entry
  /** Of a link: its target. */
  content: Buffer
}

export interface PruneDecision {
  snapshot: Snapshot
  keep: boolean
  /** Kept whatever the pools and --keep say; the rule is the kind: "pre-run", "tagged". */
  isPinned: boolean
  /** The rule that decided, for people: "manual", "beyond --keep 5". */
  rule: string
}

export interface PruneResult {
  dryRun: boolean
  decisions: PruneDecision[]
  /** Beyond what archives, or filesystems, keep: they go from there, and stay in the store. */
  leftToStore: LeftToStore[]
  operation: Operation | undefined
}

export interface GcResult {
  forgottenSnapshots: number
  /** Runs that ended more than 30 days ago, without a snapshot left, whose traces were removed. */
  forgottenTraces: number
  removedObjects: number
  /** Of each snapshot of a filesystem, or archive, that nothing needed any more: its backend; and how many are left, or may be. */
  removedKept: string[]
  stillKept: number
  freedBytes: number
  storeBytes: number
}

export interface Elsewhere {
  /** Or an operation that can be undone. */
  snapshot: string
  /** In the target, or in `target`. */
  path: Raw
  /** Another directory, as it is shown. */
  target?: string
}

export interface PurgeResult extends PurgedTraces {
  path: Raw
  snapshots: number
  versions: number
  /** Other paths that still hold the same bytes, and the same path in what a filesystem keeps of a directory around. */
  elsewhere: Elsewhere[]
  /** Of other directories: nobody could look into them. */
  unread: { snapshot: string; target: string }[]
  leftToStore: LeftByPurge[]
  /** Of those: somebody else had removed what was kept of it. */
  goneBefore: string[]
  /** What `mayBe` names is what the filesystem kept of it, or a copy of somebody: nobody can tell, so it stays. */
  mayBeLeft: { snapshot: string; backend: string; mayBe: string }[]
  freedBytes: number
}

/** Files that a run deleted or overwrote before any other snapshot had them. */
export interface Kept {
  files: number
  /** The snapshots that have them. */
  snapshots: string[]
}

export interface RunResult {
  /** undefined when nothing could be recorded (`unprotected`). */
  run: Run | undefined
  exitCode: number
  signal: string | undefined
  before: Snapshot | undefined
  after: Snapshot | undefined
  changes: Change[]
  counts: ChangeCounts
  /** Where the target directory was moved meanwhile, for people; undefined when it is where it was, or others than the run did it. */
  movedTo: string | undefined
  /** What the run took away although no snapshot has it. */
  gone: Gone
  /** What it changed or moved although no snapshot has it. */
  unprotected: Unprotected
  /** What its own ignore rules hide: no snapshot has it, and taking the run back leaves it. As many as of a restore. */
  hidden: RestoreResult['hidden']
  /** What it made and was too large to be captured, or is a mount or nested subvolume: the same holds. */
  uncaptured: RestoreResult['uncaptured']
  kept: Kept
  /** What was seen of it; undefined when it was neither traced nor watched. */
  trace: TraceSummary | undefined
  /** Who stopped it, if somebody did: "rollback snap_…", carried out when this is answered. */
  stopped?: string
  /** It failed and was taken back (`onFailure`). */
  takenBack?: RestoreResult
}

/** A version of savepoint.yaml that a run wrote, and that takes effect only when it is trusted. */
export interface TrustResult {
  /** Whether there was one. */
  untrusted: boolean
  dryRun: boolean
  /** What it takes away from the protection that holds without it, one phrase each. */
  weakens: string[]
}

export interface DoctorResult {
  checks: { name: string; state: 'ok' | 'warning' | 'problem'; detail: string; fix?: string }[]
  config: { path: string; present: boolean }[]
}
