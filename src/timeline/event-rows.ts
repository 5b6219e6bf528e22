/** The rows of events: which files were changed, when, by whom as far as that is known, and which of it led to which snapshot. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { type FileEvent, kindOfEvent, type SnapshotEvents } from '../model/trace.ts'
import type { Reading } from './log-rows.ts'

type Row = Record<string, SQLOutputValue>

/** `kind` follows from the rest. `emptied`: what is renamed has been emptied by the run before. */
export type NewEvent = Omit<FileEvent, 'id' | 'kind'> & { emptied?: boolean }

/** Paths that events name, and among them those that stand for everything below. */
export interface Touched {
  paths: Set<Raw>
  moved: Set<Raw>
}

/** What took a name away, or gave another one; undefined is outside of the target. Older files have no column `emptied`. */
export type NameChange = Pick<FileEvent, 'run' | 'at' | 'op' | 'path' | 'to' | 'directory'> & { emptied: boolean }

/** What one call of a run was about. */
export type Change = NameChange & Pick<FileEvent, 'existed'>

/** A rename that was told, and did not happen. */
export type Unmoved = Pick<FileEvent, 'op' | 'exec' | 'path' | 'to'>

/** In `meta`: the events after this one are the next snapshot's. */
const NEXT_START = 'events_from'

const isMove = "op IN ('rename', 'exchange', 'delete')"
/**
 * Stands for all that is in it. Not what a run asks to remove: a directory only goes when it is empty, and what went before is
 * told by itself; programs ask for it to find out whether it is.
 */
const takesAll = "(op IN ('rename', 'exchange') OR (op = 'delete' AND run = ''))"
const restoresAll = "(op = 'restore' AND directory = 1)"

export class EventRows {
  private readonly database: DatabaseSync
  private readonly keepers = new Set<() => void>()

  constructor(database: DatabaseSync) {
    this.database = database
  }

  /** `write` brings to the database what somebody keeps back. Returns what ends that. */
  beforeCaptures(write: () => void): () => void {
    this.keepers.add(write)
    return () => void this.keepers.delete(write)
  }

  /** The newest event of all that is known when a capture begins. Outside of a transaction. */
  beginCapture(): number {
    for (const write of this.keepers) write()
    return this.newest()
  }

  /** The id of the newest event; 0 before the first. */
  newest(): number {
    // Not the greatest that is there: the newest may have been purged, and no id is given twice.
    const row = this.database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'fs_events'").get()
    return (row?.seq as number | undefined) ?? 0
  }

  /** Where the events of the next snapshot begin; undefined before the first. */
  get nextStart(): number | undefined {
    const row = this.database.prepare('SELECT value FROM meta WHERE key = ?').get(NEXT_START)
    return row && Number(row.value)
  }

  setNextStart(event: number): void {
    this.database
      .prepare('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
      .run(NEXT_START, String(event))
  }

  /** Within a transaction of the caller's. */
  add(events: Iterable<NewEvent>): void {
    const write = eventWriter(this.database)
    for (const event of events) write(event)
  }

  addSnapshot({ snapshot, origin, files, startEvent, stopEvent, unlisted }: SnapshotEvents): void {
    this.database
      .prepare('INSERT INTO snapshot_events VALUES (?, ?, ?, ?, ?, ?)')
      .run(snapshot, origin, files, startEvent, stopEvent, unlisted)
  }

  /** How many files a snapshot differs by, counted anew. */
  setFiles(snapshot: string, { added, modified, deleted }: Snapshot['counts']): void {
    const sql = 'UPDATE snapshot_events SET files = ? WHERE snapshot = ?'
    this.database.prepare(sql).run(added + modified + deleted, snapshot)
  }

  /** One snapshot takes the place of several: what led to them has led to it. */
  addMerged({ id, type, counts }: Pick<Snapshot, 'id' | 'type' | 'counts'>, of: readonly string[]): void {
    const merged = of.flatMap(snapshot => this.ofSnapshot(snapshot) ?? [])
    if (merged.length === 0) return
    this.addSnapshot({
      snapshot: id,
      origin: type,
      files: counts.added + counts.modified + counts.deleted,
      startEvent: Math.min(...merged.map(({ startEvent }) => startEvent)),
      stopEvent: Math.max(...merged.map(({ stopEvent }) => stopEvent)),
      unlisted: merged.reduce((sum, { unlisted }) => sum + unlisted, 0),
    })
  }

  /** Undefined when nothing is known of it. */
  ofSnapshot(id: string): SnapshotEvents | undefined {
    // An older file that can only be read has no such table.
    const isThere = this.database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'snapshot_events'").get()
    const row = isThere && this.database.prepare('SELECT * FROM snapshot_events WHERE snapshot = ?').get(id)
    return row && toSnapshotEvents(row)
  }

  /** One by one, as they are asked for; of one run, or of all and of nobody. */
  *read({ run, direction, from }: Reading): Generator<FileEvent> {
    const isForward = direction === 'forward'
    // What stands after an event comes after it: when one goes back from there, the event is still to come.
    const last = from === undefined ? Number.MAX_SAFE_INTEGER : from.seq > 0 ? from.file : from.file - 1
    const range = isForward ? [from?.file ?? 0, Number.MAX_SAFE_INTEGER] : [0, last]
    const where = run === undefined ? '' : 'AND run = ?'
    const sql = `SELECT * FROM fs_events WHERE id > ? AND id <= ? ${where} ORDER BY id ${isForward ? 'ASC' : 'DESC'}`
    for (const row of this.database.prepare(sql).iterate(...range, ...(run === undefined ? [] : [run])))
      yield toFileEvent(row)
  }

  /** What a run did to `path`, or which directory above it one moved; newest first. Between two ids, if they are given. */
  ofPath(path: Raw, limit: number, range = { above: 0, below: Number.MAX_SAFE_INTEGER }): FileEvent[] {
    const above = ancestorsOf(path)
    const marks = above.map(() => '?').join(', ')
    const moves = above.length > 0 ? `OR (${takesAll} AND (path IN (${marks}) OR to_path IN (${marks})))` : ''
    const bytes = rawToBytes(path)
    const aboveBytes = above.map(rawToBytes)
    const where = `WHERE run <> '' AND op <> 'restore' AND id > ? AND id < ? AND (path = ? OR to_path = ? ${moves})`
    return this.events(`${where} ORDER BY id DESC LIMIT ?`, [
      range.above,
      range.below,
      bytes,
      bytes,
      ...aboveBytes,
      ...aboveBytes,
      limit,
    ])
  }

  /** Of `path`, or of a directory above that came or went as a whole, what only a snapshot has found; newest first. */
  untold(path: Raw, limit: number): FileEvent[] {
    const above = ancestorsOf(path)
    const whole = above.length > 0 ? `OR (directory = 1 AND path IN (${above.map(() => '?').join(', ')}))` : ''
    const where = `WHERE run = '' AND op <> 'restore' AND (path = ? ${whole}) ORDER BY id DESC LIMIT ?`
    return this.events(where, [rawToBytes(path), ...above.map(rawToBytes), limit])
  }

  touchedBy(run: string): Touched {
    return this.touched(`${takesAll} OR ${restoresAll}`, 'run = ?', run)
  }

  /** When something of the run was last noted; 0 when nothing was. */
  lastOf(run: string): number {
    const row = this.database.prepare('SELECT max(at) AS at FROM fs_events WHERE run = ?').get(run)
    return Number(row?.at ?? 0)
  }

  /** In their order. */
  *changesOf(run: string): Generator<Change> {
    const sql = "SELECT * FROM fs_events WHERE run = ? AND op <> 'restore' ORDER BY id"
    for (const row of this.database.prepare(sql).iterate(run))
      yield { ...toNameChange(row), existed: row.existed === 1 }
  }

  /** When each path was first named by the run. */
  firstTouches(run: string): Map<Raw, number> {
    const first = new Map<Raw, number>()
    const sql = 'SELECT path, to_path, min(at) AS at FROM fs_events WHERE run = ? GROUP BY path, to_path'
    for (const { path, to_path, at } of this.database.prepare(sql).iterate(run))
      for (const raw of [rawOrNone(path!), rawOrNone(to_path!)])
        if (raw !== undefined) first.set(raw, Math.min(at as number, first.get(raw) ?? Number.MAX_VALUE))
    return first
  }

  /** Of all these runs, in the order of time. */
  *nameChangesOf(runs: readonly string[]): Generator<NameChange> {
    const marks = runs.map(() => '?').join(', ')
    const order = runs.length > 1 ? 'at, id' : 'id'
    const sql = `SELECT * FROM fs_events WHERE run IN (${marks}) AND ${isMove} ORDER BY ${order}`
    for (const row of this.database.prepare(sql).iterate(...runs)) yield toNameChange(row)
  }

  /** By anybody, after this event, and until that one. */
  touchedSince(event: number, until = Number.MAX_SAFE_INTEGER): Touched {
    return this.touched(takesAll, 'id > ? AND id <= ?', event, until)
  }

  /** Removes what names `path` or something below it. Returns how many there were. */
  forgetPath(path: Raw): number {
    const [bytes, below] = [rawToBytes(path), rawToBytes(`${path}/`)]
    const length = below.length
    const isBelow = (column: string) => `(${column} = ?1 OR substr(${column}, 1, ?3) = ?2)`
    const sql = `DELETE FROM fs_events WHERE ${isBelow('path')} OR ${isBelow('to_path')}`
    return Number(this.database.prepare(sql).run(bytes, below, length).changes)
  }

  /** Removes what a run did; what snapshots hold is not touched by that. */
  forgetRun(run: string): number {
    return Number(this.database.prepare('DELETE FROM fs_events WHERE run = ?').run(run).changes)
  }

  /** Removes what was nobody's, is older than `limit`, and led to no snapshot that is left. */
  forgetUnneeded(limit: number): void {
    const first = '(SELECT coalesce(min(start_event), 0) FROM snapshot_events)'
    this.database.prepare(`DELETE FROM fs_events WHERE run = '' AND at < ? AND id <= ${first}`).run(limit)
  }

  private touched(moves: string, where: string, ...values: SQLInputValue[]): Touched {
    const touched: Touched = { paths: new Set(), moved: new Set() }
    const sql = `SELECT DISTINCT ${moves} AS moves, path, to_path FROM fs_events WHERE ${where}`
    for (const { moves, path, to_path } of this.database.prepare(sql).iterate(...values)) {
      for (const raw of [rawOrNone(path!), rawOrNone(to_path!)]) {
        if (raw === undefined) continue
        touched.paths.add(raw)
        if (moves === 1) touched.moved.add(raw)
      }
    }
    return touched
  }

  private events(rest: string, values: SQLInputValue[]): FileEvent[] {
    return this.database
      .prepare(`SELECT * FROM fs_events ${rest}`)
      .all(...values)
      .map(toFileEvent)
  }
}

export function eventWriter(database: DatabaseSync): (event: NewEvent) => void {
  const insert = database.prepare(
    'INSERT INTO fs_events (run, at, op, path, to_path, exec, pid, existed, directory, size, emptied) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  return ({ run, at, op, path, to, exec, pid, existed, directory, size, emptied }) => {
    const rest = [existed ? 1 : 0, directory ? 1 : 0, size ?? null, emptied ? 1 : null]
    insert.run(run, at, op, bytesOrNull(path), bytesOrNull(to), exec, pid, ...rest)
  }
}

/** Removes the last row of each. */
export function forgetUnmoved(database: DatabaseSync, run: string, moves: readonly Unmoved[]): void {
  const remove = database.prepare(
    'DELETE FROM fs_events WHERE id = (SELECT max(id) FROM fs_events WHERE run = ? AND op = ? AND exec = ? AND path IS ? AND to_path IS ?)',
  )
  for (const { op, exec, path, to } of moves) remove.run(run, op, exec, bytesOrNull(path), bytesOrNull(to))
}

const bytesOrNull = (raw: Raw | undefined): Buffer | null => (raw === undefined ? null : rawToBytes(raw))
const rawOrNone = (value: SQLOutputValue): Raw | undefined =>
  value === null ? undefined : rawFromBytes(value as Uint8Array)

function ancestorsOf(path: Raw): Raw[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'))
}

const toNameChange = ({ run, at, op, path, to_path, directory, emptied }: Row): NameChange => ({
  run: run as string,
  at: at as number,
  op: op as string,
  path: rawOrNone(path!),
  to: rawOrNone(to_path!),
  directory: directory === 1,
  emptied: emptied === 1,
})

function toFileEvent(row: Row): FileEvent {
  const event = {
    id: row.id as number,
    run: row.run as string,
    at: row.at as number,
    op: row.op as string,
    path: rawOrNone(row.path!),
    to: rawOrNone(row.to_path!),
    exec: row.exec as number,
    pid: row.pid as number,
    existed: row.existed === 1,
    directory: row.directory === 1,
    // In an older file that can only be read there is no such column.
    size: (row.size as number | null | undefined) ?? undefined,
  }
  return { ...event, kind: kindOfEvent(event) }
}

const toSnapshotEvents = (row: Row): SnapshotEvents => ({
  snapshot: row.snapshot as string,
  origin: row.origin as string,
  files: row.files as number,
  startEvent: row.start_event as number,
  stopEvent: row.stop_event as number,
  unlisted: row.unlisted as number,
})
