import type { Raw } from '../model/raw-path.ts'
import { digestOf } from './ignore-digest.ts'

/** Paths of git's index that its ignore rules exclude, asked for one path or for everything below a directory. */
export class TrackedPaths {
  readonly #paths: ReadonlySet<Raw>
  #sorted: Raw[] | undefined

  constructor(paths: ReadonlySet<Raw>) {
    this.#paths = paths
  }

  get isEmpty(): boolean {
    return this.#paths.size === 0
  }

  has(path: Raw): boolean {
    return this.#paths.has(path)
  }

  hasBelow(dir: Raw): boolean {
    if (this.isEmpty) return false
    const [from, to] = this.#rangeBelow(dir)
    return from < to
  }

  /** Changes exactly when the set of paths below `dir` changes; '' when there are none. */
  digestBelow(dir: Raw): string {
    if (this.isEmpty) return ''
    const [from, to] = this.#rangeBelow(dir)
    return from < to ? digestOf(this.#sortedPaths().slice(from, to).join('\0')) : ''
  }

  #rangeBelow(dir: Raw): [from: number, to: number] {
    const sorted = this.#sortedPaths()
    // '0' is the character after '/', so that everything below "a" lies from "a/" to "a0".
    return dir === '' ? [0, sorted.length] : [lowerBound(sorted, `${dir}/`), lowerBound(sorted, `${dir}0`)]
  }

  #sortedPaths(): Raw[] {
    this.#sorted ??= [...this.#paths].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    return this.#sorted
  }
}

function lowerBound(sorted: Raw[], value: Raw): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}
