/** The engine's face to programs: one object per target, one method per verb. The CLI uses nothing else. */

import type { TracerName } from '../config/config.ts'
import type { BackendName } from '../model/backend-name.ts'
import type { Entry } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { NativeUsage, Operation, Run, Snapshot, SnapshotType, Turn } from '../model/snapshot.ts'
import type { Execution, LogEventKind } from '../model/trace.ts'
import type { Inherited } from '../tracers/inherited.ts'
import type { MakeStates } from './import-states.ts'
import type { LeftByPurge } from './left-by-purge.ts'
import type { Face } from './line-server.ts'
import type * as results from './results.ts'
import type { ServedTarget } from './served-target.ts'

export interface OpenOptions {
  /** Where to look from. Default: the process's current directory. */
  cwd?: string
  /** `dir:PATH` or a path. Default: the nearest directory at or above cwd that has a timeline. */
  target?: string
  /** May be relative. Default: $SAVEPOINT_HOME, which may not, or ~/.savepoint. */
  home?: string
  env?: NodeJS.ProcessEnv
  /** Makes a timeline for the target (cwd by default) when there is none. */
  create?: boolean
  /** To ask about a directory that has no timeline: as if its first snapshot were about to be taken. Nothing is stored. */
  provisional?: boolean
  /** For `gc` and `verify`, which concern all directories: where none is protected, they work all the same. */
  wholeStore?: boolean
  /** Allows $HOME and / as targets, and a target that was replaced. */
  force?: boolean
  /** Takes over the timeline of a target that was moved here: id or former path. */
  adopt?: string
  /** To take one more snapshot only: what filesystems keep of snapshots is read by whoever opens the timeline next, and not only to list. */
  leaveUnread?: boolean
  /** To list what there is: the first one that a filesystem keeps is left unread, which would take as long as a whole capture. */
  listsOnly?: boolean
  /** For `verify`: what is beyond `native_max` goes when that has looked, as it may be the only one that is whole. */
  leaveBeyond?: boolean
  /** What was interrupted is not completed here: that may take long (`isInterrupted`). */
  leaveInterrupted?: boolean
  /** An `undo` or `redo` that was interrupted is left to the `undo` or `redo` that is called next, which then means the same one. */
  leaveStep?: boolean
  /** Wins over the configuration. */
  backend?: BackendName
  /** To look or go back: a savepoint.yaml that cannot be read or is wrong, perhaps by what is to be undone, must not stop it. */
  withoutBrokenConfig?: boolean
  /** To read traces and events: what a live run has not written yet is written first. */
  upToDate?: boolean
  /** Rebuilds a store index that cannot be opened; for `verify --repair`. */
  repair?: boolean
  /** To free space or to go back: on a disk that is full to the last byte, gives up what the store keeps in reserve. */
  makeRoom?: boolean
  /**
   * The process ends after `close`, by `process.exit`. Databases then end with it as if it were killed, which they are made
   * for: closing would write their logs back, and the next process would begin new ones, each waiting for the disk.
   */
  untilExit?: boolean
  onProgress?: (progress: results.Progress) => void
  /**
   * One line for the user that is not an error: recovery, warnings, what config weakens. `isAlarm`: something that was promised
   * did not come about, such as the state at the end of a run that cannot be undone now.
   */
  onNotice?: (text: string, isAlarm?: boolean) => void
  signal?: AbortSignal
  /**
   * Asks for the line that is written to stderr when this process gets a signal while it waits for a program of a filesystem
   * (`zfs`, `btrfs`): `signal` is aborted only after that. '' is none.
   */
  signalNote?: (what: string, limitMs: number) => string
  /** From `true` to `false`, `signal` has no effect: what was begun will be completed. */
  onUnstoppable?: (isUnstoppable: boolean) => void
  now?: () => number
}

export interface SnapshotOptions {
  label?: string
  type?: SnapshotType
  run?: string
  /** Whose turn it is, for a snapshot that an agent's hook takes. */
  turn?: Turn
  /** Where HEAD has the same state, that is answered, and none is taken. */
  onlyIfChanged?: boolean
}

export interface RestoreOptions {
  /** Paths, as the user wrote them relative to cwd, to restrict it to. */
  paths?: string[]
  dryRun?: boolean
  /** Restores into this directory instead, which must not exist or be empty. */
  to?: string
  withoutGit?: boolean
  /** Goes on when the state before cannot be stored (disk full). */
  noSafety?: boolean
  /** Narrows to what this run changed. */
  run?: string
  /** Not only the current subdirectory. */
  all?: boolean
  /** A live run goes on, and is only held still meanwhile. From inside of it that is always so. Default: it is stopped. */
  keepRunning?: boolean
  /** A live run's command is started again afterwards. */
  restart?: boolean
  /** The filesystem goes back as a whole, and loses what it kept later. */
  native?: boolean
}

export interface UndoOptions {
  all?: boolean
  dryRun?: boolean
  /** As for a rollback. */
  keepRunning?: boolean
  restart?: boolean
}

export interface DiffOptions {
  from?: string
  to?: string
  paths?: string[]
}

export interface RunOptions {
  command: string[]
  /** Default: what the configuration says. One that does not work here is refused. */
  tracer?: TracerName
  /** Lets io_uring work inside, whose changes are not seen. */
  allowIoUring?: boolean
  /** Where the tracer would take them away, set-user-id programs keep their rights: nothing is traced, changes are watched. */
  allowSudo?: boolean
  /** What the command gets from whoever started this process, beyond the standard descriptors. Default: nothing. */
  inherited?: Inherited
  /** Starts it also when the state before cannot be captured, or nothing can be recorded at all; says so. */
  unprotected?: boolean
  /**
   * Called when the command is about to start. The state before is safe, or (`isPending`) is being captured while each
   * change of it waits.
   */
  onStart?: (run: Run | undefined, before: Snapshot | undefined, isPending?: boolean) => void
  /** Called right before the command is there: from then on keys that interrupt are its own, until then nothing is started. */
  onLaunch?: () => void
  /** Stops the command with all its processes when it is aborted; the run then ends as one that was stopped. */
  stop?: AbortSignal
  /** Makes who answers those that connect to the run's socket and ask for operations. */
  face?: (served: ServedTarget) => Face
  /** When the command fails: whether what it did is taken back. Default: it is kept. */
  onFailure?: 'keep' | 'rollback' | ((result: results.RunResult) => Promise<boolean>)
}

export interface EventsOptions {
  /** Which kinds; 'all' for all of them. Default: all but `command`. */
  kind?: readonly (LogEventKind | 'all')[] | undefined
  /** Only of this run. */
  run?: string
  /** How long ago (10m, 2h, 1d), a time in ISO 8601, a snapshot (what came after it) or a run (from its start on). */
  since?: string
  limit?: number
  /** Goes on from there: `next` of the page before, or `cursor` of an event. */
  cursor?: string
  /** Oldest first. */
  reverse?: boolean
}

export interface SubscribeOptions {
  signal: AbortSignal
  /** As of `events`. */
  kind?: readonly (LogEventKind | 'all')[] | undefined
  /** First what has happened since that event. */
  cursor?: string | undefined
}

export interface Savepoint {
  /** Absolute path of the target, for people. */
  readonly target: string
  readonly timeline: string
  /** Set when the target is not cwd itself: which ancestor was found. */
  readonly foundAbove: boolean
  /** cwd relative to the target ('' at its root): mutating verbs without paths are scoped to it unless `all`. */
  readonly subdirectory: Raw
  readonly config: import('../config/config.ts').Config

  snapshot(options?: SnapshotOptions): Promise<Snapshot>
  snapshots(options?: { run?: string }): Snapshot[]
  find(ref: string): Snapshot
  head(): Snapshot
  /** Whether somebody takes a snapshot at this moment. */
  beingTaken(): results.BeingTaken | undefined
  log(): results.LogNode[]
  branches(): results.LogNode[]
  /**
   * Of this object: as long as it stays the same, so do log, head, snapshots, branches, tags and operations. Undefined:
   * nobody can tell.
   */
  version(): string | undefined
  /**
   * Whether what is open is still what a newcomer would open: a repair or a backup may have put another file in its place, or
   * somebody has written since it was copied, which is how it is read where nothing can be written.
   */
  isInPlace(): boolean
  /** Whether something was interrupted that whoever opens the timeline now would complete. */
  isInterrupted(): boolean
  /** What a filesystem keeps of a snapshot, and what that takes; undefined when the store keeps it. May take a look at all its files. */
  nativeUsage(ref: string): NativeUsage | undefined
  /** Reads what filesystems keep of snapshots that others have taken since this was opened. */
  settle(): Promise<void>
  status(): Promise<results.StatusResult>
  diff(options?: DiffOptions): Promise<results.DiffResult>
  changes(): Promise<results.DiffResult>
  history(path: string): Promise<results.HistoryResult>
  coverage(path: string): Promise<results.CoverageResult>
  /** The same of several, in their order, with one look at the target. */
  coverages(paths: readonly string[]): Promise<results.CoverageResult[]>
  /** Mounts and nested subvolumes, which never belong to a snapshot of the directory around them. */
  mountsIn(ref: string): Raw[]
  /** What a snapshot changed against its parent. */
  snapshotChanges(ref: string): results.DiffResult
  /** What a snapshot knows of a path; undefined: nothing is there. */
  entry(ref: string, path: string): Entry | undefined
  /** A file in a snapshot: what is known of it, and its content. */
  file(ref: string, path: string): results.FileVersion
  /** Whether `exclude.keep` names a path (relative to the target): it may be secret, and faces do not show it unasked. */
  isKept(path: Raw): boolean
  /** The content of `file` alone. */
  read(ref: string, path: string): Buffer

  rollback(ref: string, options?: RestoreOptions): Promise<results.RestoreResult>
  revert(path: string, options?: { from?: string; dryRun?: boolean }): Promise<results.RestoreResult>
  /** Whether `undo` would stop a run that goes on and take that back; with `keepRunning`, what was done last. */
  undoStops(): boolean
  /** The run that this process belongs to, which may then do less: no purge, no gc, no prune. */
  ownRun(): string | undefined
  /** In a subdirectory an operation that reached beyond it is refused, unless `all`. */
  undo(options?: UndoOptions): Promise<results.UndoResult>
  redo(options?: { all?: boolean; dryRun?: boolean }): Promise<results.UndoResult>

  tags(): Map<string, string>
  /** Undefined when the tag is there already. */
  tag(name: string, ref?: string): Operation | undefined
  deleteTag(name: string): Operation
  delete(refs: string[]): Promise<Operation>
  compact(refs: string[], options?: { label?: string }): Promise<{ snapshot: Snapshot; operation: Operation }>
  prune(options?: { keep?: number; dryRun?: boolean; run?: string }): Promise<results.PruneResult>
  operations(): Operation[]
  runs(): results.ListedRun[]
  /** What a run executed; the newest run by default. */
  trace(run?: string): results.TraceResult
  /** Tells each execution of a run once, when it has ended, and returns when the run has. The newest run by default. */
  followTrace(
    run: string | undefined,
    onExecution: (execution: Execution, run: results.FollowedRun) => void,
    options?: { signal?: AbortSignal },
  ): Promise<void>
  /** Tells what happens in the timeline as it happens, until it is aborted. `following` comes first: from there on nothing is missed. */
  subscribe(onEvent: (event: results.TimelineEvent) => void, options: SubscribeOptions): Promise<void>
  /** The processes of this timeline's runs that are alive. */
  processes(): results.RunProcess[]
  /** Sends a signal to one of them, if it is the one that began then. */
  signalProcess(pid: number, options?: { start?: number; signal?: string }): results.RunProcess
  /** Which commands changed a path, newest first. */
  why(path: string, options?: { limit?: number }): results.WhyResult
  /** Everything that happened, as one ordered log, newest first; a page of a hundred by default. */
  events(options?: EventsOptions): results.EventsResult

  gc(): Promise<results.GcResult>
  verify(options?: { repair?: boolean }): Promise<results.VerifyResult>
  purge(path: string): Promise<results.PurgeResult>
  /** Snapshots, deleted ones included, that a filesystem keeps or that have an archive: a purge of the path leaves them to the store alone. */
  leftByPurge(path: string): LeftByPurge[]
  /** Hides a text in all recorded command lines. */
  purgeText(text: string): Promise<results.PurgedTraces>
  exportSnapshot(ref: string, file: string, options?: { withKept?: boolean }): Promise<results.ExportResult>
  /** For those who know states in part; see import-states.ts. */
  importStates(source: string, make: MakeStates): Promise<Snapshot[]>
  importArchive(file: string, options?: { label?: string; force?: boolean }): Promise<results.ImportResult>

  run(options: RunOptions): Promise<results.RunResult>
  /** Lets a version of savepoint.yaml take effect that a run wrote. */
  trust(options?: { dryRun?: boolean }): Promise<results.TrustResult>
  close(): void
}
