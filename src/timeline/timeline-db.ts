/**
 * The database of one timeline: snapshots, tags, HEAD, runs, operations. Rows only: it knows no files and no store.
 * Every method that changes several rows does so in one transaction. WAL: readers never wait for the writer.
 */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { HideWords } from '../model/hide-words.ts'
import { idToBytes, randomName } from '../model/id.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'
import { damageIn } from '../store/damage.ts'
import { openDatabase, type Unwritable } from '../store/database.ts'
import { inTransaction } from '../store/transaction.ts'
import { hideCommands } from './command-rows.ts'
import { DataVersion } from './data-version.ts'
import { EventRows } from './event-rows.ts'
import { damageHint, explainOpen } from './explain-open.ts'
import { LogRows } from './log-rows.ts'
import { logBeside } from './logged-rows.ts'
import { LostRows } from './lost-rows.ts'
import { NativeRows } from './native-rows.ts'
import { SnapshotLog } from './snapshot-log.ts'
import * as rows from './timeline-rows.ts'
import { bringUpToDate, checkVersion, timelineSchema } from './timeline-schema.ts'
import { TraceRows } from './trace-rows.ts'

const TAGS = 'SELECT name, snapshot FROM tags WHERE snapshot IN (SELECT id FROM snapshots) ORDER BY name'
const SET_TAG = 'INSERT INTO tags VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET snapshot = excluded.snapshot'

export class TimelineDb {
  private readonly database: DatabaseSync
  /** The same snapshots in plain lines. */
  readonly plain: SnapshotLog
  /** Of those lines, what is not known here. */
  readonly lost: LostRows
  /** What runs executed. */
  readonly trace: TraceRows
  /** What was changed, by runs and others. */
  readonly events: EventRows
  /** Everything that happened, in one order. */
  readonly log: LogRows
  /** Snapshots that filesystems keep. */
  readonly native: NativeRows
  readonly version: DataVersion
  /** Set when it can only be read: every method that changes something throws. */
  readonly unwritable: Unwritable | undefined
  readonly isInPlace: () => boolean

  constructor(file: string) {
    try {
      const { database, unwritable, isInPlace } = openDatabase(file, timelineSchema, damageHint(file))
      this.database = database
      this.unwritable = unwritable
      this.isInPlace = isInPlace
      this.plain = new SnapshotLog(logBeside(file), database)
      this.trace = new TraceRows(database)
      this.events = new EventRows(database)
      this.log = new LogRows(database)
      this.lost = new LostRows(database, logBeside(file), this.log, isInPlace)
      this.native = new NativeRows(database, note => this.logged(() => note(this.plain)))
      this.version = new DataVersion(database)
      if (!unwritable) bringUpToDate(database)
    } catch (cause) {
      throw explainOpen(file, cause)
    }
    checkVersion(this.database)
  }

  transaction<T>(work: () => T): T {
    if (this.database.isTransaction) return work()
    try {
      const result = inTransaction(this.database, work)
      this.plain.write()
      return result
    } catch (error) {
      this.plain.forget()
      throw error
    }
  }

  /** Only reads: all of one moment, whatever others write meanwhile. */
  atOneMoment<T>(read: () => T): T {
    return inTransaction(this.database, read, 'DEFERRED')
  }

  /** What is wrong with the file; undefined when it is sound. */
  damage(): string | undefined {
    return damageIn(this.database)
  }

  close(): void {
    if (this.database.isOpen) this.database.close()
  }

  // --- meta and HEAD ---

  meta(key: string): string | undefined {
    return (this.database.prepare('SELECT value FROM meta WHERE key = ?').get(key) as { value: string } | undefined)
      ?.value
  }

  setMeta(key: string, value: string): void {
    this.run('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value', key, value)
  }

  readonly deleteMeta = (key: string): void => this.run('DELETE FROM meta WHERE key = ?', key)

  get head(): string | undefined {
    return this.meta('head')
  }

  setHead(id: string | undefined): void {
    if (id === undefined) this.deleteMeta('head')
    else {
      this.setMeta('head', id)
      this.logged(() => this.plain.head(id))
    }
  }

  /** Hides words of command lines wherever they stand; returns of how many. */
  hideCommands(hide: HideWords): number {
    return hideCommands(this.database, hide)
  }

  /** What is deleted from now on leaves no bytes behind; what was written is no longer in the log, unless somebody reads it. */
  purging<T>(work: () => T): T {
    this.database.exec('PRAGMA secure_delete = ON')
    try {
      return work()
    } finally {
      this.database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    }
  }

  // --- snapshots ---

  /** For what is named after the snapshot and made before it. */
  readonly newSnapshotId = (): string => this.freshName('snap_', 'snapshots')

  addSnapshot(snapshot: rows.NewSnapshot, id = this.newSnapshotId()): Snapshot {
    return this.transaction(() => {
      rows.insertSnapshot(this.database, id, snapshot)
      const { type, createdAt, run } = snapshot
      this.log.add({ kind: 'snapshot', what: 'taken', at: createdAt, run, ref: id, note: type })
      this.plain.added(id)
      return this.snapshot(id)!
    })
  }

  snapshot(id: string): Snapshot | undefined {
    const row = this.database.prepare('SELECT * FROM snapshots WHERE id = ?').get(id)
    return row && rows.toSnapshot(row)
  }

  /** In order of creation. Deleted ones only on request. */
  snapshots(withDeleted = false): Snapshot[] {
    const where = withDeleted ? '' : 'WHERE deleted_at IS NULL'
    return this.database.prepare(`SELECT * FROM snapshots ${where} ORDER BY seq`).all().map(rows.toSnapshot)
  }

  setDeleted(ids: readonly string[], at: number | undefined): void {
    const update = this.database.prepare('UPDATE snapshots SET deleted_at = ? WHERE id = ?')
    this.transaction(() => {
      for (const id of ids) {
        update.run(at ?? null, id)
        this.plain.deleted(id, at)
      }
    })
  }

  /** Removes rows for good; children of a removed snapshot become children of its parent. */
  forgetSnapshots(ids: readonly string[]): void {
    this.transaction(() => {
      for (const id of ids) {
        this.run('UPDATE snapshots SET parent = (SELECT parent FROM snapshots WHERE id = ?) WHERE parent = ?', id, id)
        this.run('DELETE FROM snapshots WHERE id = ?', id)
        this.run('DELETE FROM snapshot_events WHERE snapshot = ?', id)
      }
      if (ids.length > 0) this.plain.stale()
    })
  }

  /** Children of one snapshot become children of another. */
  moveChildren(from: string, to: string): void {
    this.run('UPDATE snapshots SET parent = ? WHERE parent = ? AND id <> ?', to, from, to)
    this.logged(() => this.plain.stale())
  }

  setState(id: string, { root, files, bytes, label }: Pick<Snapshot, 'root' | 'files' | 'bytes' | 'label'>): void {
    const sql = 'UPDATE snapshots SET root = ?, files = ?, bytes = ?, label = ? WHERE id = ?'
    this.run(sql, idToBytes(root), files, bytes, label ?? null, id)
    this.logged(() => this.plain.stale())
  }

  setCounts(id: string, { added, modified, deleted }: Snapshot['counts']): void {
    this.run('UPDATE snapshots SET added = ?, modified = ?, deleted = ? WHERE id = ?', added, modified, deleted, id)
    this.logged(() => this.plain.changed(id))
  }

  setHoldsOthers(id: string): void {
    this.run('UPDATE snapshots SET unsettled = unsettled | ? WHERE id = ?', rows.MARK.holdsOthers, id)
    this.logged(() => this.plain.changed(id))
  }

  // --- tags ---

  tags(): Map<string, string> {
    const tags = this.database.prepare(TAGS).all()
    return new Map(tags.map(row => [row.name as string, row.snapshot as string]))
  }

  setTag(name: string, snapshot: string | undefined, at: number): void {
    if (snapshot === undefined) this.run('DELETE FROM tags WHERE name = ?', name)
    else this.run(SET_TAG, name, snapshot, at)
    this.logged(() => this.plain.tagged(name, snapshot))
  }

  // --- runs ---

  addRun(run: Omit<Run, 'id'>): Run {
    return this.transaction(() => {
      const id = this.freshName('run_', 'runs')
      rows.insertRun(this.database, { ...run, id })
      this.log.add({ kind: 'run', what: 'started', at: run.startedAt, run: id })
      return { ...run, id }
    })
  }

  endRun(id: string, end: rows.RunEnd): void {
    const { endedAt, exitCode, signal, after, isInterrupted } = end
    this.transaction(() => {
      const sql = 'UPDATE runs SET ended_at = ?, exit_code = ?, signal = ?, after = ? WHERE id = ?'
      this.run(sql, endedAt, exitCode ?? null, signal ?? null, after ?? null, id)
      this.log.add({ kind: 'run', what: isInterrupted ? 'interrupted' : 'ended', at: endedAt, run: id })
    })
  }

  readonly setRunState = (id: string, side: 'before' | 'after', snapshot: string): void =>
    this.run(`UPDATE runs SET ${side} = ? WHERE id = ?`, snapshot, id)

  runOf(id: string): Run | undefined {
    const row = this.database.prepare('SELECT * FROM runs WHERE id = ?').get(id)
    return row && rows.toRun(row)
  }

  runs(): Run[] {
    return this.database.prepare('SELECT * FROM runs ORDER BY started_at').all().map(rows.toRun)
  }

  /** Those that go on, or whose supervisor was killed. */
  unendedRuns(): Run[] {
    return this.database.prepare('SELECT * FROM runs WHERE ended_at IS NULL ORDER BY started_at').all().map(rows.toRun)
  }

  // --- operations ---

  /** Appends; what was undone before can then no longer be redone. */
  addOperation(operation: rows.NewOperation): Operation {
    return this.transaction(() => {
      const id = this.freshName('op_', 'operations')
      if (operation.state === 'done') this.run("UPDATE operations SET state = 'past' WHERE state = 'undone'")
      rows.insertOperation(this.database, id, operation)
      const { kind, at, by, detail } = operation
      this.log.add({ kind: 'operation', what: kind, at, run: kind === 'run' ? (detail.run as string) : by, ref: id })
      return this.operation(id)!
    })
  }

  /** One that was noted without its end: it stays where it is among the others. */
  readonly completeOperation = (id: string, operation: rows.NewOperation): void =>
    rows.updateOperation(this.database, id, operation)

  readonly setOperationState = (id: string, state: Operation['state']): void =>
    this.run('UPDATE operations SET state = ? WHERE id = ?', state, id)

  readonly setOperationDetail = (id: string, detail: Record<string, unknown>): void =>
    this.run('UPDATE operations SET detail = ? WHERE id = ?', JSON.stringify(detail), id)

  operation(id: string): Operation | undefined {
    const row = this.database.prepare('SELECT * FROM operations WHERE id = ?').get(id)
    return row && rows.toOperation(row)
  }

  operations(): Operation[] {
    return this.database.prepare('SELECT * FROM operations ORDER BY seq').all().map(rows.toOperation)
  }

  /** Inside a transaction it is written after that. */
  private logged(note: () => void): void {
    note()
    if (!this.database.isTransaction) this.plain.write()
  }

  private run(sql: string, ...values: SQLInputValue[]): void {
    this.database.prepare(sql).run(...values)
  }

  private freshName(prefix: 'snap_' | 'run_' | 'op_', table: string): string {
    const taken = this.database.prepare(`SELECT 1 FROM ${table} WHERE id = ?`)
    for (let name = randomName(prefix); ; name = randomName(prefix)) if (!taken.get(name)) return name
  }
}
