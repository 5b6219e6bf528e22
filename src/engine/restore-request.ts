/** What `rollback`, `revert`, `undo` and `redo` ask of a restore. */
import type { Id } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { OperationKind, Snapshot } from '../model/snapshot.ts'
import type { Span } from '../targets/dir/others-paths.ts'
import type { Live } from './capture-live.ts'
import type { RestoreResult } from './results.ts'
import type { Doer } from './unprotected.ts'

export interface RestoreRequest {
  /** Root trees. */
  wanted: Id
  /** The whole tree of the target where `wanted` has only what is to be written (lent-state.ts). */
  lent?: Id
  base?: Id
  /** What others did while the operation that is undone went on. */
  others?: readonly Span[]
  /** Of a run that still goes on: both of these, by what is there now. */
  soFar?: (live: Live) => Promise<Pick<RestoreRequest, 'base' | 'others' | 'doer'>>
  scope?: readonly Raw[]
  withoutGit?: boolean
  dryRun?: boolean
  noSafety?: boolean
  kind: OperationKind
  /** In words, for the operation. */
  summary: string
  snapshot?: Snapshot
  /** HEAD afterwards; undefined leaves it where the safety snapshot put it back to. */
  headAfter?: string
  /** The same, if the state then is exactly that of this snapshot. */
  headIfSame?: string
  /** Called when nothing has to change, before anything is noted of it. */
  onNothing?: (result: RestoreResult) => void
  detail?: Record<string, unknown>
  /** undo and redo mark the operation they walk instead of adding one that can itself be undone. */
  isStep?: boolean
  /** Of an undo: the run that is taken back. What it did to what no snapshot has is reported. */
  doer?: Doer
  /** Something that the operation changed was purged since. */
  hasPurged?: boolean
  /** The target directory was gone and has just been made: everything about it is ours to set. */
  remade?: boolean
}
