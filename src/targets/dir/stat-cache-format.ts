/** How the bytes of a stat cache are laid out (stat-cache-file.ts keeps them). */
import type { Id } from '../../model/entry.ts'
import { hashBytes, ID_BYTES } from '../../model/id.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { CacheBytes } from './cache-bytes.ts'
import { type Base, type CachedDir, storedSpan } from './stat-cache.ts'
import { COLUMN, GONE, OVERRIDDEN, StoredDir, TWO_32 } from './stored-dir.ts'

const MAGIC = 'SVPTSTAT'
const VERSION = 3
export const CHECKSUM_BYTES = 32

/** Byte offsets in the header; all numbers are u32. The table, the text and the records follow, then the checksum. */
const HEADER = { version: 8, dirs: 12, textBytes: 16, rootKeyEnd: 20, rootEnd: 24, rulesEnd: 28, size: 32 } as const

/** Beside a base: a directory that it has is there no more. */
export const gone: CachedDir = {
  records: Buffer.alloc(0),
  rulesIn: '',
  rulesOut: '',
  tree: '\0'.repeat(ID_BYTES),
  childDirs: [],
  noteworthy: 0,
  overridden: false,
  unknown: 0,
  skipped: 0,
  files: 0,
  bytes: 0,
}

interface Contents {
  dirs: ReadonlyMap<Raw, CachedDir>
  rootKey: string
  root: Id
  /** Where most of the records lie one behind another. */
  bytes: CacheBytes
}

export function encode({ dirs, rootKey, root, bytes }: Contents): Buffer {
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
    table[row + COLUMN.marks] = dir === gone ? GONE : dir.noteworthy | (dir.overridden ? OVERRIDDEN : 0)
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
function copyRecords(dirs: ReadonlyMap<Raw, CachedDir>, source: CacheBytes, out: Buffer, start: number): number {
  let at = start
  let from = 0
  let to = 0
  const copyTogether = () => {
    if (to > from) at += source.all().copy(out, at, from, to)
  }
  for (const dir of dirs.values()) {
    const span = dir instanceof StoredDir && dir.cacheBytes === source ? storedSpan(dir) : undefined
    if (span?.offset === to) {
      to += span.length
      continue
    }
    copyTogether()
    from = to = span ? span.offset : 0
    if (span) to += span.length
    else at += dir.records.copy(out, at)
  }
  copyTogether()
  return at
}

/** `bytes`: without the checksum. */
export const isOurs = (bytes: Buffer): boolean =>
  bytes.length >= HEADER.size &&
  bytes.toString('latin1', 0, MAGIC.length) === MAGIC &&
  bytes.readUInt32LE(HEADER.version) === VERSION

export function headerText(bytes: Buffer) {
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

/** Goes through a file that lies at `start` of `bytes`. `base` says what all of it says. Returns its root tree. */
export function decode(
  bytes: Buffer,
  cacheBytes: CacheBytes,
  start: number,
  base: Base | undefined,
  visit: (path: Raw, dir: StoredDir, isGone: boolean) => void,
): Id {
  const body = bytes.subarray(start)
  const { text, textAt, textEnd, rulesEnd, root, rules } = headerText(body)
  const table = new Uint32Array(body.buffer.slice(body.byteOffset + HEADER.size, body.byteOffset + textAt))
  const file = { table, text, rules, cacheBytes, recordsAt: start + textEnd }
  let at = rulesEnd
  for (let row = 0; row < table.length; row += COLUMN.count) {
    const path = text.slice(at, table[row + COLUMN.pathEnd]!)
    visit(path, new StoredDir(file, row, base), (table[row + COLUMN.marks]! & GONE) !== 0)
    at = table[row + COLUMN.childrenEnd]!
  }
  return root
}
