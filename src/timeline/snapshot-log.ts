/**
 * `snapshots.log` beside timeline.sqlite: which snapshots there are, in plain lines, so that the history can be found again
 * when the database is lost (salvage-timeline.ts), or turns out to be older than they are (lost-rows.ts). Lines are appended
 * after each commit, without waiting for the disk; what is to be forgotten for good is gone with the next whole writing. It
 * must never stop a snapshot: where it cannot be written, it is left behind, and the next writing makes it whole again.
 */
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { errnoOf } from '../errors/errors.ts'
import { writeByRename, writeDurably } from '../store/durable.ts'
import { type Line, neverKnown, readSnapshotLog, toLine } from './logged-rows.ts'

/** Not `command` and `run`: arguments may be secrets, and runs are not in here. Not `skipped`: it is long. */
const columns =
  'seq, id, parent, type, label, created_at, hex(root) AS root, backend, native_ref, size_delta, added, modified, deleted, files, bytes, skipped_count, unsettled, deleted_at, turn'

export class SnapshotLog {
  private readonly file: string
  private readonly database: DatabaseSync
  private lines: Line[] = []
  private isStale = false

  constructor(file: string, database: DatabaseSync) {
    this.file = file
    this.database = database
  }

  /** Of what has changed; written by `write`. */
  added(id: string): void {
    const row = this.database.prepare(`SELECT ${columns} FROM snapshots WHERE id = ?`).get(id)
    this.lines.push({ snapshot: row! })
  }

  /** What is known of it has changed: the last line about it counts. */
  changed(id: string): void {
    this.lines = this.lines.filter(line => !('snapshot' in line && line.snapshot.id === id))
    this.added(id)
    const head = this.headRow()
    if (head !== undefined) this.head(head)
  }

  deleted(id: string, at: number | undefined): void {
    this.lines.push({ deleted: id, at: at ?? null })
  }

  tagged(tag: string, on: string | undefined): void {
    this.lines.push({ tag, on: on ?? null })
  }

  head(id: string): void {
    const last = this.lines.at(-1)
    // The newest is HEAD unless something else is said.
    if (!(last && 'snapshot' in last && last.snapshot.id === id)) this.lines.push({ head: id })
  }

  /** Something was forgotten or rewritten: no line of before may stay. */
  stale(): void {
    this.isStale = true
  }

  /** What was noted did not happen. */
  forget(): void {
    this.lines = []
  }

  /** Writes everything anew, from what is known now. */
  renew(): void {
    this.stale()
    this.write()
  }

  /** After the commit. */
  write(): void {
    if (this.lines.length === 0 && !this.isStale) return
    try {
      if (this.isStale) writeDurably(this.file, this.all())
      else this.append()
      this.isStale = false
    } catch (error) {
      if (!errnoOf(error)) throw error
      this.isStale = true
    }
    this.lines = []
  }

  private append(): void {
    let fd: number
    try {
      fd = openSync(this.file, constants.O_WRONLY | constants.O_APPEND)
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
      writeByRename(this.file, [Buffer.from(this.all())])
      return
    }
    try {
      // Begun on a new line: the last one may have been cut off.
      writeSync(fd, this.lines.map(line => `\n${JSON.stringify(line)}\n`).join(''))
    } finally {
      closeSync(fd)
    }
  }

  private headRow(): string | undefined {
    const row = this.database.prepare("SELECT value FROM meta WHERE key = 'head'").get()
    return row && String(row.value)
  }

  /** With what the database never knew: to nobody else is that known any more. */
  private all(): string {
    const snapshots = this.database.prepare(`SELECT ${columns} FROM snapshots ORDER BY seq`).all()
    const tags = this.database.prepare('SELECT name, snapshot FROM tags').all() as { name: string; snapshot: string }[]
    const told = readSnapshotLog(this.file)
    const lost = new Map(neverKnown(this.database, told.snapshots).map(row => [row.id, row]))
    const head = told.head !== undefined && lost.has(told.head) ? told.head : this.headRow()
    const lines: Line[] = [
      ...snapshots.map(snapshot => ({ snapshot })),
      ...[...lost.values()].map(toLine),
      ...tags.map(({ name, snapshot }) => ({ tag: name, on: snapshot })),
      ...[...told.tags].filter(([, on]) => lost.has(on)).map(([tag, on]) => ({ tag, on })),
      ...(head === undefined ? [] : [{ head }]),
    ]
    return lines.map(line => `${JSON.stringify(line)}\n`).join('')
  }
}
