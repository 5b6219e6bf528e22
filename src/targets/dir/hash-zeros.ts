/** Hashes a hole as the zeros that a reader of the file sees. */
import type { Hasher } from '../../model/id.ts'

const ZEROS = Buffer.alloc(1024 * 1024)

export function hashZeros(hasher: Hasher, length: number): void {
  for (let rest = length; rest > 0; rest -= ZEROS.length)
    hasher.update(rest < ZEROS.length ? ZEROS.subarray(0, rest) : ZEROS)
}
