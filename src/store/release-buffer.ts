/**
 * Frees a buffer's memory now. Packed blocks are made faster than the collector notices them, because their memory lies
 * outside its heap. Only for a buffer that nobody else looks at; afterwards it is empty. One in Node's shared pool stays.
 */
export function releaseBuffer(buffer: Uint8Array): void {
  const memory = buffer.buffer
  if (memory instanceof ArrayBuffer && memory.byteLength > Buffer.poolSize && !memory.detached) memory.transfer(0)
}
