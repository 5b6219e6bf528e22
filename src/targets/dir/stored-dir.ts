/**
 * A directory of a stat cache that came from disk. It is a row of the file's table: what nobody asks for is not decoded, and a capture
 * of ten changes asks for a few directories of many thousands.
 */
import type { Id } from '../../model/entry.ts'
import { ID_BYTES } from '../../model/id.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { CacheBytes } from './cache-bytes.ts'
import type { Base, CachedDir } from './stat-cache.ts'

/** Columns of the table, a row per directory. Ends count from where the text, or the records, begin. */
export const COLUMN = {
  pathEnd: 0, // the tree follows in the text
  childrenEnd: 1, // names with `/` between them
  recordsEnd: 2,
  rulesIn: 3, // which line of the rules
  rulesOut: 4,
  marks: 5, // noteworthy, OVERRIDDEN, GONE
  unknown: 6,
  skipped: 7,
  files: 8,
  bytesLow: 9,
  bytesHigh: 10,
  count: 11,
} as const
const NOTEWORTHY = 0xff
export const OVERRIDDEN = 0x100
/** Only beside a base: the directory is there no more. */
export const GONE = 0x200
export const TWO_32 = 0x1_0000_0000

/** A file of a stat cache: its table, and what the rows speak of. */
export interface Stored {
  readonly table: Uint32Array
  readonly text: string
  readonly rules: readonly string[]
  readonly cacheBytes: CacheBytes
  /** Where its records begin in those bytes. */
  readonly recordsAt: number
}

export class StoredDir implements CachedDir {
  private readonly file: Stored
  /** Where its row begins in the table. */
  private readonly row: number
  /** Records that are not as those in the bytes, or shall not be. */
  private own: Buffer | undefined
  base: Base | undefined

  constructor(file: Stored, row: number, base: Base | undefined) {
    this.file = file
    this.row = row
    this.base = base
  }

  private column(column: number): number {
    return this.file.table[this.row + column]!
  }

  get cacheBytes(): CacheBytes {
    return this.file.cacheBytes
  }

  private get recordsStart(): number {
    return this.row === 0 ? 0 : this.column(COLUMN.recordsEnd - COLUMN.count)
  }

  get recordsAt(): number {
    return this.file.recordsAt + this.recordsStart
  }

  get recordsLength(): number {
    return this.column(COLUMN.recordsEnd) - this.recordsStart
  }

  get isStored(): boolean {
    return this.own === undefined
  }

  get records(): Buffer {
    return this.own ?? this.cacheBytes.part(this.recordsAt, this.recordsLength)
  }

  keepOwn(): void {
    this.own ??= Buffer.from(this.records)
  }

  get rulesIn(): string {
    return this.file.rules[this.column(COLUMN.rulesIn)]!
  }

  get rulesOut(): string {
    return this.file.rules[this.column(COLUMN.rulesOut)]!
  }

  get tree(): Id {
    const at = this.column(COLUMN.pathEnd)
    return this.file.text.slice(at, at + ID_BYTES)
  }

  get childDirs(): readonly Raw[] {
    const at = this.column(COLUMN.pathEnd) + ID_BYTES
    const end = this.column(COLUMN.childrenEnd)
    return end > at ? this.file.text.slice(at, end).split('/') : none
  }

  get noteworthy(): number {
    return this.column(COLUMN.marks) & NOTEWORTHY
  }

  get overridden(): boolean {
    return (this.column(COLUMN.marks) & OVERRIDDEN) !== 0
  }

  get unknown(): number {
    return this.column(COLUMN.unknown)
  }

  get skipped(): number {
    return this.column(COLUMN.skipped)
  }

  get files(): number {
    return this.column(COLUMN.files)
  }

  get bytes(): number {
    return this.column(COLUMN.bytesLow) + this.column(COLUMN.bytesHigh) * TWO_32
  }
}

const none: readonly Raw[] = []
