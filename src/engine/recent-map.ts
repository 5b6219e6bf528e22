/** A map of paths that forgets those which were set longest ago when there are too many, and says which. */
import type { Raw } from '../model/raw-path.ts'

const FORGOTTEN_AT_ONCE = 0.1

export class RecentMap<Value> {
  private readonly map = new Map<Raw, Value>()
  private readonly limit: number
  private readonly forgotten: (path: Raw, value: Value) => void

  constructor(limit: number, forgotten: (path: Raw, value: Value) => void = () => {}) {
    this.limit = limit
    this.forgotten = forgotten
  }

  get size(): number {
    return this.map.size
  }

  get(path: Raw): Value | undefined {
    return this.map.get(path)
  }

  has(path: Raw): boolean {
    return this.map.has(path)
  }

  set(path: Raw, value: Value): void {
    // Behind all others: a map keeps the order in which keys came.
    this.map.delete(path)
    this.map.set(path, value)
    if (this.map.size > this.limit) this.forgetOldest()
  }

  /** Many at once: to find the first of a map whose first keys were deleted takes a walk over all of those. */
  private forgetOldest(): void {
    let left = Math.ceil(this.limit * FORGOTTEN_AT_ONCE)
    for (const [path, value] of this.map) {
      if (left-- === 0) return
      this.map.delete(path)
      this.forgotten(path, value)
    }
  }

  delete(path: Raw): void {
    this.map.delete(path)
  }

  /** Those that were set longest ago first. */
  entries(): IterableIterator<[Raw, Value]> {
    return this.map.entries()
  }

  clear(): void {
    this.map.clear()
  }
}
