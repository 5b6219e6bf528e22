/**
 * What the last capture saw, directory by directory: the raw walk records and the tree they became. A directory whose
 * records are the same bytes again is unchanged, so an unchanged tree costs one walk and a comparison. Losing the cache
 * costs time, never correctness: it is checksummed and ignored when anything is odd.
 */
import { readFileSync } from 'node:fs'
import type { Id } from '../../model/entry.ts'
import { hashBytes, ID_BYTES } from '../../model/id.ts'
import { joinRaw, type Raw } from '../../model/raw-path.ts'
import { writeByRename } from '../../store/durable.ts'

const MAGIC = 'SVPTSTAT'
const VERSION = 3
const CHECKSUM_BYTES = 32

/** Byte offsets in the header; all numbers are u32. The table, the text and the records follow, then the checksum. */
const HEADER = { version: 8, dirs: 12, textBytes: 16, rootKeyEnd: 20, rootEnd: 24, rulesEnd: 28, size: 32 } as const
/** Columns of the table, a row per directory. Ends count from where the text, or the records, begin. */
const COLUMN = {
  pathEnd: 0, // the tree follows in the text
  childrenEnd: 1, // names with `/` between them
  recordsEnd: 2,
  rulesIn: 3, // which line of the rules
  rulesOut: 4,
  marks: 5, // noteworthy, and OVERRIDDEN
  unknown: 6,
  skipped: 7,
  files: 8,
  bytesLow: 9,
  bytesHigh: 10,
  count: 11,
} as const
const OVERRIDDEN = 0x100
const TWO_32 = 0x1_0000_0000

export interface CachedDir {
  readonly records: Buffer
  /** Digest of the rules that came from above, and of those in force inside. */
  rulesIn: string
  rulesOut: string
  tree: Id
  /** Names of the subdirectories that were entered. */
  childDirs: Raw[]
  /** See noteworthy-names. */
  noteworthy: number
  /** Something was captured against the rules, for a rollback. */
  overridden: boolean
  /** Entries of this directory that are `unknown`. */
  unknown: number
  /** Of those, what makes a snapshot PARTIAL. Such a directory is always looked at again. */
  skipped: number
  files: number
  bytes: number
}

/** Directories by path, with the sums over all of them. */
export class CachedDirs extends Map<Raw, CachedDir> {
  files = 0
  bytes = 0
  /** Directories with nothing captured in them. */
  emptyDirs = 0
  /** Paths of those with something skipped. */
  readonly skipped = new Set<Raw>()

  override set(path: Raw, dir: CachedDir): this {
    const before = this.get(path)
    if (before) this.count(path, before, -1)
    this.count(path, dir, 1)
    return super.set(path, dir)
  }

  override delete(path: Raw): boolean {
    const before = this.get(path)
    if (before) this.count(path, before, -1)
    return super.delete(path)
  }

  /** A directory with everything below it; `visit` sees each. */
  forget(path: Raw, visit: (dir: CachedDir) => void): void {
    const dir = this.get(path)
    if (!dir) return
    visit(dir)
    this.delete(path)
    for (const name of dir.childDirs) this.forget(joinRaw(path, name), visit)
  }

  copy(): CachedDirs {
    const copy = new CachedDirs()
    for (const [path, dir] of this) copy.set(path, dir)
    return copy
  }

  private count(path: Raw, dir: CachedDir, sign: 1 | -1): void {
    this.files += sign * dir.files
    this.bytes += sign * dir.bytes
    if (path !== '' && dir.files === 0 && dir.childDirs.length === 0) this.emptyDirs += sign
    if (dir.skipped === 0) return
    if (sign > 0) this.skipped.add(path)
    else this.skipped.delete(path)
  }
}

export interface StatCache {
  dirs: CachedDirs
  /** Identity of the target's root when it was captured, so that another directory's cache is never used. */
  rootKey: string
  /** What `records` of directories from disk lie in. */
  bytes: Buffer
  /** The tree of the whole: collection deletes a cache whose tree it does not keep. '' when nothing was captured. */
  root: Id
}

export const emptyCache = (rootKey = ''): StatCache => ({
  dirs: new CachedDirs(),
  rootKey,
  bytes: Buffer.alloc(0),
  root: '',
})

/** A directory as it lies in the cache's bytes: its records become a buffer only when somebody asks for them. */
class StoredDir implements CachedDir {
  readonly cacheBytes: Buffer
  readonly recordsAt: number
  readonly recordsLength: number
  rulesIn = ''
  rulesOut = ''
  tree: Id = ''
  childDirs: Raw[] = none
  noteworthy = 0
  overridden = false
  unknown = 0
  skipped = 0
  files = 0
  bytes = 0

  constructor(cacheBytes: Buffer, recordsAt: number, recordsLength: number) {
    this.cacheBytes = cacheBytes
    this.recordsAt = recordsAt
    this.recordsLength = recordsLength
  }

  get records(): Buffer {
    return this.cacheBytes.subarray(this.recordsAt, this.recordsAt + this.recordsLength)
  }
}

const none: Raw[] = []

/** Where a directory's records lie in the bytes of the cache that it came from; undefined when it was made since. */
export function storedSpan(dir: CachedDir | undefined): { offset: number; length: number } | undefined {
  return dir instanceof StoredDir ? { offset: dir.recordsAt, length: dir.recordsLength } : undefined
}

export function saveStatCache(file: string, cache: StatCache): void {
  // Not fsynced: after a power cut the checksum tells a torn cache, and the next capture reads everything once.
  writeByRename(file, [encode(cache)])
}

function encode({ dirs, rootKey, root, bytes }: StatCache): Buffer {
  const rules = new Map<string, number>()
  for (const dir of dirs.values()) {
    for (const key of [dir.rulesIn, dir.rulesOut]) if (!rules.has(key)) rules.set(key, rules.size)
  }
  const ruleLines = [...rules.keys()].join('\n')
  const table = new Uint32Array(dirs.size * COLUMN.count)
  const parts: string[] = [rootKey, root, ruleLines]
  let text = rootKey.length + root.length + ruleLines.length
  let records = 0
  let row = 0
  for (const [path, dir] of dirs) {
    const children = dir.childDirs.join('/')
    parts.push(path, dir.tree, children)
    const pathEnd = text + path.length
    text = pathEnd + ID_BYTES + children.length
    records += storedSpan(dir)?.length ?? dir.records.length
    table[row + COLUMN.pathEnd] = pathEnd
    table[row + COLUMN.childrenEnd] = text
    table[row + COLUMN.recordsEnd] = records
    table[row + COLUMN.rulesIn] = rules.get(dir.rulesIn)!
    table[row + COLUMN.rulesOut] = rules.get(dir.rulesOut)!
    table[row + COLUMN.marks] = dir.noteworthy | (dir.overridden ? OVERRIDDEN : 0)
    table[row + COLUMN.unknown] = dir.unknown
    table[row + COLUMN.skipped] = dir.skipped
    table[row + COLUMN.files] = dir.files
    table[row + COLUMN.bytesLow] = dir.bytes % TWO_32
    table[row + COLUMN.bytesHigh] = Math.floor(dir.bytes / TWO_32)
    row += COLUMN.count
  }
  const textAt = HEADER.size + table.byteLength
  const out = Buffer.allocUnsafe(textAt + text + records + CHECKSUM_BYTES)
  out.write(MAGIC, 'latin1')
  out.writeUInt32LE(VERSION, HEADER.version)
  out.writeUInt32LE(dirs.size, HEADER.dirs)
  out.writeUInt32LE(text, HEADER.textBytes)
  out.writeUInt32LE(rootKey.length, HEADER.rootKeyEnd)
  out.writeUInt32LE(rootKey.length + root.length, HEADER.rootEnd)
  out.writeUInt32LE(rootKey.length + root.length + ruleLines.length, HEADER.rulesEnd)
  out.set(new Uint8Array(table.buffer), HEADER.size)
  out.write(parts.join(''), textAt, 'latin1')
  const at = copyRecords(dirs, bytes, out, textAt + text)
  out.write(hashBytes(out.subarray(0, at)), at, 'latin1')
  return out
}

/** Those that lie one behind another in the cache's bytes, as most do, are copied together. Returns where they end. */
function copyRecords(dirs: CachedDirs, bytes: Buffer, out: Buffer, start: number): number {
  let at = start
  let from = 0
  let to = 0
  for (const dir of dirs.values()) {
    const span = dir instanceof StoredDir && dir.cacheBytes === bytes ? storedSpan(dir) : undefined
    if (span?.offset === to) {
      to += span.length
      continue
    }
    at += bytes.copy(out, at, from, to)
    from = to = span ? span.offset : 0
    if (span) to += span.length
    else at += dir.records.copy(out, at)
  }
  return at + bytes.copy(out, at, from, to)
}

/** The cache in `file`, or an empty one when there is none that can be trusted. */
export function loadStatCache(file: string, rootKey: string): StatCache {
  try {
    const bytes = readFileSync(file)
    const body = bytes.subarray(0, bytes.length - CHECKSUM_BYTES)
    if (hashBytes(body) !== bytes.toString('latin1', body.length) || !isOurs(body)) return emptyCache(rootKey)
    const cache = decode(body)
    return cache.rootKey === rootKey ? cache : emptyCache(rootKey)
  } catch {
    return emptyCache(rootKey)
  }
}

/** The root tree that the cache in `file` belongs to; '' when there is no cache that can be trusted. */
export function loadStatCacheRoot(file: string): Id {
  try {
    const bytes = readFileSync(file)
    return isOurs(bytes) ? headerText(bytes).root : ''
  } catch {
    return ''
  }
}

const isOurs = (bytes: Buffer): boolean =>
  bytes.toString('latin1', 0, MAGIC.length) === MAGIC && bytes.readUInt32LE(HEADER.version) === VERSION

function headerText(bytes: Buffer) {
  const textAt = HEADER.size + bytes.readUInt32LE(HEADER.dirs) * COLUMN.count * Uint32Array.BYTES_PER_ELEMENT
  const textEnd = textAt + bytes.readUInt32LE(HEADER.textBytes)
  // One string for all: what is cut out of it costs no copy.
  const text = bytes.toString('latin1', textAt, textEnd)
  const rootKeyEnd = bytes.readUInt32LE(HEADER.rootKeyEnd)
  const rootEnd = bytes.readUInt32LE(HEADER.rootEnd)
  const rulesEnd = bytes.readUInt32LE(HEADER.rulesEnd)
  return {
    text,
    textAt,
    textEnd,
    rulesEnd,
    rootKey: text.slice(0, rootKeyEnd),
    root: text.slice(rootKeyEnd, rootEnd),
    rules: text.slice(rootEnd, rulesEnd).split('\n'),
  }
}

function decode(body: Buffer): StatCache {
  const { text, textAt, textEnd, rulesEnd, rootKey, root, rules } = headerText(body)
  const table = new Uint32Array(body.buffer.slice(body.byteOffset + HEADER.size, body.byteOffset + textAt))
  const dirs = new CachedDirs()
  let at = rulesEnd
  let recordsAt = 0
  for (let row = 0; row < table.length; row += COLUMN.count) {
    const pathEnd = table[row + COLUMN.pathEnd]!
    const childrenAt = pathEnd + ID_BYTES
    const childrenEnd = table[row + COLUMN.childrenEnd]!
    const recordsEnd = table[row + COLUMN.recordsEnd]!
    const dir = new StoredDir(body, textEnd + recordsAt, recordsEnd - recordsAt)
    dir.rulesIn = rules[table[row + COLUMN.rulesIn]!]!
    dir.rulesOut = rules[table[row + COLUMN.rulesOut]!]!
    dir.tree = text.slice(pathEnd, childrenAt)
    if (childrenEnd > childrenAt) dir.childDirs = text.slice(childrenAt, childrenEnd).split('/')
    const marks = table[row + COLUMN.marks]!
    dir.noteworthy = marks & 0xff
    dir.overridden = (marks & OVERRIDDEN) !== 0
    dir.unknown = table[row + COLUMN.unknown]!
    dir.skipped = table[row + COLUMN.skipped]!
    dir.files = table[row + COLUMN.files]!
    dir.bytes = table[row + COLUMN.bytesLow]! + table[row + COLUMN.bytesHigh]! * TWO_32
    dirs.set(text.slice(at, pathEnd), dir)
    at = childrenEnd
    recordsAt = recordsEnd
  }
  return { dirs, rootKey, bytes: body, root }
}
