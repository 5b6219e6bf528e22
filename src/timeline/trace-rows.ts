/** The rows of traces: what runs executed. Paths and arguments are bytes. What they changed is in event-rows.ts. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import type { Execution } from '../model/trace.ts'
import { FIRM, LOOSE } from '../store/database.ts'
import { inTransaction } from '../store/transaction.ts'
import { eventWriter, forgetUnmoved, type NewEvent, type Unmoved } from './event-rows.ts'
import { logWriter } from './log-rows.ts'

type Row = Record<string, SQLOutputValue>

export interface ExecutionEnd {
  id: number
  endedAt: number
  exitCode: number | undefined
  signal: string | undefined
}

/** What happened since the last time; ends may be of executions in the same batch. */
export interface TraceBatch {
  executions: Execution[]
  ends: ExecutionEnd[]
  /** Executions that did not happen after all. */
  undone: number[]
  notes: { id: number; text: string }[]
  files: NewEvent[]
  /** Renames, told earlier, that did not happen after all. */
  unmoved: Unmoved[]
}

export const emptyBatch = (): TraceBatch => ({
  executions: [],
  ends: [],
  undone: [],
  notes: [],
  files: [],
  unmoved: [],
})

export class TraceRows {
  private readonly database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.database = database
  }

  /** All or nothing; does not wait for the disk, so that after a power cut the newest may be missing. */
  add(run: string, batch: TraceBatch): void {
    this.database.exec(LOOSE)
    try {
      inTransaction(this.database, () => this.addRows(run, batch))
    } finally {
      this.database.exec(FIRM)
    }
  }

  private addRows(run: string, { executions, ends, undone, notes, files, unmoved }: TraceBatch): void {
    const execution = this.database.prepare(
      'INSERT INTO exec_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    for (const row of executions) {
      execution.run(
        run,
        row.id,
        row.at,
        row.pid,
        row.ppid,
        row.parent,
        row.depth,
        row.replaces ?? null,
        rawToBytes(row.program),
        rawToBytes(row.argv.join('\0')),
        row.truncated ? 1 : 0,
        rawToBytes(row.cwd),
        row.endedAt ?? null,
        row.exitCode ?? null,
        row.signal ?? null,
        row.note ?? null,
      )
    }
    const end = this.database.prepare(
      'UPDATE exec_events SET ended_at = ?, exit_code = ?, signal = ? WHERE run = ? AND id = ?',
    )
    for (const { id, endedAt, exitCode, signal } of ends) end.run(endedAt, exitCode ?? null, signal ?? null, run, id)
    const gone = this.database.prepare('DELETE FROM exec_events WHERE run = ? AND id = ?')
    const untold = this.database.prepare("DELETE FROM event_log WHERE run = ? AND kind = 'command' AND ref = ?")
    for (const id of undone) {
      gone.run(run, id)
      untold.run(run, String(id))
    }
    const note = this.database.prepare(
      "UPDATE exec_events SET note = CASE WHEN note IS NULL THEN ?1 ELSE note || '; ' || ?1 END WHERE run = ?2 AND id = ?3",
    )
    for (const { id, text } of notes) note.run(text, run, id)
    forgetUnmoved(this.database, run, unmoved)
    this.addInOrder(run, executions, ends, files)
  }

  /** Events of files keep their order; beginnings and ends of commands go between them by their times. */
  private addInOrder(run: string, executions: Execution[], ends: ExecutionEnd[], files: NewEvent[]): void {
    const log = logWriter(this.database)
    const write = eventWriter(this.database)
    const ended = [...executions.filter(({ endedAt }) => endedAt !== undefined), ...ends]
    const rows = [
      ...executions.map(({ id, at }) => ({ id, at, what: 'started' })),
      ...ended.map(({ id, endedAt }) => ({ id, at: endedAt!, what: 'ended' })),
    ].sort((a, b) => a.at - b.at)
    let next = 0
    const addUntil = (time: number) => {
      for (; next < rows.length && rows[next]!.at <= time; next++) {
        const { id, at, what } = rows[next]!
        log({ kind: 'command', what, at, run, ref: String(id) })
      }
    }
    for (const event of files) {
      addUntil(event.at)
      write(event)
    }
    addUntil(Number.POSITIVE_INFINITY)
  }

  /** Returns how many there were. */
  forgetRun(run: string): number {
    this.database.prepare("DELETE FROM event_log WHERE run = ? AND kind = 'command'").run(run)
    return Number(this.database.prepare('DELETE FROM exec_events WHERE run = ?').run(run).changes)
  }

  /** When a command of the run last began or ended; 0 when none did. */
  lastOf(run: string): number {
    const sql = 'SELECT max(max(at, coalesce(ended_at, 0))) AS at FROM exec_events WHERE run = ?'
    return Number(this.database.prepare(sql).get(run)?.at ?? 0)
  }

  /** In the order in which they began. */
  executions(run: string): Execution[] {
    return this.database.prepare('SELECT * FROM exec_events WHERE run = ? ORDER BY id').all(run).map(toExecution)
  }

  /** Those that have no end. */
  open(run: string): Execution[] {
    return this.database
      .prepare('SELECT * FROM exec_events WHERE run = ? AND ended_at IS NULL')
      .all(run)
      .map(toExecution)
  }

  /** Those that had begun by then and have this in their notes; the last ones, newest first. */
  noted(run: string, text: string, until: number, limit: number): Execution[] {
    const where = 'WHERE run = ? AND at <= ? AND instr(note, ?) > 0 ORDER BY id DESC LIMIT ?'
    return this.database.prepare(`SELECT * FROM exec_events ${where}`).all(run, until, text, limit).map(toExecution)
  }

  /** When the process had ended that last named a path until then; undefined while it goes on, or when nothing is known of it. */
  endOfWriter(run: string, path: Raw, until: number): { pid: number; end: number } | undefined {
    const where = 'run = ?1 AND (path = ?2 OR to_path = ?2) AND at <= ?3 ORDER BY id DESC LIMIT 1'
    const writer = this.database.prepare(`SELECT pid, at FROM fs_events WHERE ${where}`)
    const named = writer.get(run, rawToBytes(path), until)
    if (!named) return undefined
    const sql = 'SELECT max(coalesce(ended_at, 9e999)) AS end FROM exec_events WHERE run = ? AND pid = ?'
    const end = this.database.prepare(sql).get(run, named.pid!)!.end as number | null
    if (end === null || end < (named.at as number) || end === Infinity) return undefined
    return { pid: named.pid as number, end }
  }

  /** The executions that named a path; undefined is one of which nothing is known. */
  writersOf(run: string, path: Raw): (Execution | undefined)[] {
    const sql = 'SELECT DISTINCT exec FROM fs_events WHERE run = ?1 AND (path = ?2 OR to_path = ?2)'
    const ids = this.database.prepare(sql).all(run, rawToBytes(path))
    return ids.map(({ exec }) => this.execution(run, exec as number))
  }

  execution(run: string, id: number): Execution | undefined {
    const row = this.database.prepare('SELECT * FROM exec_events WHERE run = ? AND id = ?').get(run, id)
    return row && toExecution(row)
  }
}

const toExecution = (row: Row): Execution => ({
  run: row.run as string,
  id: row.id as number,
  at: row.at as number,
  pid: row.pid as number,
  ppid: row.ppid as number,
  parent: row.parent as number,
  depth: row.depth as number,
  replaces: (row.replaces as number | null) ?? undefined,
  program: rawFromBytes(row.program as Uint8Array),
  argv: rawFromBytes(row.argv as Uint8Array).split('\0'),
  truncated: row.truncated === 1,
  cwd: rawFromBytes(row.cwd as Uint8Array),
  endedAt: (row.ended_at as number | null) ?? undefined,
  exitCode: (row.exit_code as number | null) ?? undefined,
  signal: (row.signal as string | null) ?? undefined,
  note: (row.note as string | null) ?? undefined,
})
