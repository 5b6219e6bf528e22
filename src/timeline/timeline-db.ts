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
import { damageHint, explainOpen, requireVersion } from './explain-open.ts'
import { logBeside, SnapshotLog } from './snapshot-log.ts'
import { insertSnapshot, type NewSnapshot, toOperation, toRun, toSnapshot } from './timeline-rows.ts'
import { bringUpToDate, TIMELINE_VERSION, timelineSchema } from './timeline-schema.ts'
import { TraceRows } from './trace-rows.ts'

const SET_TAG = 'INSERT INTO tags VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET snapshot = excluded.snapshot'

export type NewOperation = Omit<Operation, 'id' | 'seq'>

export class TimelineDb {
  private readonly database: DatabaseSync
  private readonly log: SnapshotLog
  /** What runs executed. */
  readonly trace: TraceRows
  /** What was changed, by runs and others. */
  readonly events: EventRows
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
      this.log = new SnapshotLog(logBeside(file), database)
      this.trace = new TraceRows(database)
      this.events = new EventRows(database)
      this.version = new DataVersion(database)
      if (!unwritable) bringUpToDate(database)
    } catch (cause) {
      throw explainOpen(file, cause)
    }
    const version = this.meta('version')
    if (version === undefined) this.setMeta('version', String(TIMELINE_VERSION))
    else requireVersion(version)
  }

  transaction<T>(work: () => T): T {
    if (this.database.isTransaction) return work()
    try {
      const result = inTransaction(this.database, work)
      this.log.write()
      return result
    } catch (error) {
      this.log.forget()
      throw error
    }
  }

  /** Only reads: all of one moment, whatever others write meanwhile. */
  atOneMoment<T>(read: () => T): T {
    return inTransaction(this.database, read, 'DEFERRED')
  }

  /** Writes what would find the snapshots again anew, from what is known now. */
  renewLog(): void {
    this.log.stale()
    this.log.write()
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

  deleteMeta(key: string): void {
    this.run('DELETE FROM meta WHERE key = ?', key)
  }

  get head(): string | undefined {
    return this.meta('head')
  }

  setHead(id: string | undefined): void {
    if (id === undefined) this.deleteMeta('head')
    else {
      this.setMeta('head', id)
      this.logged(() => this.log.head(id))
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

  addSnapshot(snapshot: NewSnapshot): Snapshot {
    const id = this.freshName('snap_', 'snapshots')
    insertSnapshot(this.database, id, snapshot)
    this.logged(() => this.log.added(id))
    return this.snapshot(id)!
  }

  snapshot(id: string): Snapshot | undefined {
    const row = this.database.prepare('SELECT * FROM snapshots WHERE id = ?').get(id)
    return row && toSnapshot(row)
  }

  /** In order of creation. Deleted ones only on request. */
  snapshots(withDeleted = false): Snapshot[] {
    const where = withDeleted ? '' : 'WHERE deleted_at IS NULL'
    return this.database.prepare(`SELECT * FROM snapshots ${where} ORDER BY seq`).all().map(toSnapshot)
  }

  setDeleted(ids: readonly string[], at: number | undefined): void {
    const update = this.database.prepare('UPDATE snapshots SET deleted_at = ? WHERE id = ?')
    this.transaction(() => {
      for (const id of ids) {
        update.run(at ?? null, id)
        this.log.deleted(id, at)
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
      if (ids.length > 0) this.log.stale()
    })
  }

  /** Children of one snapshot become children of another. */
  moveChildren(from: string, to: string): void {
    this.run('UPDATE snapshots SET parent = ? WHERE parent = ? AND id <> ?', to, from, to)
    this.logged(() => this.log.stale())
  }

  setState(id: string, { root, files, bytes, label }: Pick<Snapshot, 'root' | 'files' | 'bytes' | 'label'>): void {
    const sql = 'UPDATE snapshots SET root = ?, files = ?, bytes = ?, label = ? WHERE id = ?'
    this.run(sql, idToBytes(root), files, bytes, label ?? null, id)
    this.logged(() => this.log.stale())
  }

  setCounts(id: string, { added, modified, deleted }: Snapshot['counts']): void {
    this.run('UPDATE snapshots SET added = ?, modified = ?, deleted = ? WHERE id = ?', added, modified, deleted, id)
    this.logged(() => this.log.stale())
  }

  // --- tags ---

  tags(): Map<string, string> {
    const rows = this.database.prepare('SELECT name, snapshot FROM tags ORDER BY name').all() as {
      name: string
      snapshot: string
    }[]
    return new Map(rows.map(row => [row.name, row.snapshot]))
  }

  setTag(name: string, snapshot: string | undefined, at: number): void {
    if (snapshot === undefined) this.run('DELETE FROM tags WHERE name = ?', name)
    else this.run(SET_TAG, name, snapshot, at)
    this.logged(() => this.log.tagged(name, snapshot))
  }

  // --- runs ---

  addRun(run: Omit<Run, 'id'>): Run {
    const id = this.freshName('run_', 'runs')
    this.run(
      'INSERT INTO runs (id, command, cwd, started_at, pid, before) VALUES (?, ?, ?, ?, ?, ?)',
      id,
      JSON.stringify(run.command),
      run.cwd,
      run.startedAt,
      run.pid ?? null,
      run.before ?? null,
    )
    return { ...run, id }
  }

  endRun(id: string, end: { endedAt: number; exitCode?: number; signal?: string; after?: string }): void {
    this.run(
      'UPDATE runs SET ended_at = ?, exit_code = ?, signal = ?, after = ? WHERE id = ?',
      end.endedAt,
      end.exitCode ?? null,
      end.signal ?? null,
      end.after ?? null,
      id,
    )
  }

  setRunBefore(id: string, before: string): void {
    this.run('UPDATE runs SET before = ? WHERE id = ?', before, id)
  }

  runs(): Run[] {
    return this.database.prepare('SELECT * FROM runs ORDER BY started_at').all().map(toRun)
  }

  /** Those that go on, or whose supervisor was killed. */
  unendedRuns(): Run[] {
    return this.database.prepare('SELECT * FROM runs WHERE ended_at IS NULL ORDER BY started_at').all().map(toRun)
  }

  // --- operations ---

  /** Appends; what was undone before can then no longer be redone. */
  addOperation(operation: NewOperation): Operation {
    return this.transaction(() => {
      const id = this.freshName('op_', 'operations')
      if (operation.state === 'done') this.run("UPDATE operations SET state = 'past' WHERE state = 'undone'")
      this.run(
        'INSERT INTO operations (id, kind, at, state, summary, before, after, head_before, head_after, detail, rule) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        id,
        operation.kind,
        operation.at,
        operation.state,
        operation.summary,
        operation.before ?? null,
        operation.after ?? null,
        operation.headBefore ?? null,
        operation.headAfter ?? null,
        JSON.stringify(operation.detail),
        operation.rule ?? null,
      )
      return toOperation(this.database.prepare('SELECT * FROM operations WHERE id = ?').get(id))
    })
  }

  setOperationState(id: string, state: Operation['state']): void {
    this.run('UPDATE operations SET state = ? WHERE id = ?', state, id)
  }

  setOperationDetail(id: string, detail: Record<string, unknown>): void {
    this.run('UPDATE operations SET detail = ? WHERE id = ?', JSON.stringify(detail), id)
  }

  operations(): Operation[] {
    return this.database.prepare('SELECT * FROM operations ORDER BY seq').all().map(toOperation)
  }

  /** Inside a transaction it is written after that. */
  private logged(note: () => void): void {
    note()
    if (!this.database.isTransaction) this.log.write()
  }

  private run(sql: string, ...values: SQLInputValue[]): void {
    this.database.prepare(sql).run(...values)
  }

  private freshName(prefix: 'snap_' | 'run_' | 'op_', table: string): string {
    const taken = this.database.prepare(`SELECT 1 FROM ${table} WHERE id = ?`)
    for (;;) {
      const name = randomName(prefix)
      if (!taken.get(name)) return name
    }
  }
}
