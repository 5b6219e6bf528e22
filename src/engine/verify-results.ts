/** What `verify` answers. */

export interface VerifyProblem {
  what: string
  snapshots: string[]
  paths: string[]
}

/** What a filesystem keeps of a directory, and the history of that does not know. */
export interface StrayResult {
  /** Which directory, as it is shown. */
  target: string
  backend: string
  /** Of a snapshot, as a rule. */
  name: string
  /** A path, or how the filesystem calls it. */
  where: string
  /** The command that deletes it, for who does not need it. */
  byHand: string
}

export interface VerifyResult {
  objects: number
  bytes: number
  /** All that the store has: of this directory, of others, and those that are deleted but can still come back. */
  snapshots: number
  here: number
  deleted: number
  /** Of which the filesystem keeps all that there is: nothing of it is checked. */
  unread: number
  problems: VerifyProblem[]
  /** No problem of the store: they may be all that is left of a history. */
  strays: StrayResult[]
  repaired: string[]
  /** Whether a repair would mend some of the problems. */
  isRepairable: boolean
}
