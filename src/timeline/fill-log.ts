/**
 * Makes the log of events of what other tables tell: for a timeline that is older than the log, or was saved from a damaged
 * file. Then nothing but times says what came before what.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { randomHex } from '../model/id.ts'

/** In `meta`: what cursors of this log are known by. */
const LOG_ID = 'event_log'
const LOG_ID_BYTES = 4

/** Undefined when there is no log yet. */
export const logIdOf = (database: DatabaseSync): string | undefined =>
  database.prepare('SELECT value FROM meta WHERE key = ?').get(LOG_ID)?.value as string | undefined

export const hasLog = (database: DatabaseSync): boolean => logIdOf(database) !== undefined

/** Everything that is no event of a file, as rows of the log, by time. */
const known = `
  SELECT created_at AS at, 'snapshot' AS kind, 'taken' AS what, run, id AS ref, type AS note FROM snapshots
  UNION ALL SELECT at, 'operation', kind, CASE kind WHEN 'run' THEN json_extract(detail, '$.run') END, id, NULL FROM operations
  UNION ALL SELECT started_at, 'run', 'started', id, NULL, NULL FROM runs
  UNION ALL SELECT ended_at, 'run', 'ended', id, NULL, NULL FROM runs WHERE ended_at IS NOT NULL
  UNION ALL SELECT at, 'command', 'started', run, CAST(id AS TEXT), NULL FROM exec_events
  UNION ALL SELECT ended_at, 'command', 'ended', run, CAST(id AS TEXT), NULL FROM exec_events WHERE ended_at IS NOT NULL
  ORDER BY at`

/** In a transaction of the caller's. `into` may be another database, where `from` can only be read. */
export function fillLog(from: DatabaseSync, into: DatabaseSync): void {
  const insert = into.prepare(
    'INSERT INTO event_log (after, kind, what, at, run, ref, note) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  let after = 0
  const rows = from.prepare(known).all() as Record<string, SQLOutputValue>[]
  let next = 0
  // Of what happened at the same time, files come first: they led to the rest.
  const addUntil = (time: number) => {
    for (; next < rows.length && (rows[next]!.at as number) < time; next++) {
      const { kind, what, at, run, ref, note } = rows[next]!
      insert.run(after, kind!, what!, at!, run!, ref!, note!)
    }
  }
  for (const { id, at } of from.prepare('SELECT id, at FROM fs_events ORDER BY id').iterate()) {
    addUntil(at as number)
    after = id as number
  }
  addUntil(Number.POSITIVE_INFINITY)
  into.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(LOG_ID, randomHex(LOG_ID_BYTES))
}
