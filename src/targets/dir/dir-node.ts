/** One directory while it is being captured, and how its entries become a tree. */
import type { DirRules } from '../../files/ignore-rules.ts'
import { blankEntry, type Entry, type Id, type KnownKind, type UnknownReason } from '../../model/entry.ts'
import { hashBytes } from '../../model/id.ts'
import { isWithin, joinRaw, type Raw, rawToBytes } from '../../model/raw-path.ts'
import type { ReadResult } from './ingest-read.ts'
import type { CachedDir } from './stat-cache.ts'
import * as record from './walk-record.ts'

export interface DirNode {
  path: Raw
  name: Raw
  parent: DirNode | undefined
  /** Rules from above until the listing is known, then those in force for its entries. */
  rules: DirRules
  rulesIn: string
  /** What the trees that a restore is about have here: those names are captured whatever the rules say. */
  override: readonly Id[]
  /** Inside an excluded directory that is entered only for `override`. */
  overrideOnly: boolean
  /** Something was captured only because of `override`: an ordinary capture must look again. */
  overridden: boolean
  cached: CachedDir | undefined
  /** What the walk saw; empty as long as the cached tree still holds. */
  records: Buffer
  /** The entries by name; undefined as long as the cached tree still holds. Deleted from when an entry vanishes. */
  entries: Map<Raw, Entry> | undefined
  /** Offsets (in `records`) of regular files whose hard-link group is to be found. */
  linked: { name: Raw; ino: bigint }[]
  /** Names of the subdirectories that were entered. */
  childDirs: Raw[]
  /** See noteworthy-names. */
  noteworthy: number
  /** Reads and subdirectories that are not finished yet, and the listing itself. */
  pending: number
  /** The directory of a git repository that this one belongs to, if any. */
  gitDir: Raw | undefined
  tree: Id
}

const noRecords = Buffer.alloc(0)

export function createNode(
  parent: DirNode | undefined,
  name: Raw,
  rules: DirRules,
  cached: CachedDir | undefined,
): DirNode {
  return {
    path: parent ? joinRaw(parent.path, name) : '',
    name,
    parent,
    rules,
    rulesIn: rules.key,
    override: [],
    overrideOnly: false,
    overridden: false,
    cached,
    records: noRecords,
    entries: undefined,
    linked: [],
    childDirs: [],
    noteworthy: 0,
    pending: 1,
    gitDir: undefined,
    tree: '',
  }
}

export const kindOfType = new Map<number, KnownKind>([
  [record.S_IFREG, 'file'],
  [record.S_IFDIR, 'dir'],
  [record.S_IFLNK, 'link'],
  [record.S_IFIFO, 'fifo'],
  [record.S_IFCHR, 'char'],
  [record.S_IFBLK, 'block'],
])

export const isOfKind = (mode: number, kind: Entry['kind']): boolean => kindOfType.get(mode & record.S_IFMT) === kind

/**
 * The entry for what was read. Its type may differ from what the walk saw; then it is settled in the next pass.
 * `blank`, if it is of the right kind, is filled and returned: one object less per file.
 */
export function entryFromResult(name: Raw, result: ReadResult, blank?: Entry): Entry {
  const kind = kindOfType.get(result.mode & record.S_IFMT)
  if (result.unknown || !kind) return unknownEntry(name, result.unknown ?? 'socket')
  const entry = blank?.kind === kind ? blank : blankEntry(name, kind)
  entry.mode = result.mode & 0o7777
  entry.uid = result.uid
  entry.gid = result.gid
  entry.xattrs = result.xattrs
  if (kind === 'dir') return entry
  entry.mtimeNs = result.mtimeNs
  if (kind === 'file') {
    entry.size = result.size
    entry.content = result.content
    entry.sparse = result.sparse
  } else if (kind === 'link') {
    entry.target = result.target
    entry.size = result.target.length
  } else if (kind !== 'fifo') {
    entry.rdevMajor = result.rdevMajor
    entry.rdevMinor = result.rdevMinor
  }
  return entry
}

export function unknownEntry(name: Raw, reason: UnknownReason, found?: KnownKind, limit?: number): Entry {
  const entry = blankEntry(name, 'unknown')
  entry.reason = reason
  if (found) entry.found = found
  if (limit !== undefined) entry.limit = limit
  return entry
}

/** The number that marks the members of a hard-link group: from its first path, so that it survives a restore. */
export function linkGroupNumber(firstPath: Raw): bigint {
  return rawToBytes(hashBytes(rawToBytes(firstPath))).readBigUInt64LE(0) | 1n
}

/** The directory of loose objects and packs, its fan-out included; `objects/info` speaks about objects, so it is none. */
export function isObjectDir({ gitDir, path }: DirNode): boolean {
  if (gitDir === undefined) return false
  const objects = joinRaw(gitDir, 'objects')
  return isWithin(path, objects) && !isWithin(path, joinRaw(objects, 'info'))
}

export const isPackDir = ({ gitDir, path }: DirNode): boolean =>
  gitDir !== undefined && path === joinRaw(gitDir, 'objects/pack')
