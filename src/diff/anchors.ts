import { type Box, type Marks, trim } from './edit-grid.ts'

/**
 * The coarse way through a box, in O(n log n): elements that occur once on either side are anchors as far as they come
 * in the same order; between two anchors only what is equal at both ends stays unmarked.
 */
export function markBetweenAnchors(a: Int32Array, b: Int32Array, box: Box, marks: Marks): void {
  let aLow = box.aLow
  let bLow = box.bLow
  const markGap = (aHigh: number, bHigh: number) => {
    const gap = { aLow, aHigh, bLow, bHigh }
    trim(a, b, gap)
    marks.deleted.fill(1, gap.aLow, gap.aHigh)
    marks.inserted.fill(1, gap.bLow, gap.bHigh)
  }
  for (const { x, y } of longestInOrder(uniquePairs(a, b, box))) {
    markGap(x, y)
    aLow = x + 1
    bLow = y + 1
  }
  markGap(box.aHigh, box.bHigh)
}

interface Pair {
  x: number
  y: number
}

/** Ordered by x. */
function uniquePairs(a: Int32Array, b: Int32Array, box: Box): Pair[] {
  const inA = placesOf(a, box.aLow, box.aHigh)
  const inB = placesOf(b, box.bLow, box.bHigh)
  const pairs: Pair[] = []
  for (const [id, x] of inA) {
    const y = inB.get(id)
    if (x >= 0 && y !== undefined && y >= 0) pairs.push({ x, y })
  }
  return pairs.sort((left, right) => left.x - right.x)
}

/** Where each element is; −1 for one that occurs more than once. */
function placesOf(ids: Int32Array, low: number, high: number): Map<number, number> {
  const places = new Map<number, number>()
  for (let i = low; i < high; i++) places.set(ids[i]!, places.has(ids[i]!) ? -1 : i)
  return places
}

/** The longest run of pairs whose y grows as well (patience sorting). */
function longestInOrder(pairs: Pair[]): Pair[] {
  const tops: number[] = []
  const previous = new Int32Array(pairs.length)
  for (let i = 0; i < pairs.length; i++) {
    let low = 0
    let high = tops.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (pairs[tops[middle]!]!.y < pairs[i]!.y) low = middle + 1
      else high = middle
    }
    previous[i] = low > 0 ? tops[low - 1]! : -1
    tops[low] = i
  }
  const out: Pair[] = []
  for (let i = tops.at(-1) ?? -1; i >= 0; i = previous[i]!) out.push(pairs[i]!)
  return out.reverse()
}
