/** What `runs` answers. */
import type { Run } from '../model/snapshot.ts'

export interface ListedRun extends Run {
  /** Its supervisor was killed, and its end is not recorded yet. */
  isInterrupted: boolean
  /** The run that was stopped for a rollback and of which this is the new start. */
  continues?: string
  /** Unless it stands. */
  takenBack?: RunTakenBack
}

/** Of a run, or of the one that it was started in. */
export interface RunTakenBack {
  operation: string
  kind: 'undo' | 'rollback'
  /** It was asked for some paths only, or without `.git`. */
  partly: boolean
}
