import { Hasher } from '../model/id.ts'
import type { Raw } from '../model/raw-path.ts'

/** A digest of parts in their order: 128 bits as text of 22 characters. Parts cannot run into each other. */
export function digestOf(...parts: (Raw | Uint8Array | undefined)[]): string {
  const hash = new Hasher()
  for (const part of parts) {
    hash.update(Buffer.from(part === undefined ? '-' : `${part.length}:`))
    if (part !== undefined) hash.update(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
  }
  return Buffer.from(hash.digest(), 'latin1').toString('base64url').slice(0, 22)
}
