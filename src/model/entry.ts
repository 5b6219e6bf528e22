/**
 * What a snapshot knows about one name in a directory. `unknown` entries exist but were not captured (excluded, too
 * large, unreadable, another mount…): a restore leaves them alone. A name without an entry is known to be absent.
 */
import type { Raw } from './raw-path.ts'

/** A BLAKE3-256 digest as a raw string of 32 characters, so that it can be a Map key. */
export type Id = string

export type KnownKind = 'file' | 'dir' | 'link' | 'fifo' | 'char' | 'block'
export type EntryKind = KnownKind | 'unknown'

export const unknownReasons = [
  'excluded', // by an ignore rule
  'too-large', // above snapshots.max_file_bytes
  'unreadable', // permission or I/O error
  'mount', // another filesystem, mount or subvolume
  'store', // our own store
  'socket', // a live endpoint, not content
  'unstable', // kept changing while it was read
  'lock', // a live git lock file
  'purged', // removed from history by `purge`
  'vanished', // gone between listing and reading
  'no-room', // the disk was full, and the restore that came next did not touch it
  'other-store', // another store of Savepoint
] as const
export type UnknownReason = (typeof unknownReasons)[number]

export interface Entry {
  name: Raw
  kind: EntryKind
  /** Permission bits with setuid, setgid and sticky (0o7777). */
  mode: number
  uid: number
  gid: number
  /** 0n for directories: a change of directory mtime alone is not a change. */
  mtimeNs: bigint
  size: number
  /** file: BLAKE3 of the whole content. dir: id of its tree object. Otherwise ''. */
  content: Id
  /** link: its target. */
  target: Raw
  /** Same non-zero number = hard links of one file within this tree. */
  linkGroup: bigint
  /** Encoded as in native/addon readEntries; undefined when there are none. */
  xattrs: Buffer | undefined
  sparse: boolean
  rdevMajor: number
  rdevMinor: number
  reason: UnknownReason | undefined
  /** unknown: what kind of thing is there; absent where that is not told. */
  found?: KnownKind
  /** too-large: the size that it was above; absent where that is not told. */
  limit?: number
}

/** Everything zero, empty or absent: what a kind does not use stays so. */
export const blankEntry = (name: Raw, kind: EntryKind): Entry => ({
  name,
  kind,
  mode: 0,
  uid: 0,
  gid: 0,
  mtimeNs: 0n,
  size: 0,
  content: '',
  target: '',
  linkGroup: 0n,
  xattrs: undefined,
  sparse: false,
  rdevMajor: 0,
  rdevMinor: 0,
  reason: undefined,
})

export type ChangeKind = 'added' | 'deleted' | 'modified' | 'metadata' | 'type-changed' | 'renamed'

/** One difference between two trees. `path` is the path in the newer one (deleted: in the older one). */
export interface Change {
  kind: ChangeKind
  path: Raw
  /** renamed: where it was. */
  from?: Raw
  before?: Entry
  after?: Entry
  /** The topmost directory that was added or deleted with everything in it, when it lies in one. */
  within?: Raw
}

export interface ChangeCounts {
  added: number
  modified: number
  deleted: number
}
