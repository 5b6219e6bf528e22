/**
 * The log of a recording (native/helper/seen.c): every path that was seen, with the state that it had then, and where contents are
 * kept that were changed since. A record that is not whole, at the end, was never finished.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Raw } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import { BadFrame, FIELD, FRAME, Frame, FrameReader } from './frames.ts'

/** Bits of what a path is seen as (`enum seen_as`). */
export const SEEN = {
  read: 1,
  written: 2,
  lookedAt: 4,
  listed: 8,
  deleted: 16,
  executed: 32,
  moved: 128,
  inherited: 256,
} as const

export interface SeenState {
  /** With its type bits. */
  mode: number
  /** The rights of its group (0 to 7), where an access list has them and the mode says in their place what that allows at most. */
  group: number | undefined
  uid: number
  gid: number
  size: number
  mtimeNs: bigint
  /** Device and inode. */
  identity: string
  rdev: bigint
  /** Of a symbolic link. */
  target: Raw | undefined
}

export interface SeenPath {
  path: Raw
  /** Of SEEN. */
  as: number
  /** undefined: nothing was there. */
  before: SeenState | undefined
}

export interface SavedContent {
  /** Its name in the spool; undefined when it could not be saved, and `errno` says why. */
  name: string | undefined
  errno: number
  /** What it was when it was saved, if somebody else had changed it since it was seen. */
  changed: SeenState | undefined
}

export interface RecordLog {
  /** Without those that are settled. */
  paths: Map<Raw, SeenPath>
  /** Paths that were only looked at, and are still as they were. */
  settled: SettledPaths
  /** By the identity of the file. */
  saved: Map<string, SavedContent>
  /** Identities of files whose times the recording itself has set: they say nothing of their contents. */
  stamped: Set<string>
  lost: number
  /** Calls about paths that are not recorded. */
  ignored: number
  foreign: number
  /** Whether the helper saw the end. */
  complete: boolean
}

/** Layout of one path that `addon.settleLooks` gives. */
export const SETTLED = { offset: 0 /* u32, of its frame */, as: 4 /* u32, of SEEN */, size: 8 } as const

/** Views for `addon.looksText`: they need no object each. */
export interface SettledPaths {
  /** Of the log. */
  bytes: Buffer
  /** Of SETTLED. */
  index: Buffer
}

const READ_BYTES = 1024 * 1024
/** Of a larger one nothing is settled: it is not held in memory. */
const MAX_WHOLE_BYTES = 1024 ** 3
const LENGTH_BYTES = 4

/** `settles`: looks again at the paths that were only looked at; so when all has ended. */
export function readRecordLog(file: string, settles: boolean): RecordLog {
  const nothing = Buffer.alloc(0)
  const log: RecordLog = {
    paths: new Map(),
    settled: { bytes: nothing, index: nothing },
    saved: new Map(),
    stamped: new Set(),
    lost: 0,
    ignored: 0,
    foreign: 0,
    complete: false,
  }
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return log
    throw error
  }
  try {
    if (settles && fstatSync(fd).size <= MAX_WHOLE_BYTES) takeUnsettled(log, readWhole(fd))
    else takeAll(log, fd)
  } finally {
    closeSync(fd)
  }
  return log
}

function takeAll(log: RecordLog, fd: number): void {
  const byNumber: SeenPath[] = []
  const reader = new FrameReader(frame => take(log, byNumber, frame))
  const chunk = Buffer.allocUnsafe(READ_BYTES)
  try {
    for (let got = readSync(fd, chunk); got > 0; got = readSync(fd, chunk))
      reader.push(Buffer.from(chunk.subarray(0, got)))
  } catch (error) {
    if (!(error instanceof BadFrame)) throw error
    log.complete = false
  }
}

function takeUnsettled(log: RecordLog, bytes: Buffer): void {
  const { settled, rest } = addon.settleLooks(bytes)
  log.settled = { bytes, index: settled }
  const byNumber: SeenPath[] = []
  for (let i = 0; i < rest.length; i += 4) {
    const at = rest.readUInt32LE(i) + LENGTH_BYTES
    take(log, byNumber, new Frame(bytes.subarray(at, at + bytes.readUInt32LE(at - LENGTH_BYTES))))
  }
}

/** What comes meanwhile is left out. */
function readWhole(fd: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(fstatSync(fd).size)
  let done = 0
  for (let got = -1; got !== 0 && done < bytes.length; done += got)
    got = readSync(fd, bytes, done, bytes.length - done, done)
  return bytes.subarray(0, done)
}

function take(log: RecordLog, byNumber: SeenPath[], frame: Frame): void {
  const number = frame.number(FIELD.number) ?? 0
  if (frame.type === FRAME.seen) {
    const path = frame.raw(FIELD.path)!
    const seen: SeenPath = { path, as: frame.op, before: stateOf(frame) }
    byNumber[number] = seen
    log.paths.set(path, seen)
  } else if (frame.type === FRAME.seenAs) {
    const seen = byNumber[number]
    if (seen) seen.as |= frame.op
  } else if (frame.type === FRAME.saved) {
    const name = frame.op === 0 ? String(number) : undefined
    log.saved.set(identityOf(frame), { name, errno: frame.op, changed: stateOf(frame) })
  } else if (frame.type === FRAME.stamped) {
    log.stamped.add(identityOf(frame))
  } else if (frame.type === FRAME.seenAll) {
    log.lost = number
    log.ignored = frame.number(FIELD.exec)!
    log.foreign = frame.number(FIELD.parent)!
    log.complete = true
  }
}

const identityOf = (frame: Frame): string => `${frame.long(FIELD.device)}:${frame.long(FIELD.inode)}`

/** `struct logged_stat`. */
function stateOf(frame: Frame): SeenState | undefined {
  const at = frame.offsetOf(FIELD.stat)
  if (at < 0) return undefined
  const { bytes } = frame
  const mode = bytes.readUInt32LE(at)
  const isDevice = (mode & TYPE_BITS) === CHARACTER || (mode & TYPE_BITS) === BLOCK
  return {
    mode,
    group: frame.number(FIELD.mode),
    uid: bytes.readUInt32LE(at + 4),
    gid: bytes.readUInt32LE(at + 8),
    size: Number(bytes.readBigUInt64LE(at + 16)),
    mtimeNs: bytes.readBigInt64LE(at + 24),
    identity: `${bytes.readBigUInt64LE(at + 48)}:${bytes.readBigUInt64LE(at + 40)}`,
    rdev: isDevice ? bytes.readBigUInt64LE(at + 56) : 0n,
    target: (mode & TYPE_BITS) === LINK ? frame.raw(FIELD.to) : undefined,
  }
}

const TYPE_BITS = 0o170000
const CHARACTER = 0o020000
const BLOCK = 0o060000
const LINK = 0o120000
