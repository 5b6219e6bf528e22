/**
 * The typed door to `native/addon` (raw N-API C). Mechanism only: no policy lives there. Every path is relative to a
 * directory descriptor `root` and is resolved beneath it without following symlinks (openat2 RESOLVE_BENEATH |
 * RESOLVE_NO_SYMLINKS on the parent; the last component is never followed), also when it is longer than PATH_MAX.
 * '' names the root itself. Paths and names cross as latin1 strings ("raw", one character per byte) or as NUL-separated
 * Buffers in batch calls ("a\0b" holds two, "" holds one: the root; nothing follows the last). '.', '..' and empty
 * components and absolute paths are EINVAL. A failed call throws an Error with `code` ("ENOENT"), `errno` (negative),
 * `syscall` and `path`, like node:fs; batch calls never throw for one item but return its errno (positive).
 */

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { SavepointError } from '../errors/errors.ts'
import type { BtrfsCalls } from './btrfs-calls.ts'
import type { LooksCalls } from './looks-calls.ts'
import type { MappingCalls } from './mapping-calls.ts'
import type { Stat } from './stat.ts'

export type { Stat }

/** Layout of one walk record: little-endian, packed, the name follows. Directories have nlink, size and mtime 0, mount points also ctime. */
export const RECORD = {
  nameLength: 0, // u16
  mode: 2, // u16, st_mode with its type bits
  nlink: 4, // u32
  uid: 8, // u32
  gid: 12, // u32
  size: 16, // u64
  mtimeNs: 24, // i64
  ctimeNs: 32, // i64
  ino: 40, // u64
  rdevMajor: 48, // u32; the errno when flag `statFailed` is set
  rdevMinor: 52, // u32
  flags: 56, // u8
  name: 60,
} as const
export const RECORD_FLAG = { mountPoint: 1, statFailed: 2 } as const

/** Layout of the header before each directory's records in the result of `scanDirs`. */
export const SCAN_HEADER = {
  bytes: 0 /* u32, of the records */,
  count: 4 /* u32 */,
  errno: 8 /* i32 */,
  same: 12 /* u32; 1: the records are those that the caller knows, and are not repeated */,
  ctimeNs: 16 /* i64, of the directory, after everything in it was looked at */,
  size: 24,
} as const

/** Layout of one span in the last argument of `scanDirs`. All bits set: nothing is known of this directory. */
export const SPAN = { offset: 0 /* u32 */, length: 4 /* u32 */, size: 8 } as const

/** Layout of one result of `readEntries` and `writeFiles`: 128 bytes each. */
export const META = {
  errno: 0, // i32
  flags: 4, // u32
  mode: 8, // u32
  nlink: 12, // u32
  uid: 16, // u32
  gid: 20, // u32
  size: 24, // u64
  mtimeNs: 32, // i64
  ctimeNs: 40, // i64
  ino: 48, // u64
  contentOffset: 56, // u32, in `out`
  contentLength: 60, // u32
  xattrOffset: 64, // u32, in `out`
  xattrLength: 68, // u32
  rdevMajor: 72, // u32
  rdevMinor: 76, // u32
  btimeNs: 80, // i64 (0 when the filesystem has none)
  dev: 88, // u64
  id: 96, // 32 bytes: the BLAKE3 hash of the content of a regular file that `readEntries` has read
  size_: 128,
} as const
/** unstable: changed while read, even after retries. sparse: has a hole. tooBig: content above `maxContent`, not read. */
export const META_FLAG = {
  unstable: 1,
  sparse: 2,
  tooBig: 4,
  xattrsFailed: 8,
  ownerFailed: 16,
  modeFailed: 32,
} as const

/** What `ingestNew` reports. */
export const EVENT = { read: 0, block: 1, flushed: 2, failed: 3 } as const

/** `bytes`: META records after `read`, a block of a pack after `block`. `errno` is positive. */
export type IngestEvent = (kind: number, batch: number, errno: number, bytes: Buffer, extra: Buffer) => void

/** Threads of their own, not of libuv: a process that ends stops them. */
export interface NativeIngest {
  readonly _: unique symbol
}

export interface Addon extends BtrfsCalls, LooksCalls, MappingCalls {
  /**
   * Lists directories with statx of every entry, on a libuv thread. `paths`: NUL-separated, each relative to root.
   * Result: per directory a SCAN_HEADER and its records sorted by name bytes. A directory that cannot be listed has its
   * errno and no records. An entry on another mount (other mount id than its directory) is flagged, and so is a
   * directory with another st_dev (a nested btrfs subvolume). A directory that is a symlink has errno ENOTDIR.
   *
   * `known` holds records of earlier scans; `spans`, a SPAN per path, says where. Neither may be changed meanwhile.
   */
  scanDirs(root: number, paths: Buffer, known?: Buffer, spans?: Buffer): Promise<Buffer>
  /**
   * Reads entries whole: regular files up to `maxContent` bytes (content), symlinks (target), and the xattrs of
   * everything (encoded as: u16 nameLength, name, u32 valueLength, value, sorted by name; system.posix_acl_* included).
   * Never blocks on FIFOs or devices, never follows links. A regular file is read until two fstats around the read agree
   * (size, mtime, ctime) and nothing was being written meanwhile, with at most `retries` further attempts; then flag
   * unstable. A file changed in the present clock tick is waited for (some ms; at most 0.5 s per call). Fills `out` until the next entry does not fit.
   * Returns how many entries were done (at least one: an entry that can never fit has errno EFBIG) and their META.
   */
  readEntries(
    root: number,
    paths: Buffer,
    out: Buffer,
    maxContent: number,
    retries: number,
  ): { done: number; meta: Buffer }
  /**
   * Starts threads that read, hash, and pack contents into blocks of a pack (docs/format.md). `zstd`: pairs of i32, a
   * ZSTD_cParameter and its value; none: blocks are not compressed. Compressed objects are kept when they are smaller
   * than the fraction `worthwhile` of the plain ones. Throws EOPNOTSUPP when Node lets nobody at its zstd, or it refuses a
   * parameter. `event` is called on this thread and must not throw. The process does not end before `ingestClose`.
   */
  ingestNew(
    settings: { threads: number; blockBytes: number; nice: number; worthwhile: number },
    zstd: Buffer,
    event: IngestEvent,
  ): NativeIngest
  /**
   * Queues entries to be read as by `readEntries`, and reports `read`: META per path, whose offsets (of link targets and
   * xattrs; contents stay inside) are into `extra`. `room`: what the contents should need, and more is found if they do.
   */
  ingestRead(
    ingest: NativeIngest,
    batch: number,
    root: number,
    paths: Buffer,
    room: number,
    maxContent: number,
    retries: number,
  ): void
  /**
   * Queues `length` bytes of an open file and reports `read`: META (offset, length, id) per chunk as `chunk` cuts them,
   * and in `extra` the state of `hasher` with those chunks added; `extra` is empty when the file ends too early.
   * `limits`: min, average and max as u32; empty: nothing is cut, all is hashed.
   */
  ingestWindow(
    ingest: NativeIngest,
    batch: number,
    fd: number,
    position: number,
    length: number,
    last: boolean,
    hasher: Buffer,
    limits: Buffer,
  ): void
  /** The verdict that each batch needs after `read`, whatever its errno: one byte per META, 1 to store; or empty: none. */
  ingestStore(ingest: NativeIngest, batch: number, wanted: Buffer): void
  /** Reports `flushed` when everything wanted by now was reported in blocks. */
  ingestFlush(ingest: NativeIngest): void
  /** Returns when no thread works any more. Nothing is reported afterwards. May be called twice. */
  ingestClose(ingest: NativeIngest): void
  /**
   * Creates regular files exclusively (O_EXCL) with content, owner, xattrs, mode and mtime, in this order.
   * `spec` per file: u16 pathLength, u16 flags (1 = skip zero blocks to stay sparse), u32 mode, u32 uid, u32 gid,
   * i64 mtimeNs, u32 contentOffset, u32 contentLength, u32 xattrOffset, u32 xattrLength, path. Offsets are into `data`.
   * Owner and xattrs that are refused (EPERM, ENOTSUP) set a flag. Any other failure unlinks what it made, sets errno.
   * The mode is exact (no umask). Returns META per file (stat after everything).
   */
  writeFiles(root: number, spec: Buffer, data: Buffer): Buffer

  /** Opens beneath root. `resolveSymlinks` false always; flags as in fs.constants. Returns a descriptor. */
  openAt(root: number, path: string, flags: number, mode: number): number
  /** Opens an absolute directory path (bytes) as root descriptor: O_PATH|O_DIRECTORY|O_CLOEXEC. Follows symlinks. */
  openRoot(path: Buffer): number
  close(fd: number): void
  statAt(root: number, path: string): Stat
  statFd(fd: number): Stat
  /** The umask applies, here and in mknodAt and openAt: chmodAt makes a mode exact. */
  mkdirAt(root: number, path: string, mode: number): void
  symlinkAt(target: Buffer, root: number, path: string): void
  mknodAt(root: number, path: string, mode: number, major: number, minor: number): void
  /** Hard-links `from` to `to`, both beneath root. */
  linkAt(root: number, from: string, to: string): void
  unlinkAt(root: number, path: string): void
  rmdirAt(root: number, path: string): void
  /** renameat2; flags: 0, RENAME_NOREPLACE 1, RENAME_EXCHANGE 2. Both paths beneath root. */
  renameAt(root: number, from: string, to: string, flags: number): void
  readlinkAt(root: number, path: string): Buffer
  /** Exact mode without following a symlink (EOPNOTSUPP). */
  chmodAt(root: number, path: string, mode: number): void
  chownAt(root: number, path: string, uid: number, gid: number): void
  /** Sets mtime (atime is left alone), not following a symlink. */
  utimesAt(root: number, path: string, mtimeNs: bigint): void
  /** Encoded as in readEntries. */
  getXattrs(root: number, path: string): Buffer
  /** Makes the set of xattrs equal to `encoded` (removes others it may remove). Returns the errno of the first refusal or 0. */
  setXattrs(root: number, path: string, encoded: Buffer): number

  /** LOCK_EX 2, LOCK_SH 1, LOCK_UN 8, LOCK_NB 4. Returns false on EWOULDBLOCK. */
  flock(fd: number, operation: number): boolean
  syncfs(fd: number): void
  /** FICLONE: makes `destination` share the blocks of `source`. Throws EOPNOTSUPP/EXDEV where it cannot. */
  cloneFd(source: number, destination: number): void
  /** Lets the kernel begin to write a file to disk, without waiting: a sync that follows finds little left to do. */
  startWriteback(fd: number): void
  /** Hints that subdirectories need not lie together (`chattr +T`): ext4 looks at each inode that was just freed nearby. */
  spreadSubdirs(fd: number): void
  /** Data segments of an open file as pairs [offset, length, …] by SEEK_DATA/SEEK_HOLE; the rest are holes. */
  dataSegments(fd: number, size: number): Float64Array
  /** 1: an open file has blocks in common with a snapshot or a clone, as FIEMAP tells; 0: none. Throws where that is not told. */
  sharesBlocks(fd: number): number
  /** BLAKE3, 32 bytes as a latin1 string. */
  hash(bytes: Uint8Array): string
  /** The same piece by piece: the state lies in the Buffer that `hasherNew` returns. The digest leaves it as it is. */
  hasherNew(): Buffer
  hasherUpdate(state: Buffer, bytes: Uint8Array): void
  hasherDigest(state: Buffer): string
  /**
   * Content-defined chunking (gear hash, normalised). Returns the end offsets of all chunks that are certain in
   * `buffer[start, end)`; with `last`, the tail is a chunk too. Deterministic for given limits, independent of how the
   * input was cut into buffers as long as the caller resumes at the last returned boundary.
   */
  chunk(
    buffer: Buffer,
    start: number,
    end: number,
    minBytes: number,
    averageBytes: number,
    maxBytes: number,
    last: boolean,
  ): Uint32Array
  /**
   * Writes the elements of a raw Snappy stream, without the length that stands before them, to the beginning of `out`; several may follow
   * each other. Returns how many bytes they take; `out` must have a few more than `bytes` (8 for each 64 KiB).
   */
  snappyCompress(bytes: Buffer, out: Buffer): number
  /** Fills `out` with what such elements say. Throws EBADMSG when they are unsound, or say more or less. */
  snappyUncompress(elements: Buffer, out: Buffer): void
  /** The same from a file into another, from its beginning: however much it is, with the same few megabytes of memory. */
  snappyExpand(from: number, offset: number, elementsLength: number, to: number, length: number): void
  /** From the system's generator; at most 256. */
  randomBytes(length: number): Buffer
  /** Gives back to the system what is free. */
  trimMemory(): void
  /** Whether descendants that lose their parents become our children (Linux: subreaper). */
  adoptOrphans(adopts: boolean): void
  /** The wait status of a child that Node does not know; undefined while it lives. Throws ECHILD when it is none of ours. */
  takeEnd(pid: number): number | undefined
  /** Raw argv bytes of this process, NUL-separated. */
  rawArgv(): Buffer
  /** Written to stderr, once, when a signal to end comes that somebody handles: JavaScript may be waiting. No bytes: nothing any more. */
  signalNote(text: Buffer): void
  /** Both ends of a pipe. Node's own are sockets, which a program cannot open as /dev/stdout. */
  pipe(): { read: number; write: number }
  /** A descriptor of a process: what is sent through it never reaches another one of the same number. */
  pidfdOpen(pid: number): number
  pidfdSignal(fd: number, signal: number): void
  /** Who is at the other end of a unix socket, as the system saw it when it connected (SO_PEERCRED). */
  peerOf(fd: number): { pid: number; uid: number }
  /** How a terminal is set (tcgetattr), to be given back later; undefined when it is none. */
  terminalModes(fd: number): Buffer | undefined
  /** Only for the process group in the foreground: another one is left alone, and so is its terminal. Whether it was done. */
  setTerminalModes(fd: number, modes: Buffer): boolean
  /** Whether what another process of our job does with the terminal, from the background, stops us as well; it does unless said otherwise. */
  ignoreTerminalStops(isIgnored: boolean): void
  /** Free and total bytes for an unprivileged user, and the filesystem's magic number. */
  statfs(fd: number): { free: number; total: number; type: number }
  /** Of the filesystem, whatever device it is on: its UUID, no bytes where nobody tells. */
  filesystemId(fd: number): Buffer
  /** Of the mount: no other one gets the same number until the machine is started again. 0n where nobody tells. */
  uniqueMount(fd: number): bigint
}

function load(): Addon {
  const require = createRequire(import.meta.url)
  // From dist/ and from src/native/ alike: the addon lies in build/ at the root of the package.
  for (const relative of ['../build/savepoint.node', '../../build/savepoint.node']) {
    const file = new URL(relative, import.meta.url)
    if (existsSync(file)) return require(fileURLToPath(file)) as Addon
  }
  throw new SavepointError('unsupported', 'Cannot load the native addon: build/savepoint.node does not exist', {
    hint: 'Run `npm run build` (it needs a C compiler: apt-get install gcc)',
  })
}

export const addon: Addon = load()
