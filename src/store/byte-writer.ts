/** A growing buffer with the few encodings that our formats use: bytes, little-endian integers and LEB128 varints. */
export class ByteWriter {
  private buffer: Buffer
  private length = 0

  constructor(capacity = 4096) {
    this.buffer = Buffer.allocUnsafe(capacity)
  }

  private reserve(bytes: number): number {
    const at = this.length
    if (at + bytes > this.buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.buffer.length * 2, at + bytes))
      this.buffer.copy(grown, 0, 0, at)
      this.buffer = grown
    }
    this.length = at + bytes
    return at
  }

  // In each of these the place is reserved first: reserving may replace the buffer.

  u8(value: number): void {
    const at = this.reserve(1)
    this.buffer[at] = value
  }

  u16(value: number): void {
    const at = this.reserve(2)
    this.buffer.writeUInt16LE(value, at)
  }

  u32(value: number): void {
    const at = this.reserve(4)
    this.buffer.writeUInt32LE(value, at)
  }

  i64(value: bigint): void {
    const at = this.reserve(8)
    this.buffer.writeBigInt64LE(value, at)
  }

  u64(value: bigint): void {
    const at = this.reserve(8)
    this.buffer.writeBigUInt64LE(value, at)
  }

  /** A non-negative safe integer. */
  varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.u8((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.u8(rest)
  }

  bytes(value: Uint8Array): void {
    const at = this.reserve(value.length)
    this.buffer.set(value, at)
  }

  raw(value: string): void {
    const at = this.reserve(value.length)
    this.buffer.write(value, at, value.length, 'latin1')
  }

  /** The bytes, without copying them: nothing may be added afterwards. */
  finish(): Buffer {
    return this.buffer.subarray(0, this.length)
  }
}
