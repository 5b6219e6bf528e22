/** Digests and random names. `Id` is a raw string of 32 characters; people see it in hex. */
import { addon } from '../native/addon.ts'
import type { Id } from './entry.ts'

export const ID_BYTES = 32

export const hashBytes = (bytes: Uint8Array): Id => addon.hash(bytes)
export const idToBytes = (id: Id): Buffer => Buffer.from(id, 'latin1')
export const idFromBytes = (bytes: Uint8Array, at = 0): Id =>
  Buffer.from(bytes.buffer, bytes.byteOffset + at, ID_BYTES).toString('latin1')
export const idToHex = (id: Id): string => Buffer.from(id, 'latin1').toString('hex')
export const idFromHex = (hex: string): Id => Buffer.from(hex, 'hex').toString('latin1')

/** Hashes what comes piece by piece. */
export class Hasher {
  /** For native code that goes on with it. */
  readonly state = addon.hasherNew()

  update(bytes: Uint8Array): void {
    addon.hasherUpdate(this.state, bytes)
  }

  digest(): Id {
    return addon.hasherDigest(this.state)
  }
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
const NAME_LENGTH = 8

/** `prefix` + 8 lower-case base-32 characters: 2^40 names, checked for uniqueness by whoever stores one. */
export function randomName(prefix: 'snap_' | 'run_' | 'op_'): string {
  const bytes = addon.randomBytes(NAME_LENGTH)
  let name: string = prefix
  for (const byte of bytes) name += alphabet[byte & 31]
  return name
}

/** For names of files: `length` random bytes in hex. */
export const randomHex = (length: number): string => addon.randomBytes(length).toString('hex')
