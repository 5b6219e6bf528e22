/** The rows of traces: what runs executed, and which files they changed. Paths and arguments are bytes. */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import type { Execution, FileEvent } from '../model/trace.ts'
import { FIRM, LOOSE } from '../store/database.ts'
import { inTransaction } from '../store/transaction.ts'

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
  files: Omit<FileEvent, 'id'>[]
}

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

  private addRows(run: string, { executions, ends, undone, notes, files }: TraceBatch): void {
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
    for (const id of undone) gone.run(run, id)
    const note = this.database.prepare(
      "UPDATE exec_events SET note = CASE WHEN note IS NULL THEN ?1 ELSE note || '; ' || ?1 END WHERE run = ?2 AND id = ?3",
    )
    for (const { id, text } of notes) note.run(text, run, id)
    const file = this.database.prepare(
      'INSERT INTO fs_events (run, at, op, path, to_path, exec, pid, existed, directory) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    for (const row of files) {
      file.run(
        run,
        row.at,
        row.op,
        bytesOrNull(row.path),
        bytesOrNull(row.to),
        row.exec,
        row.pid,
        row.existed ? 1 : 0,
        row.directory ? 1 : 0,
      )
    }
  }

  /** In the order in which they began. */
  executions(run: string): Execution[] {
    return this.database.prepare('SELECT * FROM exec_events WHERE run = ? ORDER BY id').all(run).map(toExecution)
  }

  execution(run: string, id: number): Execution | undefined {
    const row = this.database.prepare('SELECT * FROM exec_events WHERE run = ? AND id = ?').get(run, id)
    return row && toExecution(row)
  }

  /** What touched `path`, or moved or removed a directory above it; newest first. Between two ids, if they are given. */
  fileEvents(
    path: Raw,
    limit: number,
    { above: after, below: before }: { above: number; below: number } = { above: 0, below: Number.MAX_SAFE_INTEGER },
  ): FileEvent[] {
    const above = ancestorsOf(path)
    const marks = above.map(() => '?').join(', ')
    const moves = "op IN ('rename', 'exchange', 'delete')"
    const sql = `SELECT * FROM fs_events WHERE id > ? AND id < ? AND (path = ? OR to_path = ?
      ${above.length > 0 ? `OR (${moves} AND (path IN (${marks}) OR to_path IN (${marks})))` : ''})
      ORDER BY id DESC LIMIT ?`
    const bytes = rawToBytes(path)
    const aboveBytes = above.map(rawToBytes)
    return this.database
      .prepare(sql)
      .all(after, before, bytes, bytes, ...aboveBytes, ...aboveBytes, limit)
      .map(toFileEvent)
  }

  /** The paths that a run touched, and among them those that it moved or removed as a whole. */
  touched(run: string): { paths: Set<Raw>; moved: Set<Raw> } {
    const touched = { paths: new Set<Raw>(), moved: new Set<Raw>() }
    const rows = this.database.prepare('SELECT DISTINCT op, path, to_path FROM fs_events WHERE run = ?')
    for (const { op, path, to_path } of rows.iterate(run)) {
      const isMove = op === 'rename' || op === 'exchange' || op === 'delete'
      for (const raw of [rawOrNone(path!), rawOrNone(to_path!)]) {
        if (raw === undefined) continue
        touched.paths.add(raw)
        if (isMove) touched.moved.add(raw)
      }
    }
    return touched
  }
}

const bytesOrNull = (raw: Raw | undefined): Buffer | null => (raw === undefined ? null : rawToBytes(raw))
const rawOrNone = (value: SQLOutputValue): Raw | undefined =>
  value === null ? undefined : rawFromBytes(value as Uint8Array)

function ancestorsOf(path: Raw): Raw[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'))
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

const toFileEvent = (row: Row): FileEvent => ({
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
})
