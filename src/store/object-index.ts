/**
 * index.sqlite: where each object lies. Rows are added only after their pack bytes are durable, so a row never points
 * to missing bytes; the whole file can be rebuilt from the packs (`verify --repair`).
 */
import { dirname } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { fullWords, isDamage, isNoRoom, SavepointError } from '../errors/errors.ts'
import { sizeLimitOf } from '../errors/size-limit.ts'
import type { Id } from '../model/entry.ts'
import { ID_BYTES, idFromBytes, idToBytes } from '../model/id.ts'
import { type BlockNames, NameList } from './block-names.ts'
import { damageIn } from './damage.ts'
import { FIRM, LOOSE, openDatabase, type Unwritable } from './database.ts'
import { OBJECT, type ObjectKind } from './pack-format.ts'
import { inTransaction } from './transaction.ts'

export interface Location {
  pack: number
  /** Offset of the block in the pack. */
  block: number
  /** Offset of the object in the unpacked block. */
  offset: number
  length: number
  kind: ObjectKind
}

export interface PackRow {
  id: number
  name: string
  /** Bytes that are committed; what lies behind them is the tail of an interrupted writer. */
  bytes: number
}

const schema = `
  CREATE TABLE IF NOT EXISTS packs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS objects (
    id BLOB PRIMARY KEY, pack INTEGER NOT NULL, block INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
    kind INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS clones ON objects (kind, length) WHERE kind = ${OBJECT.clone};
  CREATE TABLE IF NOT EXISTS damaged (id BLOB PRIMARY KEY, pack INTEGER NOT NULL, block INTEGER NOT NULL) WITHOUT ROWID;
`

export class ObjectIndex {
  readonly database: DatabaseSync
  readonly unwritable: Unwritable | undefined
  readonly isInPlace: () => boolean
  private readonly selectObject: StatementSync
  private readonly insertObject: StatementSync

  constructor(file: string) {
    try {
      const { database, unwritable, isInPlace } = openDatabase(
        file,
        schema,
        `Run \`savepoint verify --repair\`: it rebuilds ${file} from the packs`,
      )
      this.database = database
      this.unwritable = unwritable
      this.isInPlace = isInPlace
      this.selectObject = this.database.prepare('SELECT pack, block, offset, length, kind FROM objects WHERE id = ?')
      this.insertObject = this.database.prepare('INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)')
    } catch (cause) {
      throw explainOpen(file, cause)
    }
  }

  find(id: Id): Location | undefined {
    return this.selectObject.get(idToBytes(id)) as unknown as Location | undefined
  }

  /** All rows, one after another. */
  *rows(): Generator<Location & { id: Id }> {
    for (const row of this.database.prepare('SELECT * FROM objects').iterate()) {
      yield { ...(row as unknown as Location), id: idFromBytes(row.id as Uint8Array) }
    }
  }

  /** Another number after each time that it was made anew: what was found before then need not be there any more. */
  get made(): number {
    return this.database.prepare('PRAGMA user_version').get()!.user_version as number
  }

  /** What is kept as a file of its own. */
  cloneIds(): Id[] {
    const rows = this.database.prepare(`SELECT id FROM objects WHERE kind = ${OBJECT.clone}`).all()
    return rows.map(row => idFromBytes(row.id as Uint8Array))
  }

  packs(): PackRow[] {
    return this.database.prepare('SELECT id, name, bytes FROM packs ORDER BY id').all() as unknown as PackRow[]
  }

  pack(id: number): PackRow | undefined {
    return this.database.prepare('SELECT id, name, bytes FROM packs WHERE id = ?').get(id) as unknown as
      | PackRow
      | undefined
  }

  /** Registers a new, empty pack. */
  addPack(name: string): number {
    return Number(this.database.prepare('INSERT INTO packs (name, bytes) VALUES (?, 0)').run(name).lastInsertRowid)
  }

  setPackBytes(id: number, bytes: number): void {
    this.database.prepare('UPDATE packs SET bytes = ? WHERE id = ?').run(bytes, id)
  }

  add(id: Id, at: Location): void {
    this.insertObject.run(idToBytes(id), at.pack, at.block, at.offset, at.length, at.kind)
  }

  /** The objects of blocks, from the names that they carry. */
  addBlocks(blocks: readonly BlockNames[]): void {
    const names = new NameList(blocks)
    this.addNames(names, 0, names.length)
  }

  /** A part of the list. It is in the order of ids: neighbours in the index go in one after another, in half the time. */
  addNames(names: NameList, from: number, to: number): void {
    for (let place = from; place < to; place++) {
      const i = names.order[place]!
      const { pack, block, names: bytes } = names.of[names.blocks[i]!]!
      const at = names.starts[i]!
      const id = bytes.subarray(at, at + ID_BYTES)
      const length = bytes.readUInt32LE(at + ID_BYTES + 1)
      this.insertObject.run(id, pack, block, names.offsets[i]!, length, bytes[at + ID_BYTES]!)
    }
  }

  /** All or nothing. */
  transaction<T>(work: () => T): T {
    return inTransaction(this.database, work)
  }

  /** The same, but after a power cut it may not have happened, until a `transaction` has. */
  looseTransaction<T>(work: () => T): T {
    this.database.exec(LOOSE)
    try {
      return this.transaction(work)
    } finally {
      this.database.exec(FIRM)
    }
  }

  /** After loose transactions the log is as long as all of them: what it holds goes where it belongs, as far as readers let it. */
  shrinkLog(): void {
    this.database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }

  /** Clones count in full, although they share blocks as long as the original is not changed. */
  storedBytes(): number {
    const sum = (sql: string) => (this.database.prepare(sql).get() as { bytes: number }).bytes
    const packs = sum('SELECT COALESCE(SUM(bytes), 0) AS bytes FROM packs')
    return packs + sum(`SELECT COALESCE(SUM(length), 0) AS bytes FROM objects WHERE kind = ${OBJECT.clone}`)
  }

  isEmpty(): boolean {
    return this.database.prepare('SELECT 1 FROM objects LIMIT 1').get() === undefined
  }

  hasObjectsIn(pack: number): boolean {
    return this.database.prepare('SELECT 1 FROM objects WHERE pack = ? LIMIT 1').get(pack) !== undefined
  }

  objectCount(): number {
    return (this.database.prepare('SELECT COUNT(*) AS count FROM objects').get() as { count: number }).count
  }

  /** What is wrong with the file; undefined when it is sound. */
  damage(): string | undefined {
    return damageIn(this.database)
  }

  close(): void {
    if (this.database.isOpen) this.database.close()
  }
}

function explainOpen(file: string, cause: unknown): SavepointError {
  if (isDamage(cause)) return cause
  const message = `Cannot open the store's index: ${(cause as Error).message}`
  const limit = sizeLimitOf(cause)
  if (limit)
    return new SavepointError('io.failed', `Cannot open the store's index: ${limit.message}`, {
      hint: limit.hint,
      cause,
    })
  if (isNoRoom(cause)) {
    return new SavepointError('disk.full', `${message}: ${fullWords(cause)}`, {
      hint: 'Free some space, or set TMPDIR to a directory that has some; nothing is lost',
      cause,
    })
  }
  return new SavepointError('io.failed', message, {
    hint: `Look at the permissions of ${dirname(file)}, and whether it is mounted read-only`,
    cause,
  })
}
