/** What `export` and `import` say of what they did. */
import type { Raw } from '../model/raw-path.ts'
import type { Skipped, Snapshot } from '../model/snapshot.ts'

export interface ExportResult {
  file: string
  snapshot: Snapshot
  files: number
  bytes: number
  leftOut: Raw[]
  /** Of a PARTIAL snapshot: what is not in it. */
  uncaptured: Skipped[]
}

export interface ImportResult {
  snapshot: Snapshot
  files: number
}
