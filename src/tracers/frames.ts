/** The frames that the helper sends (native/helper/frames.h), taken apart as they come in, whatever the pieces. */
import type { Raw } from '../model/raw-path.ts'

export const FRAME = {
  hello: 1,
  exec: 2,
  exit: 3,
  path: 4,
  lost: 5,
  end: 6,
  failed: 7,
  barrier: 8,
  undone: 9,
  late: 10,
  stopped: 11,
  waits: 12,
  left: 13,
  held: 20,
  looked: 21,
  kept: 22,
  safe: 26,
  seen: 30,
  seenAs: 31,
  saved: 32,
  seenAll: 33,
  stamped: 34,
  before: 23,
  moved: 24,
  captured: 25,
} as const

export const FLAG = {
  truncated: 1,
  emptied: 1,
  setuid: 2,
  detached: 4,
  exists: 4,
  directory: 8,
  linked: 16,
  others: 16,
  later: 32,
  unknown: 32,
  held: 64,
  past: 64,
  absent: 128,
  mapped: 128,
} as const
export const LOST = { overflow: 1, architecture: 2, watches: 4, execution: 8 } as const

export const FIELD = {
  exec: 1,
  parent: 2,
  ppid: 3,
  depth: 4,
  replaces: 5,
  program: 6,
  cwd: 7,
  argv: 8,
  code: 9,
  signal: 10,
  path: 11,
  to: 12,
  number: 13,
  time: 14,
  env: 15,
  thread: 20,
  mode: 21,
  mtime: 22,
  uid: 23,
  gid: 24,
  inode: 25,
  directory: 26,
  changed: 27,
  replaced: 28,
  pids: 29,
  stat: 30,
  device: 31,
} as const

/** What is asked of the helper: kind and number. */
export const REQUEST = {
  barrier: 1,
  signal: 2,
  release: 3,
  freeze: 4,
  thaw: 5,
  stop: 6,
  look: 10,
  captured: 11,
  begun: 12,
  walked: 13,
  follow: 14,
  keepAll: 15,
  leave: 16,
} as const

export const pathOps = [
  'exec',
  'write',
  'create',
  'delete',
  'rename',
  'exchange',
  'link',
  'attributes',
  'truncate',
  'inherited',
  'changed',
] as const
export type PathOp = (typeof pathOps)[number]

const LENGTH_BYTES = 4
const HEADER_BYTES = 16
const FIELD_HEADER_BYTES = 5
/** The helper makes none that are larger. */
const MAX_FRAME_BYTES = 64 * 1024
const NS_PER_MS = 1e6

export class Frame {
  readonly bytes: Buffer

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  get type(): number {
    return this.bytes[0]!
  }

  get flags(): number {
    return this.bytes[1]!
  }

  get op(): number {
    return this.bytes.readUInt16LE(2)
  }

  get pid(): number {
    return this.bytes.readUInt32LE(4)
  }

  /** Of the clock that never jumps. */
  get monotonicMs(): number {
    return Number(this.bytes.readBigUInt64LE(8)) / NS_PER_MS
  }

  /** A copy: the bytes of a frame are used again. */
  field(tag: number): Buffer | undefined {
    const at = this.find(tag)
    return at < 0 ? undefined : Buffer.from(this.bytes.subarray(at, at + this.bytes.readUInt32LE(at - LENGTH_BYTES)))
  }

  /** The bytes themselves, as long as those of the frame are; of a field that is there. */
  view(tag: number): Buffer {
    const at = this.find(tag)
    return this.bytes.subarray(at, at + this.bytes.readUInt32LE(at - LENGTH_BYTES))
  }

  /** Bytes as a raw string. */
  raw(tag: number): Raw | undefined {
    const at = this.find(tag)
    return at < 0 ? undefined : this.bytes.toString('latin1', at, at + this.bytes.readUInt32LE(at - LENGTH_BYTES))
  }

  number(tag: number): number | undefined {
    const at = this.find(tag)
    return at < 0 ? undefined : this.bytes.readUInt32LE(at)
  }

  long(tag: number): bigint | undefined {
    const at = this.find(tag)
    return at < 0 ? undefined : this.bytes.readBigUInt64LE(at)
  }

  /** When a file was changed, in nanoseconds: negative before 1970. */
  mtime(): bigint {
    return this.bytes.readBigInt64LE(this.find(FIELD.mtime))
  }

  /** Where a field begins in `bytes`; negative: there is none. */
  offsetOf(tag: number): number {
    return this.find(tag)
  }

  private find(tag: number): number {
    for (let at = HEADER_BYTES; at < this.bytes.length; ) {
      const length = this.bytes.readUInt32LE(at + 1)
      if (this.bytes[at] === tag) return at + FIELD_HEADER_BYTES
      at += FIELD_HEADER_BYTES + length
    }
    return -1
  }
}

/** The stream is not one of the helper's. */
export class BadFrame extends Error {}

/** Collects what a socket gives until frames are whole. A frame is valid only during the call that it is given to. */
export class FrameReader {
  private rest: Buffer = Buffer.alloc(0)
  private readonly onFrame: (frame: Frame) => void

  constructor(onFrame: (frame: Frame) => void) {
    this.onFrame = onFrame
  }

  push(chunk: Buffer): void {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    let at = 0
    while (bytes.length - at >= LENGTH_BYTES) {
      const length = bytes.readUInt32LE(at)
      if (length < HEADER_BYTES || length > MAX_FRAME_BYTES) throw new BadFrame(`a frame of ${length} bytes`)
      if (bytes.length - at < LENGTH_BYTES + length) break
      at += LENGTH_BYTES
      this.onFrame(new Frame(bytes.subarray(at, at + length)))
      at += length
    }
    this.rest = Buffer.from(bytes.subarray(at))
  }
}

export function encodeRequest(kind: number, number: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(kind, 0)
  bytes.writeUInt32LE(number, 4)
  return bytes
}
