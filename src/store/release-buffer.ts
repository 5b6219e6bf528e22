/**
 * Frees a buffer's memory now. Packed blocks are made faster than the collector notices them, because their memory lies
 * outside its heap. Only for a buffer that nobody else looks at; afterwards it is empty.
 */
export function releaseBuffer(buffer: Uint8Array): void {
  const memory = buffer.buffer
  if (memory instanceof ArrayBuffer && memory.byteLength >= UNPOOLED_BYTES && !memory.detached) memory.transfer(0)
}

/** Node's shared pool is smaller than this: a buffer in it is never released. */
const UNPOOLED_BYTES = 64 * 1024
