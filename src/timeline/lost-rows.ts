/**
 * Snapshots that the database lost as a whole, because it is older than `snapshots.log` beside it: a backup or a sync left its
 * `-wal` out, or an older copy was put in its place. They are not known to be deleted, so nothing of them may be freed.
 */
import type { DatabaseSync } from 'node:sqlite'
import { inTransaction } from '../store/transaction.ts'
import type { LogRows } from './log-rows.ts'
import { neverKnown, type Row, readEndOfLog, readSnapshotLog } from './logged-rows.ts'
import { fillFromLog } from './salvage-timeline.ts'

export class LostRows {
  private readonly database: DatabaseSync
  private readonly file: string
  private readonly events: LogRows
  private readonly isInPlace: () => boolean

  /** `file`: snapshots.log. */
  constructor(database: DatabaseSync, file: string, events: LogRows, isInPlace: () => boolean) {
    this.database = database
    this.file = file
    this.events = events
    this.isInPlace = isInPlace
  }

  /** Reads the whole log. */
  ids(): string[] {
    return this.lostOf(readSnapshotLog(this.file).snapshots).map(({ id }) => String(id))
  }

  /** Whether the last snapshot in the log is one: costs next to nothing, and is not certain to find any. */
  hasSome(): boolean {
    return this.lostOf(readEndOfLog(this.file)).length > 0
  }

  /** Makes rows of them again, with what is said of tags and HEAD; returns how many. Called under the timeline's lock. */
  bringBack(): number {
    return inTransaction(this.database, () => {
      const told = readSnapshotLog(this.file)
      const lost = this.lostOf(told.snapshots)
      const found = fillFromLog(this.database, { ...told, snapshots: lost }, 'log')
      for (const { id, type, created_at } of found)
        this.events.add({
          ...{ kind: 'snapshot', what: 'taken', at: Number(created_at), run: undefined },
          ...{ ref: String(id), note: String(type) },
        })
      return found.length
    })
  }

  /** Of a copy that is older by now nothing can be said. */
  private lostOf(rows: readonly Row[]): Row[] {
    const lost = neverKnown(this.database, rows)
    return lost.length > 0 && this.isInPlace() ? lost : []
  }
}
