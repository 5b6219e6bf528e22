import { equalBytes, type Lines } from './lines.ts'

// Drawn anew in every process, so that nobody can write a file whose lines all have one hash. Ids do not depend on it.
const multiplier = (Math.floor(Math.random() * 2 ** 32) | 1) >>> 0

/**
 * Gives equal lines equal numbers, counted from 0 in order of first appearance. An open-addressing table over the bytes
 * themselves: a Map of strings takes four times as long.
 */
export class LineTable {
  size = 0
  private readonly mask: number
  /** Per slot: id + 1, or 0. */
  private readonly slots: Int32Array
  private readonly hashes: Int32Array
  private readonly owners: Lines[] = []
  /** Per id: which owner has the line, and where. */
  private readonly ownerOf: Uint8Array
  private readonly lineOf: Int32Array

  constructor(maxLines: number) {
    let capacity = 16
    while (capacity < maxLines * 2) capacity *= 2
    this.mask = capacity - 1
    this.slots = new Int32Array(capacity)
    this.hashes = new Int32Array(maxLines)
    this.ownerOf = new Uint8Array(maxLines)
    this.lineOf = new Int32Array(maxLines)
  }

  /** The ids of lines [from, to). */
  intern(lines: Lines, from: number, to: number): Int32Array {
    const owner = this.owners.push(lines) - 1
    const ids = new Int32Array(to - from)
    for (let line = from; line < to; line++) ids[line - from] = this.idOf(lines, line, owner)
    return ids
  }

  private idOf(lines: Lines, line: number, owner: number): number {
    const { slots, hashes, mask } = this
    const start = lines.starts[line]!
    const end = lines.starts[line + 1]!
    const hash = hashOf(lines.bytes, start, end)
    let slot = hash & mask
    for (let taken = slots[slot]!; taken !== 0; slot = (slot + 1) & mask, taken = slots[slot]!) {
      const id = taken - 1
      if (hashes[id] !== hash) continue
      const other = this.owners[this.ownerOf[id]!]!
      const place = this.lineOf[id]!
      const otherStart = other.starts[place]!
      const length = end - start
      if (other.starts[place + 1]! - otherStart !== length) continue
      if (equalBytes(lines.bytes, start, other.bytes, otherStart, length)) return id
    }
    const id = this.size++
    slots[slot] = id + 1
    hashes[id] = hash
    this.ownerOf[id] = owner
    this.lineOf[id] = line
    return id
  }
}

function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = multiplier | 0
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, multiplier)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}
