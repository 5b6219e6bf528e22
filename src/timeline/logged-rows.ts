/**
 * What `snapshots.log` tells, and which of it the database beside it never knew.
 *
 * The log is written after the commit that it tells of, so it never comes first: a row that only it has was forgotten by the
 * database, and the log not written anew yet, or else the database is older than the log, because its `-wal` was lost or an
 * older copy was put in its place. Numbers of rows are given once (AUTOINCREMENT): one above all that the database ever gave,
 * or one that it gave to another snapshot, was never its own.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { ID_BYTES } from '../model/id.ts'
import { toSnapshot } from './timeline-rows.ts'

const NAME = 'snapshots.log'
/** About ten lines. */
const TAIL_BYTES = 4 * 1024

export type Row = Record<string, SQLOutputValue>
export type Line =
  | { snapshot: Row }
  | { deleted: string; at: number | null }
  | { tag: string; on: string | null }
  | { head: string }

export interface Logged {
  snapshots: Row[]
  tags: Map<string, string>
  head: string | undefined
}

export const logBeside = (database: string): string => join(dirname(database), NAME)

/** What the log says; what cannot be read of it is passed over. */
export const readSnapshotLog = (file: string): Logged => parseLog(textOf(file, Infinity))

/** The newest snapshot that its last lines tell of. */
export function readEndOfLog(file: string): Row[] {
  const lines = textOf(file, TAIL_BYTES).split('\n')
  const last = lines.findLast(line => line.startsWith('{"snapshot"'))
  return last === undefined ? [] : parseLog(last).snapshots
}

/** As it stands in the log. */
export const toLine = ({ root, ...rest }: Row): Line => ({
  snapshot: { ...rest, root: Buffer.from(root as Uint8Array).toString('hex') },
})

/** Throws, or says false, when a row is not what it should be. */
export const isSoundSnapshot = (row: Row): boolean =>
  (row.root as Uint8Array).length === ID_BYTES && toSnapshot(row).id.startsWith('snap_')

/** Of these rows. What the log says must have been read before: then the database has had them by now, if ever. */
export function neverKnown(database: DatabaseSync, rows: readonly Row[]): Row[] {
  if (rows.length === 0) return []
  const known = database.prepare('SELECT 1 FROM snapshots WHERE id = ?')
  const unknown = rows.filter(row => isSound(row) && !known.get(row.id!))
  if (unknown.length === 0) return []
  const last = database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'snapshots'").get()?.seq ?? 0
  const given = database.prepare('SELECT 1 FROM snapshots WHERE seq = ?')
  return unknown.filter(({ seq }) => seq! > last || given.get(seq!) !== undefined)
}

function isSound(row: Row): boolean {
  try {
    return typeof row.seq === 'number' && isSoundSnapshot(row)
  } catch {
    return false
  }
}

function parseLog(text: string): Logged {
  const snapshots = new Map<string, Row>()
  const tags = new Map<string, string>()
  let head: string | undefined
  for (const line of linesOf(text)) {
    if ('snapshot' in line) {
      const { id, root, ...rest } = line.snapshot
      snapshots.set(String(id), { ...rest, id: id!, root: Buffer.from(String(root), 'hex') })
      head = String(id)
    } else if ('deleted' in line && snapshots.has(line.deleted)) snapshots.get(line.deleted)!.deleted_at = line.at
    else if ('tag' in line && line.on === null) tags.delete(line.tag)
    else if ('tag' in line) tags.set(line.tag, line.on!)
    else if ('head' in line) head = line.head
  }
  return { snapshots: [...snapshots.values()], tags, head }
}

function linesOf(text: string): Line[] {
  return text.split('\n').flatMap(line => {
    try {
      const value: unknown = JSON.parse(line)
      return typeof value === 'object' && value !== null ? [value as Line] : []
    } catch {
      return []
    }
  })
}

/** Its last bytes, of which the first line may be cut off; '' when it cannot be read. */
function textOf(file: string, maxBytes: number): string {
  let fd: number | undefined
  try {
    if (maxBytes === Infinity) return readFileSync(file, 'utf8')
    fd = openSync(file, 'r')
    const bytes = Buffer.alloc(maxBytes)
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, maxBytes, Math.max(0, fstatSync(fd).size - maxBytes)))
  } catch {
    return ''
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
