/** Takes exact numbers of bytes from a stream of pieces. Holds no more than what was asked for and one piece. */
import { truncatedArchive } from './archive-unsafe.ts'

export class ArchiveBytes {
  private readonly pieces: AsyncIterator<Buffer>
  private current: Buffer = Buffer.alloc(0)
  private ended = false

  constructor(pieces: AsyncIterable<Buffer>) {
    this.pieces = pieces[Symbol.asyncIterator]()
  }

  /** Exactly this many. They may be shared with what is read later, but are not written to. */
  async read(count: number): Promise<Buffer> {
    if (this.current.length >= count) return this.take(count)
    const parts: Buffer[] = []
    for (let rest = count; rest > 0; ) {
      const part = await this.some(rest)
      if (part.length === 0) throw truncatedArchive()
      parts.push(part)
      rest -= part.length
    }
    return Buffer.concat(parts, count)
  }

  /** Between one and `most`; none only at the end. */
  async some(most: number): Promise<Buffer> {
    while (this.current.length === 0 && !this.ended) {
      const next = await this.pieces.next()
      if (next.done) this.ended = true
      else this.current = next.value
    }
    return this.take(Math.min(most, this.current.length))
  }

  /** Lets go of the stream, wherever it is. */
  async close(): Promise<void> {
    await this.pieces.return?.()
  }

  private take(count: number): Buffer {
    const taken = this.current.subarray(0, count)
    this.current = this.current.subarray(count)
    return taken
  }
}
