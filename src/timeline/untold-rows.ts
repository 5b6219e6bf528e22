/** Rows of events that a snapshot alone has found: no process is known that did it. */
import type { DatabaseSync } from 'node:sqlite'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { NewEvent } from './event-rows.ts'

export class UntoldRows {
  private readonly database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.database = database
  }

  /** By their path, the ids of those that came with this snapshot, and with no other one. */
  ofSnapshot(id: string): Map<Raw, number> {
    // Those of another one may be in its range. Where both may have found them, nobody knows.
    const before = `SELECT max(CASE WHEN other.stop_event < own.stop_event OR other.start_event < other.stop_event THEN other.stop_event END)
      FROM snapshot_events AS other WHERE other.snapshot <> own.snapshot AND other.stop_event <= own.stop_event`
    const sql = `SELECT id, path FROM fs_events, snapshot_events AS own WHERE snapshot = ? AND run = '' AND op <> 'restore'
      AND id > max(start_event, coalesce((${before}), 0)) AND id <= stop_event ORDER BY id`
    const rows = this.database.prepare(sql).all(id)
    return new Map(rows.map(({ id, path }) => [rawFromBytes(path as Uint8Array), id as number]))
  }

  /** What it says was compared with another state. */
  set(id: number, { op, existed, directory, size }: NewEvent): void {
    const sql = 'UPDATE fs_events SET op = ?, existed = ?, directory = ?, size = ? WHERE id = ?'
    this.database.prepare(sql).run(op, existed ? 1 : 0, directory ? 1 : 0, size ?? null, id)
  }

  forget(ids: Iterable<number>): void {
    const forget = this.database.prepare('DELETE FROM fs_events WHERE id = ?')
    for (const id of ids) forget.run(id)
  }

  setUnlisted(snapshot: string, unlisted: number): void {
    this.database.prepare('UPDATE snapshot_events SET unlisted = ? WHERE snapshot = ?').run(unlisted, snapshot)
  }
}
