/**
 * The stat cache on disk: one file with all of it, the base, and beside it one with the directories that are not as that
 * says, so that ten changed files in a large tree do not cost the whole. Losing either costs time, never correctness:
 * they are checksummed, the second names the first, and what is odd is ignored.
 */
import { closeSync, fstatSync, openSync, rmSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Id } from '../../model/entry.ts'
import { hashBytes, ID_BYTES } from '../../model/id.ts'
import type { Raw } from '../../model/raw-path.ts'
import { writeByRename } from '../../store/durable.ts'
import { readFully } from '../../store/pack-reader.ts'
import {
  type Base,
  type CachedDir,
  CachedDirs,
  emptyCache,
  type StatCache,
  StoredDir,
  storedSpan,
} from './stat-cache.ts'

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
  marks: 5, // noteworthy, OVERRIDDEN, GONE
  unknown: 6,
  skipped: 7,
  files: 8,
  bytesLow: 9,
  bytesHigh: 10,
  count: 11,
} as const
const OVERRIDDEN = 0x100
/** Only beside a base: the directory is there no more. */
const GONE = 0x200
const TWO_32 = 0x1_0000_0000
/** More than this part of the base is not kept beside it: it is written anew. */
const BESIDE_PART = 8

const NAME = 'statcache'
const fileIn = (directory: string): string => join(directory, NAME)
const besideIn = (directory: string): string => join(directory, `${NAME}.changes`)

/** Not fsynced: after a power cut the checksum tells a torn cache, and the next capture reads everything once. */
export function saveStatCache(directory: string, cache: StatCache): void {
  if (cache.base && saveBeside(directory, cache, cache.base)) return
  const file = fileIn(directory)
  const bytes = encode(cache)
  writeByRename(file, [bytes])
  rmSync(besideIn(directory), { force: true })
  const sum = bytes.toString('latin1', bytes.length - CHECKSUM_BYTES)
  cache.base = { sum, identity: identityOf(statSync(file)), paths: [...cache.dirs.keys()] }
  for (const dir of cache.dirs.values()) dir.base = cache.base
}

/** false when too much is not as the base says, or when another process has written a base of its own. */
function saveBeside(directory: string, { dirs, rootKey, root, bytes }: StatCache, base: Base): boolean {
  const stat = statSync(fileIn(directory), { throwIfNoEntry: false })
  if (!stat || identityOf(stat) !== base.identity) return false
  const changed = new Map<Raw, CachedDir>()
  for (const path of base.paths) if (!dirs.has(path)) changed.set(path, gone)
  for (const [path, dir] of dirs) if (dir.base !== base) changed.set(path, dir)
  if (changed.size > base.paths.length / BESIDE_PART) return false
  writeByRename(besideIn(directory), [encode({ dirs: changed, rootKey: base.sum + rootKey, root, bytes })])
  return true
}

const gone: CachedDir = {
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

const identityOf = ({ dev, ino, size, mtimeMs }: Stats): string => `${dev}:${ino}:${size}:${mtimeMs}`

interface Contents {
  dirs: ReadonlyMap<Raw, CachedDir>
  rootKey: string
  root: Id
  /** Where most of the records lie one behind another. */
  bytes: Buffer
}

function encode({ dirs, rootKey, root, bytes }: Contents): Buffer {
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
function copyRecords(dirs: ReadonlyMap<Raw, CachedDir>, bytes: Buffer, out: Buffer, start: number): number {
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

/** The cache of a timeline, or an empty one when there is none that can be trusted. */
export function loadStatCache(directory: string, rootKey: string): StatCache {
  const files = readFiles(directory)
  if (files?.rootKey !== rootKey) return emptyCache(rootKey)
  const { bytes, beside, sum, identity } = files
  const base = { sum, identity, paths: [] as Raw[] }
  const dirs = new CachedDirs()
  let root = decode(bytes, 0, (path, dir) => {
    dir.base = base
    base.paths.push(path)
    dirs.set(path, dir)
  })
  if (beside)
    root = decode(
      bytes,
      beside.byteOffset - bytes.byteOffset,
      (path, dir, isGone) => void (isGone ? dirs.delete(path) : dirs.set(path, dir)),
    )
  return { dirs, rootKey, bytes, root, base }
}

/** The root tree of the cache of a timeline; '' when there is none that can be trusted. */
export function loadStatCacheRoot(directory: string): Id {
  const files = readFiles(directory)
  return files ? headerText(files.beside ?? files.whole).root : ''
}

export function removeStatCache(directory: string): void {
  rmSync(fileIn(directory), { force: true })
  rmSync(besideIn(directory), { force: true })
}

/** What can be trusted, without the checksums. In one buffer, as the scan of all directories wants the records. */
function readFiles(directory: string) {
  const opened: number[] = []
  try {
    const whole = openedFile(fileIn(directory), opened)
    if (!whole) return undefined
    const changes = openedFile(besideIn(directory), opened)
    const bytes = Buffer.allocUnsafe(whole.size + (changes?.size ?? 0))
    const base = readChecked(whole, bytes.subarray(0, whole.size))
    if (!base) return undefined
    const { rootKey } = headerText(base.body)
    const beside = changes && readChecked(changes, bytes.subarray(whole.size))?.body
    const isOfBase = beside && headerText(beside).rootKey === base.sum + rootKey
    const { body, sum } = base
    return { bytes, whole: body, sum, identity: whole.identity, rootKey, beside: isOfBase ? beside : undefined }
  } catch {
    return undefined
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}

interface OpenedFile {
  fd: number
  size: number
  identity: string
}

/** undefined when there is none. Others replace it as a whole: its size stays. */
function openedFile(file: string, opened: number[]): OpenedFile | undefined {
  try {
    const fd = openSync(file, 'r')
    opened.push(fd)
    const stat = fstatSync(fd)
    return { fd, size: stat.size, identity: identityOf(stat) }
  } catch {
    return undefined
  }
}

function readChecked({ fd }: OpenedFile, bytes: Buffer): { body: Buffer; sum: string } | undefined {
  if (bytes.length < HEADER.size + CHECKSUM_BYTES || !readFully(fd, bytes, 0)) return undefined
  const body = bytes.subarray(0, bytes.length - CHECKSUM_BYTES)
  const sum = bytes.toString('latin1', body.length)
  return hashBytes(body) === sum && isOurs(body) ? { body, sum } : undefined
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

/** Goes through a file that lies at `start` of `bytes`. Returns its root tree. */
function decode(bytes: Buffer, start: number, visit: (path: Raw, dir: StoredDir, isGone: boolean) => void): Id {
  const body = bytes.subarray(start)
  const { text, textAt, textEnd, rulesEnd, root, rules } = headerText(body)
  const table = new Uint32Array(body.buffer.slice(body.byteOffset + HEADER.size, body.byteOffset + textAt))
  let at = rulesEnd
  let recordsAt = 0
  for (let row = 0; row < table.length; row += COLUMN.count) {
    const pathEnd = table[row + COLUMN.pathEnd]!
    const childrenAt = pathEnd + ID_BYTES
    const childrenEnd = table[row + COLUMN.childrenEnd]!
    const recordsEnd = table[row + COLUMN.recordsEnd]!
    const dir = new StoredDir(bytes, start + textEnd + recordsAt, recordsEnd - recordsAt)
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
    visit(text.slice(at, pathEnd), dir, (marks & GONE) !== 0)
    at = childrenEnd
    recordsAt = recordsEnd
  }
  return root
}
