/**
 * When paths were last touched, without the paths: a number stands for each, so that a million of them take the room of a hundred thousand.
 * That two have the same number is one chance in ten thousand for all of them together.
 */
import type { Raw } from '../model/raw-path.ts'

export class OldTouches {
  private readonly times = new Map<number, number>()
  private readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  get isFull(): boolean {
    return this.times.size >= this.limit
  }

  set(path: Raw, at: number): void {
    this.times.set(numberOf(path), at)
  }

  get(path: Raw): number | undefined {
    return this.times.size === 0 ? undefined : this.times.get(numberOf(path))
  }

  delete(path: Raw): void {
    if (this.times.size > 0) this.times.delete(numberOf(path))
  }

  clear(): void {
    this.times.clear()
  }
}

const [FIRST_PRIME, SECOND_PRIME] = [0x85ebca77, 0xc2b2ae3d]
const UPPER_BITS = 2 ** 21 - 1

/** 53 bits, as many as a number holds exactly: two multiplications for each character, mixed at the end. */
function numberOf(path: Raw): number {
  let [a, b] = [0xdeadbeef, 0x41c6ce57]
  for (let i = 0; i < path.length; i++) {
    const byte = path.charCodeAt(i)
    a = Math.imul(a ^ byte, FIRST_PRIME)
    b = Math.imul(b ^ byte, SECOND_PRIME)
  }
  a = Math.imul(a ^ (a >>> 16), FIRST_PRIME) ^ Math.imul(b ^ (b >>> 15), SECOND_PRIME)
  b = Math.imul(b ^ (b >>> 16), FIRST_PRIME) ^ Math.imul(a ^ (a >>> 15), SECOND_PRIME)
  return (b & UPPER_BITS) * 2 ** 32 + (a >>> 0)
}
