/** Reads what ByteWriter wrote. Every read is checked against the end: malformed input throws, it never reads outside. */
import { SavepointError } from '../errors/errors.ts'

export class ByteReader {
  private at: number
  private readonly buffer: Buffer
  private readonly what: string

  constructor(buffer: Buffer, what: string, at = 0) {
    this.buffer = buffer
    this.what = what
    this.at = at
  }

  get position(): number {
    return this.at
  }

  malformed(reason: string): SavepointError {
    return new SavepointError('store.damaged', `Cannot read ${this.what}: ${reason} at byte ${this.at}`, {
      hint: 'Run `savepoint verify` to see what is affected',
    })
  }

  private take(bytes: number): number {
    const at = this.at
    if (bytes < 0 || at + bytes > this.buffer.length) throw this.malformed('it ends too early')
    this.at = at + bytes
    return at
  }

  get finished(): boolean {
    return this.at === this.buffer.length
  }

  u8(): number {
    return this.buffer[this.take(1)]!
  }

  u32(): number {
    return this.buffer.readUInt32LE(this.take(4))
  }

  i64(): bigint {
    return this.buffer.readBigInt64LE(this.take(8))
  }

  u64(): bigint {
    return this.buffer.readBigUInt64LE(this.take(8))
  }

  varint(): number {
    let value = 0
    let factor = 1
    for (;;) {
      const byte = this.u8()
      value += (byte & 0x7f) * factor
      if (value > Number.MAX_SAFE_INTEGER || factor > Number.MAX_SAFE_INTEGER)
        throw this.malformed('a number is too large')
      if (byte < 0x80) {
        // One number has one encoding, otherwise one tree could have two ids.
        if (byte === 0 && factor > 1) throw this.malformed('a number is not in its shortest form')
        return value
      }
      factor *= 0x80
    }
  }

  bytes(length: number): Buffer {
    const at = this.take(length)
    return this.buffer.subarray(at, at + length)
  }

  raw(length: number): string {
    const at = this.take(length)
    return this.buffer.toString('latin1', at, at + length)
  }
}
