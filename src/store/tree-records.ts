/** Two encoded directories side by side: what is the same in both is passed over and not decoded. */
import type { Entry } from '../model/entry.ts'
import type { ByteReader } from './byte-reader.ts'
import { decodeEntry, entryEnd, readTree, startTree } from './tree-codec.ts'

export type Pair = [before: Entry | undefined, after: Entry | undefined]

/** By name: which comes first, or that both are at the same. One of them there is. */
export function orderOf(left: Entry | undefined, right: Entry | undefined): -1 | 0 | 1 {
  if (!left || !right) return left ? -1 : 1
  return left.name < right.name ? -1 : left.name > right.name ? 1 : 0
}

/** In the order of names, without pairs that are equal. */
export function* differingPairs(before: Buffer, after: Buffer): Generator<Pair> {
  const [left, right] = [new Entries(before), new Entries(after)]
  for (;;) {
    while (left.isSameAs(right)) {
      left.pass()
      right.pass()
    }
    const [old, now] = [left.current(), right.current()]
    if (!old && !now) return
    const order = orderOf(old, now)
    yield [order <= 0 ? old : undefined, order >= 0 ? now : undefined]
    if (order <= 0) left.pass()
    if (order >= 0) right.pass()
  }
}

/** Where one is in a tree. */
class Entries {
  private readonly bytes: Buffer
  private readonly input: ByteReader
  private left: number
  private at: number
  private end: number
  private decoded: Entry | undefined

  constructor(bytes: Buffer) {
    const { input, count } = startTree(bytes)
    this.bytes = bytes
    this.input = input
    this.left = count
    this.at = input.position
    this.end = this.endHere()
  }

  isSameAs({ bytes, left, at, end }: Entries): boolean {
    const length = this.end - this.at
    if (this.left === 0 || left === 0 || length !== end - at || end > bytes.length || this.end > this.bytes.length)
      return false
    return this.bytes.compare(bytes, at, end, this.at, this.end) === 0
  }

  current(): Entry | undefined {
    if (this.left > 0) this.decoded ??= this.decode()
    else if (this.at !== this.bytes.length) throw this.input.malformed('it has bytes after its end')
    return this.decoded
  }

  private decode(): Entry {
    const input = readTree(this.bytes, this.at)
    const entry = decodeEntry(input)
    this.end = input.position
    return entry
  }

  pass(): void {
    this.at = this.end
    this.left--
    this.decoded = undefined
    this.end = this.endHere()
  }

  private endHere(): number {
    return this.left > 0 ? entryEnd(this.bytes, this.at) : this.at
  }
}
