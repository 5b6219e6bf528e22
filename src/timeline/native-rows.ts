/** Rows of snapshots that a filesystem keeps: which of them nobody has read yet, and what becomes of them. */
import type { DatabaseSync } from 'node:sqlite'
import { idToBytes } from '../model/id.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import type { SnapshotLog } from './snapshot-log.ts'
import { MARK, SKIPPED_LISTED, toSnapshot } from './timeline-rows.ts'
import { UntoldRows } from './untold-rows.ts'

export type ReadState = Pick<
  Snapshot,
  'root' | 'files' | 'bytes' | 'sizeDelta' | 'skippedCount' | 'skipped' | 'unsettled'
>

/** Notes a change in the log; inside a transaction that is written after it. */
type Logged = (note: (log: SnapshotLog) => void) => void

export class NativeRows {
  /** Of those that were told without a parent that was not read yet. */
  readonly untold: UntoldRows
  private readonly database: DatabaseSync
  private readonly logged: Logged

  constructor(database: DatabaseSync, logged: Logged) {
    this.database = database
    this.logged = logged
    this.untold = new UntoldRows(database)
  }

  /** In order of creation. */
  unread(): Snapshot[] {
    const select = 'SELECT * FROM snapshots WHERE native_ref IS NOT NULL AND root = ? ORDER BY seq'
    return this.database.prepare(select).all(idToBytes(UNREAD_ROOT)).map(toSnapshot)
  }

  /** All that something is kept in. */
  places(): string[] {
    const select = `SELECT DISTINCT json_extract(native_ref, '$.place') AS place FROM snapshots WHERE native_ref IS NOT NULL`
    return this.database
      .prepare(select)
      .all()
      .map(row => String(row.place))
  }

  /** What it holds is in the store now. */
  setRead(id: string, read: ReadState): void {
    const update = this.database.prepare(
      'UPDATE snapshots SET root = ?, files = ?, bytes = ?, size_delta = ?, skipped_count = ?, skipped = ?, unsettled = ? WHERE id = ?',
    )
    update.run(
      idToBytes(read.root),
      read.files,
      read.bytes,
      read.sizeDelta,
      read.skippedCount,
      JSON.stringify(read.skipped.slice(0, SKIPPED_LISTED)),
      read.unsettled ? MARK.unsettled : 0,
      id,
    )
    this.logged(log => log.changed(id))
  }

  /** Of all that name the same state. */
  setRef(before: string, after: string): void {
    this.database.prepare('UPDATE snapshots SET native_ref = ? WHERE native_ref = ?').run(after, before)
    this.logged(log => log.stale())
  }

  /** More is known of a state. */
  setMarked(before: string, after: string): void {
    const named = this.database.prepare('SELECT id FROM snapshots WHERE native_ref = ?').all(before)
    this.database.prepare('UPDATE snapshots SET native_ref = ? WHERE native_ref = ?').run(after, before)
    for (const { id } of named) this.logged(log => log.changed(String(id)))
  }

  /** From now on the store alone keeps it. */
  setStored(id: string): void {
    this.database.prepare("UPDATE snapshots SET backend = 'cas', native_ref = NULL WHERE id = ?").run(id)
    this.logged(log => log.stale())
  }
}
