/** What is said of whether paths are protected, and of those that no snapshot has and that something happened to. */

import type { NativeName } from '../backends/native-backend.ts'
import type { UnknownReason } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import type { Skipped, Snapshot } from '../model/snapshot.ts'

export interface CoverageResult {
  path: Raw
  /** Whether what is on disk now could be brought back after the next snapshot; of a directory, but for `leftOut`. */
  covered: boolean
  /** undefined: a directory above it does not let this user look. */
  exists: boolean | undefined
  /** `disabled`: the configuration turns snapshots off. */
  reason: UnknownReason | 'absent' | 'disabled' | undefined
  /** What decides: "src/.gitignore:3 *.o". */
  rule: string | undefined
  /** What lies below a directory and snapshots do not capture. */
  leftOut: LeftOut
  /** The newest snapshot that has what is on disk, but for `leftOut`; where none does, the newest that has a version of it. */
  latest: Snapshot | undefined
  /** How many have one. */
  versions: number
  /** How many more only a filesystem keeps until now: whether they have one is not known, and they are not counted. */
  notRead: number
  /** Where a filesystem keeps a snapshot, all that was there is in it: these may have it, although nothing of it was captured. */
  mayBeIn: Snapshot[]
  /** Where it is, in the newest of those. */
  kept: KeptCopy | undefined
  /** Whether `latest` has what is on disk, but for `leftOut`. */
  isUpToDate: boolean
  /** Whether `latest` has exactly what is on disk: nothing of it would be lost. */
  current: boolean
  /** No snapshot was taken of this directory yet: the answer is about the first one. */
  isBeforeFirst: boolean
}

/** How many paths, and the first of them. A directory that is left out whole is one. */
export interface LeftOut {
  count: number
  paths: Skipped[]
}

/** Paths that were not captured (ignored, too large, unreadable…) and do not exist any more: how many, and the first hundred. */
export interface Gone {
  count: number
  paths: GonePath[]
}

export interface GonePath extends Skipped {
  /** The newest snapshot that has it, of a time when it was captured. */
  snapshot: string | undefined
  kept: KeptCopy | undefined
}

/** What was not captured, in the newest state that a filesystem keeps and has it: there it can be copied from. */
export interface KeptCopy {
  snapshot: string
  backend: NativeName
  /** The state, for people: a path, or a name. */
  where: string
  /** Where it lies; undefined: the filesystem shows that only when it is asked to (a clone of a ZFS snapshot, a mount). */
  file: Raw | undefined
}

/** What stays as it is, as it was not captured. */
export interface UncapturedPath extends Skipped {
  /** As it was in the wanted state, or before, where it is not so now. */
  kept?: KeptCopy | undefined
}

/** Paths that were not captured and that a run changed or moved: how many, and the first hundred. */
export interface Unprotected {
  count: number
  paths: UnprotectedPath[]
}

export interface ChangedPath extends Skipped {
  /** Where it was moved to, relative to the target, or absolute outside of it; undefined: it was changed. */
  to: Raw | undefined
}

export interface UnprotectedPath extends ChangedPath {
  /** Of one that was changed: as it was before the run. */
  kept: KeptCopy | undefined
}
