/** What the verbs of this layer answer. Plain data. */

export interface RecordResult {
  /** The bundle. */
  output: string
  files: number
  blobs: number
  added: number
  modified: number
  deleted: number
  skipped: number
  lostEvents: number
  /** Empty: it is complete. */
  incompleteBecause: string[]
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
