/** The library: `import { open } from 'savepoint'`. */
/** For faces that serve a target (src/api/). */
export { lineReader } from './engine/control-frames.ts'
export { withSocketPath } from './engine/control-place.ts'
export { errorFrame, parseObject, tooLong } from './engine/control-server.ts'
export * from './engine/daemon-place.ts'
export { doctor } from './engine/doctor.ts'
export { homeOfAccount } from './engine/home.ts'
export type { LeftByPurge } from './engine/left-by-purge.ts'
export * from './engine/line-server.ts'
export { open } from './engine/open.ts'
export { outputPipe } from './engine/output-pipe.ts'
export { runOf } from './engine/process-tree.ts'
export type * from './engine/results.ts'
export { runUnrecorded } from './engine/run-child.ts'
export type * from './engine/savepoint.ts'
export type { ServedTarget } from './engine/served-target.ts'
export { type ErrorCode, errorCatalogue, SavepointError } from './errors/errors.ts'
export type { Change, ChangeCounts, ChangeKind, Entry, EntryKind, UnknownReason } from './model/entry.ts'
export { idToHex } from './model/id.ts'
export { type Raw, rawFromShown, rawFromText, rawToBytes, showPath } from './model/raw-path.ts'
export type {
  NativeUsage,
  Operation,
  OperationKind,
  Run,
  Skipped,
  Snapshot,
  SnapshotType,
  Turn,
} from './model/snapshot.ts'
export {
  type EventKind,
  type Execution,
  type FileEvent,
  hasFailed,
  type LogEventKind,
  type SnapshotEvents,
} from './model/trace.ts'
export type * from './record/results.ts'
export { makeDirs } from './store/make-dirs.ts'
export type { Inherited } from './tracers/inherited.ts'
