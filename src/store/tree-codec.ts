/**
 * The encoding of one directory. Deterministic: equal directories have equal bytes, hence equal ids. Decoding is strict
 * (order, names, reserved bits), because trees also arrive from damaged disks and from other people's archives.
 * docs/format.md describes it byte by byte.
 */
import { blankEntry, type Entry, type EntryKind, type KnownKind, unknownReasons } from '../model/entry.ts'
import { hashBytes, ID_BYTES } from '../model/id.ts'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'

const TREE_MAGIC = 0x54
const TREE_VERSION = 1
const MAX_NAME_BYTES = 255
const kinds: EntryKind[] = ['file', 'dir', 'link', 'fifo', 'char', 'block', 'unknown']
const kindCode = new Map(kinds.map((kind, index) => [kind, index + 1]))
const FLAG = { xattrs: 1, sparse: 2, linkGroup: 4 } as const
/** Above the flags, of an unknown entry: the kind of what is there. */
const FOUND_SHIFT = 3

/** `entries` must be sorted by name (byte order) without duplicates. */
export function encodeTree(entries: readonly Entry[]): Buffer {
  const out = new ByteWriter(64 + entries.length * 96)
  out.u8(TREE_MAGIC)
  out.u8(TREE_VERSION)
  out.varint(entries.length)
  for (const entry of entries) encodeEntry(out, entry)
  return out.finish()
}

/** The id of a directory with nothing in it; the store knows it without having it. */
export const EMPTY_TREE = hashBytes(encodeTree([]))

function encodeEntry(out: ByteWriter, entry: Entry): void {
  out.u8(kindCode.get(entry.kind)!)
  out.u8(flagsOf(entry))
  out.varint(entry.name.length)
  out.raw(entry.name)
  if (entry.kind === 'unknown') {
    out.u8(unknownReasons.indexOf(entry.reason ?? 'excluded'))
    if (hasLimit(entry)) out.varint(entry.limit ?? 0)
    return
  }
  out.varint(entry.mode)
  out.varint(entry.uid)
  out.varint(entry.gid)
  if (entry.kind !== 'dir') out.i64(entry.mtimeNs)
  if (entry.kind === 'file') {
    out.varint(entry.size)
    out.raw(entry.content)
  } else if (entry.kind === 'dir') {
    out.raw(entry.content)
  } else if (entry.kind === 'link') {
    out.varint(entry.target.length)
    out.raw(entry.target)
  } else if (entry.kind === 'char' || entry.kind === 'block') {
    out.varint(entry.rdevMajor)
    out.varint(entry.rdevMinor)
  }
  if (entry.xattrs) {
    out.varint(entry.xattrs.length)
    out.bytes(entry.xattrs)
  }
  if (entry.linkGroup !== 0n) out.u64(entry.linkGroup)
}

const hasLimit = ({ reason, found }: Entry): boolean => reason === 'too-large' && found !== undefined

const flagsOf = ({ xattrs, sparse, linkGroup, found }: Entry): number =>
  (xattrs ? FLAG.xattrs : 0) |
  (sparse ? FLAG.sparse : 0) |
  (linkGroup !== 0n ? FLAG.linkGroup : 0) |
  (found ? kindCode.get(found)! << FOUND_SHIFT : 0)

export const decodeTree = (bytes: Buffer): Entry[] => [...decodeEntries(bytes)]

/** How many entries the tree says to have. */
export const treeLength = (bytes: Buffer): number => startTree(bytes).count

/** One entry after another, so that a directory of any width can be gone through without holding it. */
export function* decodeEntries(bytes: Buffer): Generator<Entry> {
  const { input, count } = startTree(bytes)
  let previous = ''
  for (let i = 0; i < count; i++) {
    const entry = decodeEntry(input)
    if (i > 0 && entry.name <= previous) throw input.malformed('its names are not in order')
    previous = entry.name
    yield entry
  }
  if (!input.finished) throw input.malformed('it has bytes after its end')
}

export const readTree = (bytes: Buffer, at = 0): ByteReader => new ByteReader(bytes, 'a tree', at)

export function startTree(bytes: Buffer): { input: ByteReader; count: number } {
  const input = readTree(bytes)
  if (input.u8() !== TREE_MAGIC) throw input.malformed('it is not a tree')
  if (input.u8() !== TREE_VERSION) throw input.malformed('its version is unknown')
  return { input, count: input.varint() }
}

export function decodeEntry(input: ByteReader): Entry {
  const kind = kinds[input.u8() - 1]
  if (!kind) throw input.malformed('an entry has an unknown kind')
  const flags = input.u8()
  if (flags > 7 && kind !== 'unknown') throw input.malformed('an entry has unknown flags')
  const name = input.raw(input.varint())
  if (!isSafeName(name)) throw input.malformed('an entry has an impossible name')
  const entry = blankEntry(name, kind)
  if (kind === 'unknown') {
    const found = kinds[(flags >> FOUND_SHIFT) - 1]
    if (flags !== 0 && (!found || found === 'unknown' || flags !== kindCode.get(found)! << FOUND_SHIFT))
      throw input.malformed('an unknown entry has flags')
    if (found) entry.found = found as KnownKind
    entry.reason = unknownReasons[input.u8()]
    if (!entry.reason) throw input.malformed('an entry has an unknown reason')
    if (hasLimit(entry)) entry.limit = input.varint()
    return entry
  }
  entry.mode = input.varint()
  if (entry.mode > 0o7777) throw input.malformed('an entry has an impossible mode')
  entry.uid = input.varint()
  entry.gid = input.varint()
  if (kind !== 'dir') entry.mtimeNs = input.i64()
  if (kind === 'file') {
    entry.size = input.varint()
    entry.content = input.raw(ID_BYTES)
  } else if (kind === 'dir') {
    entry.content = input.raw(ID_BYTES)
  } else if (kind === 'link') {
    entry.target = input.raw(input.varint())
    entry.size = entry.target.length
  } else if (kind === 'char' || kind === 'block') {
    entry.rdevMajor = input.varint()
    entry.rdevMinor = input.varint()
  }
  if (flags & FLAG.xattrs) entry.xattrs = Buffer.from(input.bytes(input.varint()))
  entry.sparse = (flags & FLAG.sparse) !== 0
  if (flags & FLAG.linkGroup) {
    entry.linkGroup = input.u64()
    if (entry.linkGroup === 0n) throw input.malformed('a link group has no number')
  }
  return entry
}

/** Where the entry at `at` ends, found without reading it; beyond the bytes where it does not end in them. */
export function entryEnd(bytes: Buffer, at: number): number {
  const kind = kinds[bytes[at]! - 1]
  const flags = bytes[at + 1]!
  let end = skipText(bytes, at + 2)
  if (kind === 'unknown') {
    const hasMore = flags !== 0 && unknownReasons[bytes[end]!] === 'too-large'
    return hasMore ? skipVarint(bytes, end + 1) : end + 1
  }
  for (let numbers = 0; numbers < 3; numbers++) end = skipVarint(bytes, end)
  if (kind !== 'dir') end += 8
  if (kind === 'file') end = skipVarint(bytes, end) + ID_BYTES
  else if (kind === 'dir') end += ID_BYTES
  else if (kind === 'link') end = skipText(bytes, end)
  else if (kind === 'char' || kind === 'block') end = skipVarint(bytes, skipVarint(bytes, end))
  if (flags & FLAG.xattrs) end = skipText(bytes, end)
  return flags & FLAG.linkGroup ? end + 8 : end
}

function skipVarint(bytes: Buffer, at: number): number {
  let end = at
  while (bytes[end]! >= 0x80) end++
  return end + 1
}

function skipText(bytes: Buffer, at: number): number {
  let length = 0
  let factor = 1
  let end = at
  for (; bytes[end]! >= 0x80; end++) {
    length += (bytes[end]! & 0x7f) * factor
    factor *= 0x80
  }
  return end + 1 + length + (bytes[end] ?? 0) * factor
}

/** Whether `name` can be one component of a path: not empty, not "." or "..", without "/" and NUL. */
export const isSafeName = (name: string): boolean =>
  name.length > 0 &&
  name.length <= MAX_NAME_BYTES &&
  name !== '.' &&
  name !== '..' &&
  !name.includes('/') &&
  !name.includes('\0')
