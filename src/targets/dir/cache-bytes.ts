/**
 * The bytes that the records of a stat cache lie in. Who looks at everything has them in memory. A run that goes on for hours leaves
 * them in the file: each capture of what it has changed needs a few of them.
 */
import { closeSync } from 'node:fs'
import { readFully } from '../../store/pack-reader.ts'

/** Who asks for more parts than this, one by one, is likely to go through all of them. */
const MANY_PARTS = 500
const unused = new FinalizationRegistry<number>(closeSync)

export class CacheBytes {
  /** Which file they came from. */
  readonly identity: string | undefined
  private held: Buffer | undefined
  private file: { fd: number; size: number } | undefined
  /** What was read again: as long as somebody has it. */
  private read: WeakRef<Buffer> | undefined
  private parts = 0

  constructor(bytes: Buffer, identity?: string) {
    this.held = bytes
    this.identity = identity
  }

  get isInFile(): boolean {
    return this.file !== undefined
  }

  /** From now on they are read from the file that they came from; what lies behind `size` is asked for no more. */
  leaveIn(fd: number, size: number): void {
    this.file = { fd, size }
    this.held = undefined
    unused.register(this, fd)
  }

  all(): Buffer {
    const known = this.held ?? this.read?.deref()
    if (known) return known
    const bytes = this.readAt(0, this.file!.size)
    this.read = new WeakRef(bytes)
    this.parts = 0
    return bytes
  }

  part(at: number, length: number): Buffer {
    if (this.held || this.read?.deref() || ++this.parts > MANY_PARTS) return this.all().subarray(at, at + length)
    return this.readAt(at, length)
  }

  private readAt(at: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    if (!readFully(this.file!.fd, bytes, at)) throw new Error('the stat cache was cut off while it was in use')
    return bytes
  }
}
