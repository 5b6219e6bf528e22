import { markBetweenAnchors } from './anchors.ts'
import { type Box, type Marks, trim } from './edit-grid.ts'

/** Edits that one search looks ahead from either end; a box with more is cut at the furthest point reached. */
const maxEditsPerSearch = 1024
/** The same once half of the steps are used up: less exact, but the rest gets further through the files. */
const maxEditsInHaste = 256
/** Comparisons in total; after that the boxes that remain are cut at lines that are unique on both sides. */
const maxSteps = 80_000_000

/**
 * Myers' O(ND) difference in linear space: find a point in the middle of a shortest path through the edit grid, then
 * treat the boxes before and after it. The unmarked elements of both sequences are equal, one by one, in any case.
 */
export function markChanges(a: Int32Array, b: Int32Array, stepLimit = maxSteps): Marks {
  const marks: Marks = { deleted: new Uint8Array(a.length), inserted: new Uint8Array(b.length), coarse: false }
  const search = new MiddleSearch(a, b, stepLimit)
  const boxes: Box[] = [{ aLow: 0, aHigh: a.length, bLow: 0, bHigh: b.length }]
  for (let box = boxes.pop(); box; box = boxes.pop()) {
    trim(a, b, box)
    const { aLow, aHigh, bLow, bHigh } = box
    if (aLow === aHigh || bLow === bHigh) {
      marks.deleted.fill(1, aLow, aHigh)
      marks.inserted.fill(1, bLow, bHigh)
      continue
    }
    const cut = search.middleOf(box)
    if (cut === undefined) {
      marks.coarse = true
      markBetweenAnchors(a, b, box, marks)
      continue
    }
    marks.coarse ||= !cut.exact
    boxes.push({ aLow: cut.x, aHigh, bLow: cut.y, bHigh }, { aLow, aHigh: cut.x, bLow, bHigh: cut.y })
  }
  return marks
}

interface Cut {
  x: number
  y: number
  /** Whether a shortest path leads through this point. */
  exact: boolean
}

const unreached = 0x7fffffff

class MiddleSearch {
  /** Per diagonal x − y (plus `offset`): the furthest x that the walk from the low and from the high corner reached. */
  private readonly forward: Int32Array
  private readonly backward: Int32Array
  private readonly offset: number
  private readonly a: Int32Array
  private readonly b: Int32Array
  private readonly stepLimit: number
  private stepsLeft: number

  constructor(a: Int32Array, b: Int32Array, stepLimit: number) {
    this.a = a
    this.b = b
    this.stepLimit = stepLimit
    this.stepsLeft = stepLimit
    this.offset = b.length + 1
    this.forward = new Int32Array(a.length + b.length + 3)
    this.backward = new Int32Array(a.length + b.length + 3)
  }

  /**
   * A cut that leaves two smaller boxes, or undefined when the steps are used up. The box is trimmed and has elements on
   * both sides, so at least two edits lie in it and both parts of an exact cut hold at least one.
   */
  middleOf(box: Box): Cut | undefined {
    if (this.stepsLeft <= 0) return undefined
    const { a, b, forward, backward, offset } = this
    const { aLow, aHigh, bLow, bHigh } = box
    const lowest = aLow - bHigh + offset
    const highest = aHigh - bLow + offset
    const forwardMiddle = aLow - bLow + offset
    const backwardMiddle = aHigh - bHigh + offset
    const odd = ((forwardMiddle - backwardMiddle) & 1) !== 0
    let forwardLow = forwardMiddle
    let forwardHigh = forwardMiddle
    let backwardLow = backwardMiddle
    let backwardHigh = backwardMiddle
    forward[forwardMiddle] = aLow
    backward[backwardMiddle] = aHigh

    const maxEdits = this.stepsLeft > this.stepLimit / 2 ? maxEditsPerSearch : maxEditsInHaste
    let steps = 0
    for (let edits = 1; ; edits++) {
      // Diagonals outside the box are never walked: the band grows to its edge and then shrinks away from it.
      if (forwardLow > lowest) forward[--forwardLow - 1] = -1
      else forwardLow++
      if (forwardHigh < highest) forward[++forwardHigh + 1] = -1
      else forwardHigh--
      for (let k = forwardHigh; k >= forwardLow; k -= 2) {
        const start = forward[k - 1]! >= forward[k + 1]! ? forward[k - 1]! + 1 : forward[k + 1]!
        let x = start
        let y = x - k + offset
        while (x < aHigh && y < bHigh && a[x] === b[y]) {
          x++
          y++
        }
        forward[k] = x
        steps += 1 + x - start
        if (odd && k >= backwardLow && k <= backwardHigh && backward[k]! <= x) return this.cut(x, y, steps)
      }

      if (backwardLow > lowest) backward[--backwardLow - 1] = unreached
      else backwardLow++
      if (backwardHigh < highest) backward[++backwardHigh + 1] = unreached
      else backwardHigh--
      for (let k = backwardHigh; k >= backwardLow; k -= 2) {
        const start = backward[k - 1]! < backward[k + 1]! ? backward[k - 1]! : backward[k + 1]! - 1
        let x = start
        let y = x - k + offset
        while (x > aLow && y > bLow && a[x - 1] === b[y - 1]) {
          x--
          y--
        }
        backward[k] = x
        steps += 1 + start - x
        if (!odd && k >= forwardLow && k <= forwardHigh && x <= forward[k]!) return this.cut(x, y, steps)
      }

      if (edits >= maxEdits || steps >= this.stepsLeft) {
        this.stepsLeft -= steps
        return this.furthest(box, forwardLow, forwardHigh, backwardLow, backwardHigh)
      }
    }
  }

  private cut(x: number, y: number, steps: number): Cut {
    this.stepsLeft -= steps
    return { x, y, exact: true }
  }

  /** The point inside the box that is furthest from the corner from which it was reached. */
  private furthest(box: Box, fLow: number, fHigh: number, bLow: number, bHigh: number): Cut | undefined {
    let best: Cut | undefined
    let bestGain = 0
    const consider = (x: number, k: number, gain: (sum: number) => number) => {
      const y = x - k + this.offset
      if (x < box.aLow || x > box.aHigh || y < box.bLow || y > box.bHigh) return
      if (gain(x + y) <= bestGain) return
      bestGain = gain(x + y)
      best = { x, y, exact: false }
    }
    for (let k = fHigh; k >= fLow; k -= 2) consider(this.forward[k]!, k, sum => sum - box.aLow - box.bLow)
    for (let k = bHigh; k >= bLow; k -= 2) consider(this.backward[k]!, k, sum => box.aHigh + box.bHigh - sum)
    const size = box.aHigh + box.bHigh - box.aLow - box.bLow
    return bestGain < size ? best : undefined
  }
}
