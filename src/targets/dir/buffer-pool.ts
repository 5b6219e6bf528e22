/** Buffers for reading that are used again and again: fresh ones would pile up faster than they are collected. */
const BUFFER_BYTES = 2 * 1024 * 1024

export class BufferPool {
  private readonly free: Buffer[] = []

  take(bytes: number): Buffer {
    return bytes <= BUFFER_BYTES
      ? (this.free.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES))
      : Buffer.allocUnsafeSlow(bytes)
  }

  give(buffer: Buffer): void {
    if (buffer.length === BUFFER_BYTES) this.free.push(buffer)
  }
}
