/** What is said of paths that no snapshot has, and that something happened to. */
import type { Raw } from '../model/raw-path.ts'
import type { Skipped } from '../model/snapshot.ts'

/** Paths that were not captured (ignored, too large, unreadable…) and do not exist any more: how many, and the first hundred. */
export interface Gone {
  count: number
  paths: GonePath[]
}

export interface GonePath extends Skipped {
  /** The newest snapshot that has it, of a time when it was captured. */
  snapshot: string | undefined
}

/** Paths that were not captured and that a run changed or moved: how many, and the first hundred. */
export interface Unprotected {
  count: number
  paths: UnprotectedPath[]
}

export interface UnprotectedPath extends Skipped {
  /** Where it was moved to, relative to the target, or absolute outside of it; undefined: it was changed. */
  to: Raw | undefined
}
