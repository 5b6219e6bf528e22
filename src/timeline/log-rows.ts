/**
 * The rows of the log of events: everything that happened in the timeline, in the order in which it was written down, whatever
 * the clock said. Events of files have their own table and count (event-rows.ts), and are many; so each row here says which
 * of them was the newest when it was written, and the two make one order. Rows only name what they are about: what is purged
 * or forgotten there is not to be read here.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { DatabaseSync as Database } from '../store/sqlite.ts'
import { fillLog, hasLog, logIdOf } from './fill-log.ts'

const logKinds = ['snapshot', 'operation', 'run', 'command'] as const
export type LogKind = (typeof logKinds)[number]

export interface NewLogRow {
  kind: LogKind
  /** What became of a snapshot, a run or a command; the kind of an operation. */
  what: string
  at: number
  run: string | undefined
  /** The id of a snapshot or an operation, the number of an execution. */
  ref?: string
  /** The type of a snapshot, or the rule that removed it; how many events of a run were lost. */
  note?: string
}

export interface LogRow extends NewLogRow {
  position: Position
}

/** Where an event stands: after the event of a file with this id, as the row with this number; 0: it is that event itself. */
export interface Position {
  file: number
  seq: number
}

export const comparePositions = (a: Position, b: Position): number => a.file - b.file || a.seq - b.seq

/** Oldest first, or newest first. */
export type Direction = 'forward' | 'backward'

/** Which rows, in which direction, from where on. */
export interface Reading {
  run: string | undefined
  direction: Direction
  /** Beyond this one; undefined: from the end where it begins. */
  from: Position | undefined
}

export class LogRows {
  private readonly source: DatabaseSync
  private filled: DatabaseSync | undefined

  constructor(database: DatabaseSync) {
    this.source = database
  }

  /** Changes with the log: a cursor of another one means nothing here. */
  get id(): string {
    return logIdOf(this.database)!
  }

  add(row: NewLogRow): void {
    logWriter(this.source)(row)
  }

  /** Where the newest event stands. */
  newest(): Position {
    const file = this.source.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'fs_events'").get()
    const row = this.database.prepare('SELECT max(seq) AS seq FROM event_log').get()
    return { file: (file?.seq as number | undefined) ?? 0, seq: (row?.seq as number | null) ?? 0 }
  }

  /** One by one, as they are asked for. */
  *read(kind: LogKind, { run, direction, from }: Reading): Generator<LogRow> {
    const isForward = direction === 'forward'
    const where = ['seq > ? AND seq <= ?']
    const edge = from && (from.seq > 0 ? from.seq : this.lastBefore(from.file))
    // Of an event of a file, the row before it is still to come when one goes back.
    const below = edge !== undefined && from!.seq > 0 ? edge - 1 : edge
    const values: SQLInputValue[] = isForward ? [edge ?? 0, LAST] : [0, below ?? LAST]
    if (run === undefined) where.push('kind = ?')
    else where.push('run = ? AND +kind = ?')
    values.push(...(run === undefined ? [kind] : [run, kind]))
    const sql = `SELECT * FROM event_log WHERE ${where.join(' AND ')} ORDER BY seq ${isForward ? 'ASC' : 'DESC'}`
    for (const row of this.database.prepare(sql).iterate(...values)) yield toLogRow(row)
  }

  /** Where it stands that a run began, or a snapshot was taken. */
  find(kind: LogKind, what: { run?: string; ref?: string }): Position | undefined {
    const [column, value] = what.ref === undefined ? ['run', what.run] : ['ref', what.ref]
    const row = this.database
      .prepare(`SELECT * FROM event_log WHERE kind = ? AND ${column} = ? ORDER BY seq LIMIT 1`)
      .get(kind, value!)
    return row && toLogRow(row).position
  }

  /** The newest event before this time. */
  lastOlder(at: number): Position {
    const file = this.source.prepare('SELECT id FROM fs_events WHERE at < ? ORDER BY id DESC LIMIT 1').get(at)
    const row = this.database.prepare('SELECT * FROM event_log WHERE at < ? ORDER BY seq DESC LIMIT 1').get(at)
    const positions = [...(file ? [{ file: file.id as number, seq: 0 }] : []), ...(row ? [toLogRow(row).position] : [])]
    return positions.sort(comparePositions).at(-1) ?? { file: 0, seq: 0 }
  }

  /** The number of the last row before an event of a file. Rows follow each other in both counts, so halving finds it. */
  private lastBefore(file: number): number {
    const next = this.database.prepare('SELECT seq, after FROM event_log WHERE seq >= ? ORDER BY seq LIMIT 1')
    let [low, high] = [0, this.newest().seq + 1]
    // Rows up to `low` come before it, those from `high` on after it.
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      const row = next.get(middle)
      if (row && (row.after as number) < file) low = row.seq as number
      else high = middle
    }
    return low
  }

  /** An older file that can only be read has none: then it is made here. */
  private get database(): DatabaseSync {
    if (this.filled) return this.filled
    if (hasLog(this.source)) return this.source
    this.filled = new Database(':memory:')
    this.filled.exec(`
      CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
      CREATE TABLE event_log (seq INTEGER PRIMARY KEY, after INTEGER, kind TEXT, what TEXT, at REAL, run TEXT, ref TEXT, note TEXT)`)
    fillLog(this.source, this.filled)
    return this.filled
  }
}

const LAST = Number.MAX_SAFE_INTEGER

/** Within the transaction of what it tells of. */
export function logWriter(database: DatabaseSync): (row: NewLogRow) => void {
  const newest = "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'fs_events')"
  const insert = database.prepare(
    `INSERT INTO event_log (after, kind, what, at, run, ref, note) VALUES (${newest}, ?, ?, ?, ?, ?, ?)`,
  )
  return ({ kind, what, at, run, ref, note }) => void insert.run(kind, what, at, run ?? null, ref ?? null, note ?? null)
}

const toLogRow = (row: Record<string, SQLOutputValue>): LogRow => ({
  position: { file: row.after as number, seq: row.seq as number },
  kind: row.kind as LogKind,
  what: row.what as string,
  at: row.at as number,
  run: (row.run as string | null) ?? undefined,
  ...(row.ref !== null && { ref: row.ref as string }),
  ...(row.note !== null && { note: row.note as string }),
})
