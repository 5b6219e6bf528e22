/** What the verbs of this layer answer. Plain data. */
import type { Raw } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { LeftAlone } from '../targets/dir/hidden.ts'
import type { NotRestored } from './restore-trees.ts'

export interface RecordResult {
  /** The bundle. */
  output: string
  files: number
  blobs: number
  added: number
  modified: number
  deleted: number
  /** Attributes only, or another type. */
  otherwise: number
  skipped: number
  lostEvents: number
  /** Empty: it is complete. */
  incompleteBecause: string[]
  /** Where there was no room for all of it in the bundle: what `record --finish` writes elsewhere. */
  recording: string | undefined
  exitStatus: number | null
  signal: string | null
}

export interface BundleVerifyResult {
  files: number
  blobs: number
  bytes: number
  /** Whether the recording itself was. */
  complete: boolean
  /** Not all of very many. */
  problems: string[]
}

export interface BundleRestoreResult {
  side: 'before' | 'after'
  dryRun: boolean
  /** Paths are absolute. In place, of a directory that comes or goes as a whole, only that. */
  changes: { action: 'create' | 'delete' | 'replace' | 'metadata'; path: Raw }[]
  leftAlone: { path: Raw; why: LeftAlone['why'] | NotRestored }[]
  /** Directories that stay because others have put something into them. */
  keptDirs: Raw[]
  /** How many changed paths lie outside of where the command started, and stay as they are. */
  outside: number
  to: string | undefined
  /** The bundle that takes it back. */
  undo: string | undefined
  /** Nobody agreed. */
  cancelled?: boolean
}

export interface BundleImportResult {
  before: Snapshot
  after: Snapshot
  /** How many paths of the bundle lie in the target. */
  paths: number
  /** Those whose content the bundle does not have: they are as the live files are. */
  missing: Raw[]
}
