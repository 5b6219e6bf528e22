/**
 * The log of a recording (native/helper/seen.c): every path that was seen, with the state that it had then, and where contents are
 * kept that were changed since. A record that is not whole, at the end, was never finished.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Raw } from '../model/raw-path.ts'
import { BadFrame, FIELD, FRAME, type Frame, FrameReader } from './frames.ts'

/** Bits of what a path is seen as (`enum seen_as`). */
export const SEEN = {
  read: 1,
  written: 2,
  lookedAt: 4,
  listed: 8,
  deleted: 16,
  executed: 32,
  stamped: 64,
  moved: 128,
  inherited: 256,
} as const

export interface SeenState {
  /** With its type bits. */
  mode: number
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
  paths: Map<Raw, SeenPath>
  /** By the identity of the file. */
  saved: Map<string, SavedContent>
  lost: number
  /** Calls about paths that are not recorded. */
  ignored: number
  foreign: number
  /** Whether the helper saw the end. */
  complete: boolean
}

const READ_BYTES = 1024 * 1024

export function readRecordLog(file: string): RecordLog {
  const log: RecordLog = { paths: new Map(), saved: new Map(), lost: 0, ignored: 0, foreign: 0, complete: false }
  const byNumber: SeenPath[] = []
  const reader = new FrameReader(frame => take(log, byNumber, frame))
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return log
    throw error
  }
  try {
    const chunk = Buffer.allocUnsafe(READ_BYTES)
    for (let got = readSync(fd, chunk); got > 0; got = readSync(fd, chunk)) {
      reader.push(Buffer.from(chunk.subarray(0, got)))
    }
  } catch (error) {
    if (!(error instanceof BadFrame)) throw error
    log.complete = false
  } finally {
    closeSync(fd)
  }
  return log
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
    const identity = `${frame.long(FIELD.device)}:${frame.long(FIELD.inode)}`
    const name = frame.op === 0 ? String(number) : undefined
    log.saved.set(identity, { name, errno: frame.op, changed: stateOf(frame) })
  } else if (frame.type === FRAME.seenAll) {
    log.lost = number
    log.ignored = frame.number(FIELD.exec)!
    log.foreign = frame.number(FIELD.parent)!
    log.complete = true
  }
}

/** `struct logged_stat`. */
function stateOf(frame: Frame): SeenState | undefined {
  const at = frame.offsetOf(FIELD.stat)
  if (at < 0) return undefined
  const { bytes } = frame
  const mode = bytes.readUInt32LE(at)
  const isDevice = (mode & TYPE_BITS) === CHARACTER || (mode & TYPE_BITS) === BLOCK
  return {
    mode,
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
