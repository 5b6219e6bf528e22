/** timeline.sqlite: the schema, its version, and what brings an older file to it. */
import type { DatabaseSync } from 'node:sqlite'
import { SavepointError } from '../errors/errors.ts'
import { makeDatabase } from '../store/database.ts'
import { inTransaction } from '../store/transaction.ts'
import { fillLog, hasLog } from './fill-log.ts'

const TIMELINE_VERSION = '1'

/** The same in `kindOfEvent` (model/trace.ts), for files that can only be read and are older than this column. */
const kind = `kind TEXT AS (CASE
      WHEN op = 'restore' THEN 'restored'
      WHEN op = 'delete' OR (op = 'rename' AND to_path IS NULL) THEN 'deleted'
      WHEN op IN ('create', 'link') OR (op = 'write' AND existed = 0) OR (op = 'rename' AND path IS NULL) THEN 'created'
      WHEN op IN ('rename', 'exchange') THEN 'renamed'
      ELSE 'modified' END) VIRTUAL`

export const timelineSchema = `
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS snapshots (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, parent TEXT, type TEXT NOT NULL, label TEXT,
    created_at INTEGER NOT NULL, root BLOB NOT NULL, run TEXT, command TEXT, backend TEXT NOT NULL, native_ref TEXT,
    size_delta INTEGER NOT NULL, added INTEGER NOT NULL, modified INTEGER NOT NULL, deleted INTEGER NOT NULL,
    files INTEGER NOT NULL, bytes INTEGER NOT NULL, skipped_count INTEGER NOT NULL, skipped TEXT,
    unsettled INTEGER NOT NULL, deleted_at INTEGER, turn TEXT
  );
  CREATE INDEX IF NOT EXISTS snapshots_run ON snapshots (run);
  CREATE INDEX IF NOT EXISTS snapshots_native ON snapshots (root) WHERE native_ref IS NOT NULL;
  CREATE TABLE IF NOT EXISTS tags (name TEXT PRIMARY KEY, snapshot TEXT NOT NULL, created_at INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, command TEXT NOT NULL, cwd TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER,
    exit_code INTEGER, signal TEXT, pid INTEGER, before TEXT, after TEXT
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS operations (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, at INTEGER NOT NULL,
    state TEXT NOT NULL, summary TEXT NOT NULL, before TEXT, after TEXT, head_before TEXT, head_after TEXT,
    detail TEXT NOT NULL, rule TEXT
  );
  CREATE TABLE IF NOT EXISTS exec_events (
    run TEXT NOT NULL, id INTEGER NOT NULL, at REAL NOT NULL, pid INTEGER NOT NULL, ppid INTEGER NOT NULL,
    parent INTEGER NOT NULL, depth INTEGER NOT NULL, replaces INTEGER, program BLOB NOT NULL, argv BLOB NOT NULL,
    truncated INTEGER NOT NULL, cwd BLOB NOT NULL, ended_at REAL, exit_code INTEGER, signal TEXT, note TEXT,
    PRIMARY KEY (run, id)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS fs_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, at REAL NOT NULL, op TEXT NOT NULL, path BLOB, to_path BLOB,
    exec INTEGER NOT NULL, pid INTEGER NOT NULL, existed INTEGER NOT NULL, directory INTEGER NOT NULL,
    size INTEGER, ${kind}, emptied INTEGER
  );
  CREATE INDEX IF NOT EXISTS fs_events_path ON fs_events (path);
  CREATE INDEX IF NOT EXISTS fs_events_to ON fs_events (to_path) WHERE to_path IS NOT NULL;
  CREATE TABLE IF NOT EXISTS snapshot_events (
    snapshot TEXT PRIMARY KEY, origin TEXT NOT NULL, files INTEGER NOT NULL, start_event INTEGER NOT NULL,
    stop_event INTEGER NOT NULL, unlisted INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS event_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, after INTEGER NOT NULL, kind TEXT NOT NULL, what TEXT NOT NULL, at REAL NOT NULL,
    run TEXT, ref TEXT, note TEXT
  );
  CREATE INDEX IF NOT EXISTS event_log_kind ON event_log (kind);
  CREATE INDEX IF NOT EXISTS event_log_run ON event_log (run);
  CREATE INDEX IF NOT EXISTS fs_events_run ON fs_events (run);
`

/** What came later. Columns are added at the end, so that an older program reads and writes the file as before. */
export function bringUpToDate(database: DatabaseSync): void {
  if (isUpToDate(database)) return
  inTransaction(database, () => {
    // Another process may have come first.
    if (isUpToDate(database)) return
    if (!hasColumn(database, 'fs_events', 'kind'))
      database.exec(`ALTER TABLE fs_events ADD COLUMN size INTEGER; ALTER TABLE fs_events ADD COLUMN ${kind}`)
    if (!hasColumn(database, 'snapshots', 'turn')) database.exec('ALTER TABLE snapshots ADD COLUMN turn TEXT')
    if (!hasLog(database)) fillLog(database, database)
    if (!hasColumn(database, 'fs_events', 'emptied')) database.exec('ALTER TABLE fs_events ADD COLUMN emptied INTEGER')
  })
}

/** What came last of all that there is to bring; and the log, which a new file does not have yet. */
const isUpToDate = (database: DatabaseSync): boolean => hasLog(database) && hasColumn(database, 'fs_events', 'emptied')

const hasColumn = (database: DatabaseSync, table: string, column: string): boolean =>
  database.prepare('SELECT 1 FROM pragma_table_xinfo(?) WHERE name = ?').get(table, column) !== undefined

/** Of a new file it is noted. */
export function checkVersion(database: DatabaseSync): void {
  const version = database.prepare("SELECT value FROM meta WHERE key = 'version'").get()?.value
  if (version === undefined) database.prepare("INSERT OR IGNORE INTO meta VALUES ('version', ?)").run(TIMELINE_VERSION)
  else if (version !== TIMELINE_VERSION) {
    const message = `Cannot open the timeline: its version is ${version}, this Savepoint knows ${TIMELINE_VERSION}`
    throw new SavepointError('store.format', message, { hint: 'Use a newer version of Savepoint' })
  }
}

/** Makes the file of a new timeline, with all that it would get when it is first opened. */
export const makeTimeline = (file: string): void =>
  makeDatabase(file, timelineSchema, database => {
    bringUpToDate(database)
    checkVersion(database)
  })
