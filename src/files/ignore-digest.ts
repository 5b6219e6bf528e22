import { createHash } from 'node:crypto'
import type { Raw } from '../model/raw-path.ts'

/** A digest of parts in their order: 128 bits as text of 22 characters. Parts cannot run into each other. */
export function digestOf(...parts: (Raw | Uint8Array | undefined)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) {
    if (part === undefined) hash.update('-')
    else hash.update(`${part.length}:`).update(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
  }
  return hash.digest('base64url').slice(0, 22)
}
