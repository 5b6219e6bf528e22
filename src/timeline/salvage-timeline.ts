/**
 * Makes a timeline.sqlite that is damaged usable again: what can still be read of it goes into a new one that takes its
 * place. The damaged file is never deleted: it stays beside the new one under another name, with its log.
 */
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DatabaseSync as Database, SQLOutputValue } from 'node:sqlite'
import { openDatabase } from '../store/database.ts'
import { makePrivate, syncDirectory } from '../store/durable.ts'
import { DatabaseSync } from '../store/sqlite.ts'
import { isSoundSnapshot, type Logged, logBeside, type Row, readSnapshotLog } from './logged-rows.ts'
import { toOperation, toRun } from './timeline-rows.ts'
import { timelineSchema } from './timeline-schema.ts'

const PAGE_BYTES = 4096
/** Where the first page of a SQLite file says how many there are. */
const PAGE_COUNT_AT = 28

interface Table {
  name: string
  key: string
  /** Throws, or says false, when a row is not what it should be: SQLite does not notice every damage. */
  isSound(row: Row): boolean
}

const snapshotsTable: Table = { name: 'snapshots', key: 'seq', isSound: isSoundSnapshot }

const tables: Table[] = [
  { name: 'meta', key: 'key', isSound: row => typeof row.value === 'string' },
  snapshotsTable,
  { name: 'tags', key: 'name', isSound: row => typeof row.snapshot === 'string' },
  { name: 'runs', key: 'id', isSound: row => Array.isArray(toRun(row).command) },
  { name: 'operations', key: 'seq', isSound: row => toOperation(row).id.startsWith('op_') },
]

export interface Salvaged {
  /** Of them, `logged` were found in snapshots.log alone. */
  snapshots: number
  logged: number
  /** Where the damaged file is now. */
  aside: string
}

/** Nobody else may use it meanwhile. After a crash it is as it was, or done; it may be called again. */
export function salvageTimeline(file: string): Salvaged {
  const aside = setAside(file)
  const work = mkdtempSync(join(dirname(file), 'salvage-'))
  try {
    const made = join(work, 'made.sqlite')
    openDatabase(made, timelineSchema, '').database.close()
    const source = openDamaged(aside, work, made)
    const { database } = openDatabase(made, timelineSchema, '')
    const read = source ? fill(database, source) : 0
    source?.close()
    const logged = fillFromLog(database, readSnapshotLog(logBeside(file)), 'database').length
    findHead(database)
    // The last to close it takes its log in.
    database.close()
    renameSync(made, file)
    syncDirectory(dirname(file))
    return { snapshots: read + logged, logged, aside }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Damaged ones that were set aside in this directory: what they alone know of must not be freed. */
export const salvagedIn = (directory: string): string[] =>
  readdirSync(directory)
    .filter(name => /^timeline\.sqlite\.damaged(-\d+)?$/.test(name))
    .map(name => join(directory, name))

/** A second name, so that the first one never leads to nothing. The log goes with it: it must not meet the new file. */
function setAside(file: string): string {
  const inode = statSync(file, { throwIfNoEntry: false })?.ino
  const linked = salvagedIn(dirname(file)).find(name => statSync(name).ino === inode)
  const aside = linked ?? freeName(file)
  // Of one that is gone, an empty file says that snapshots are unknown.
  if (inode === undefined) makePrivate(aside)
  else if (!linked) linkOrCopy(file, aside)
  if (existsSync(`${file}-wal`)) renameSync(`${file}-wal`, `${aside}-wal`)
  rmSync(`${file}-shm`, { force: true })
  syncDirectory(dirname(file))
  return aside
}

function freeName(file: string): string {
  for (let number = 1; ; number++) {
    const name = `${file}.damaged${number === 1 ? '' : `-${number}`}`
    if (!existsSync(name)) return name
  }
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}

/** A copy, because reading may write to the log. undefined when it is no database, not even with a sound first page. */
function openDamaged(aside: string, work: string, sound: string): Database | undefined {
  const name = basename(aside)
  const copy = join(work, name)
  if (existsSync(`${aside}-wal`)) copyFileSync(`${aside}-wal`, `${copy}-wal`)
  const bytes = readFileSync(aside)
  const plain = openIfDatabase(copy, bytes)
  if (plain) return plain
  // All tables are made at once and never changed: the first page, which says where they are, is always the same.
  readFileSync(sound).copy(bytes, 0, 0, PAGE_BYTES)
  if (bytes.length > PAGE_BYTES) bytes.writeUInt32BE(Math.floor(bytes.length / PAGE_BYTES), PAGE_COUNT_AT)
  return openIfDatabase(copy, bytes)
}

function openIfDatabase(file: string, bytes: Buffer): Database | undefined {
  writeFileSync(file, bytes)
  const database = new DatabaseSync(file)
  try {
    const known = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'snapshots'").get()
    if (known) return database
  } catch {}
  database.close()
  return undefined
}

/** Returns how many snapshots were found. */
function fill(into: Database, from: Database): number {
  let snapshots = 0
  for (const table of tables) {
    for (const row of readRows(from, table)) {
      if (insert(into, table, row) && table.name === 'snapshots') snapshots++
    }
  }
  // Traces and events are not saved. What says that they are complete, or where they go on, is then not true any more.
  into.exec("DELETE FROM meta WHERE key IN ('events_from', 'event_log') OR key LIKE 'trace:%'")
  return snapshots
}

/** What the database does not know of this, or not any more; returns the rows. `newer`: whose tags and HEAD count, if both have them. */
export function fillFromLog(into: Database, { snapshots, tags, head }: Logged, newer: 'database' | 'log'): Row[] {
  const known = into.prepare('SELECT 1 FROM snapshots WHERE id = ?')
  const found = snapshots.filter(row => {
    if (known.get(row.id!)) return false
    const { seq, ...rest } = row
    return insert(into, snapshotsTable, row) || insert(into, snapshotsTable, rest)
  })
  if (found.length === 0) return []
  const or = newer === 'log' ? 'REPLACE' : 'IGNORE'
  const tag = into.prepare(`INSERT OR ${or} INTO tags VALUES (?, ?, 0)`)
  for (const [name, on] of tags) if (known.get(on)) tag.run(name, on)
  if (head !== undefined && known.get(head)) into.prepare(`INSERT OR ${or} INTO meta VALUES ('head', ?)`).run(head)
  return found
}

/** Where the live state descends from may be lost: then from the newest. */
function findHead(into: Database): void {
  into.exec(`
    INSERT INTO meta SELECT 'head', id FROM snapshots WHERE deleted_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM meta JOIN snapshots ON snapshots.id = value WHERE key = 'head')
      ORDER BY seq DESC LIMIT 1
      ON CONFLICT (key) DO UPDATE SET value = excluded.value`)
}

/** From both ends to the damage, and in between what can be found by its number. */
function readRows(database: Database, { name, key }: Table): Iterable<Row> {
  const rows = new Map<SQLOutputValue, Row>()
  const read = (order: 'ASC' | 'DESC'): SQLOutputValue | undefined => {
    let last: SQLOutputValue | undefined
    try {
      for (const row of database.prepare(`SELECT * FROM ${name} ORDER BY ${key} ${order}`).iterate()) {
        last = row[key]!
        rows.set(last, row)
      }
      return undefined
    } catch {
      return last ?? 0
    }
  }
  const from = read('ASC')
  const to = from === undefined ? undefined : read('DESC')
  if (key === 'seq' && typeof from === 'number' && typeof to === 'number') {
    for (let seq = from + 1; seq < to; seq++) {
      try {
        const row = database.prepare(`SELECT * FROM ${name} WHERE seq = ?`).get(seq)
        if (row) rows.set(seq, row)
      } catch {}
    }
  }
  return rows.values()
}

function insert(into: Database, { name, isSound }: Table, row: Row): boolean {
  try {
    if (!isSound(row)) return false
    const columns = Object.keys(row)
    const marks = columns.map(() => '?').join(', ')
    const statement = into.prepare(`INSERT OR IGNORE INTO ${name} (${columns.join(', ')}) VALUES (${marks})`)
    return statement.run(...Object.values(row)).changes === 1
  } catch {
    return false
  }
}
