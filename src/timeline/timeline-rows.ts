/** Rows of timeline.sqlite as the nouns of history. */
import type { DatabaseSync } from 'node:sqlite'
import { idFromBytes, idToBytes } from '../model/id.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of SQLite have no static type
type Row = any

/** Bits of the column `unsettled` of a snapshot. */
export const MARK = { unsettled: 1, runOnly: 2, holdsOthers: 4 } as const

/** Of what was left out, this many paths are listed; the count is always exact. */
export const SKIPPED_LISTED = 1000

export type NewSnapshot = Omit<Snapshot, 'id' | 'seq' | 'deletedAt' | 'turn' | 'holdsOthers'> &
  Partial<Pick<Snapshot, 'turn' | 'holdsOthers'>>

export function insertSnapshot(database: DatabaseSync, id: string, snapshot: NewSnapshot): void {
  const insert = database.prepare(
    `INSERT INTO snapshots (id, parent, type, label, created_at, root, run, command, backend, native_ref, size_delta,
       added, modified, deleted, files, bytes, skipped_count, skipped, unsettled, turn)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  insert.run(
    id,
    snapshot.parent ?? null,
    snapshot.type,
    snapshot.label ?? null,
    snapshot.createdAt,
    idToBytes(snapshot.root),
    snapshot.run ?? null,
    snapshot.command ?? null,
    snapshot.backend,
    snapshot.nativeRef ?? null,
    snapshot.sizeDelta,
    snapshot.counts.added,
    snapshot.counts.modified,
    snapshot.counts.deleted,
    snapshot.files,
    snapshot.bytes,
    snapshot.skippedCount,
    JSON.stringify(snapshot.skipped.slice(0, SKIPPED_LISTED)),
    (snapshot.unsettled ? MARK.unsettled : 0) |
      (snapshot.runOnly ? MARK.runOnly : 0) |
      (snapshot.holdsOthers ? MARK.holdsOthers : 0),
    snapshot.turn ? JSON.stringify(snapshot.turn) : null,
  )
}

export const toSnapshot = (row: Row): Snapshot => ({
  id: row.id,
  seq: row.seq,
  parent: row.parent ?? undefined,
  type: row.type,
  label: row.label ?? undefined,
  createdAt: row.created_at,
  root: idFromBytes(row.root),
  run: row.run ?? undefined,
  command: row.command ?? undefined,
  backend: row.backend,
  nativeRef: row.native_ref ?? undefined,
  sizeDelta: row.size_delta,
  counts: { added: row.added, modified: row.modified, deleted: row.deleted },
  files: row.files,
  bytes: row.bytes,
  skippedCount: row.skipped_count,
  skipped: row.skipped ? JSON.parse(row.skipped) : [],
  unsettled: (row.unsettled & MARK.unsettled) !== 0,
  runOnly: (row.unsettled & MARK.runOnly) !== 0,
  holdsOthers: (row.unsettled & MARK.holdsOthers) !== 0,
  deletedAt: row.deleted_at ?? undefined,
  // In an older file that can only be read there is no such column.
  turn: row.turn ? JSON.parse(row.turn) : undefined,
})

export function insertRun(database: DatabaseSync, { id, command, cwd, startedAt, pid, before }: Run): void {
  database
    .prepare('INSERT INTO runs (id, command, cwd, started_at, pid, before) VALUES (?, ?, ?, ?, ?, ?)')
    .run(id, JSON.stringify(command), cwd, startedAt, pid ?? null, before ?? null)
}

export const toRun = (row: Row): Run => ({
  id: row.id,
  command: JSON.parse(row.command),
  cwd: row.cwd,
  startedAt: row.started_at,
  endedAt: row.ended_at ?? undefined,
  exitCode: row.exit_code ?? undefined,
  signal: row.signal ?? undefined,
  pid: row.pid ?? undefined,
  before: row.before ?? undefined,
  after: row.after ?? undefined,
})

export function insertOperation(database: DatabaseSync, id: string, operation: Omit<Operation, 'id' | 'seq'>): void {
  const insert = database.prepare(
    `INSERT INTO operations (id, kind, at, state, summary, before, after, head_before, head_after, detail, rule)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  insert.run(
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
}

/** When it was, and what it says of itself, stay. */
export function updateOperation(database: DatabaseSync, id: string, operation: NewOperation): void {
  const { state, after, headBefore, headAfter, detail } = operation
  database
    .prepare('UPDATE operations SET state = ?, after = ?, head_before = ?, head_after = ?, detail = ? WHERE id = ?')
    .run(state, after ?? null, headBefore ?? null, headAfter ?? null, JSON.stringify(detail), id)
}

export const toOperation = (row: Row): Operation => ({
  id: row.id,
  seq: row.seq,
  kind: row.kind,
  at: row.at,
  state: row.state,
  summary: row.summary,
  before: row.before ?? undefined,
  after: row.after ?? undefined,
  headBefore: row.head_before ?? undefined,
  headAfter: row.head_after ?? undefined,
  detail: JSON.parse(row.detail),
  rule: row.rule ?? undefined,
})

export interface RunEnd {
  endedAt: number
  exitCode?: number
  signal?: string
  after?: string
  /** Its supervisor was killed, and nobody saw its end. */
  isInterrupted?: boolean
}

/** `by`: the run whose process asked for it. */
export type NewOperation = Omit<Operation, 'id' | 'seq'> & { by?: string | undefined }
