/**
 * src/diff turns two contents into something a person, `git apply` or `patch` can read. It is pure: content comes in
 * as buffers, text goes out as bytes, nothing is read or printed. This file finds which lines differ.
 */
import { LineTable } from './line-table.ts'
import { commonEnds, indexLines, type Lines } from './lines.ts'
import { markChanges } from './myers.ts'
import { slideHunks } from './slide.ts'

/** Lines [beforeStart, beforeEnd) were replaced by lines [afterStart, afterEnd), counted from 0; one may be empty. */
export interface Hunk {
  beforeStart: number
  beforeEnd: number
  afterStart: number
  afterEnd: number
}

export interface LineDiff {
  before: Lines
  after: Lines
  /** In order; between two hunks lies at least one line that both sides share. */
  hunks: Hunk[]
  /** The work limit was reached: the hunks are correct but larger than they need to be. */
  coarse: boolean
}

/** Above these, the lines between the common start and end are not compared one by one: all of them are changed. */
const maxComparedBytes = 128 * 2 ** 20
export const maxComparedLines = 6_000_000

/**
 * The differing lines, byte for byte. Shortest possible for ordinary edits; within bounded work for any input, at the
 * price of larger hunks (`coarse`).
 */
export function diffLines(beforeBytes: Buffer, afterBytes: Buffer): LineDiff {
  const before = indexLines(beforeBytes)
  const after = indexLines(afterBytes)
  const { prefix, suffix } = commonEnds(before, after)
  const whole = {
    beforeStart: prefix,
    beforeEnd: before.count - suffix,
    afterStart: prefix,
    afterEnd: after.count - suffix,
  }
  const { hunks, coarse } = diffWithin(before, after, whole)
  return { before, after, hunks: slideHunks(before, after, hunks), coarse }
}

function diffWithin(before: Lines, after: Lines, whole: Hunk): { hunks: Hunk[]; coarse: boolean } {
  const deletes = whole.beforeEnd > whole.beforeStart
  const inserts = whole.afterEnd > whole.afterStart
  if (!deletes && !inserts) return { hunks: [], coarse: false }
  if (!deletes || !inserts) return { hunks: [whole], coarse: false }
  const comparedBytes =
    before.starts[whole.beforeEnd]! -
    before.starts[whole.beforeStart]! +
    (after.starts[whole.afterEnd]! - after.starts[whole.afterStart]!)
  const comparedLines = whole.beforeEnd - whole.beforeStart + (whole.afterEnd - whole.afterStart)
  if (comparedBytes > maxComparedBytes || comparedLines > maxComparedLines) return { hunks: [whole], coarse: true }

  const table = new LineTable(comparedLines)
  const beforeIds = table.intern(before, whole.beforeStart, whole.beforeEnd)
  const onlyAfterFrom = table.size
  const afterIds = table.intern(after, whole.afterStart, whole.afterEnd)
  // A line that the other side lacks is changed whatever the rest looks like; without such lines the search is small.
  const inAfter = new Uint8Array(table.size)
  for (const id of afterIds) inAfter[id] = 1
  const keptBefore = positionsOf(beforeIds, id => inAfter[id] === 1)
  const keptAfter = positionsOf(afterIds, id => id < onlyAfterFrom)
  const marks = markChanges(idsAt(beforeIds, keptBefore), idsAt(afterIds, keptAfter))

  const deleted = spread(marks.deleted, keptBefore, beforeIds.length)
  const inserted = spread(marks.inserted, keptAfter, afterIds.length)
  return { hunks: hunksOf(deleted, inserted, whole.beforeStart, whole.afterStart), coarse: marks.coarse }
}

function positionsOf(ids: Int32Array, keep: (id: number) => boolean): Int32Array {
  const out = new Int32Array(ids.length)
  let count = 0
  for (let i = 0; i < ids.length; i++) if (keep(ids[i]!)) out[count++] = i
  return out.subarray(0, count)
}

const idsAt = (ids: Int32Array, positions: Int32Array) => positions.map(position => ids[position]!)

/** Marks of the kept lines at their places among all; the lines that were not kept are marked. */
function spread(marks: Uint8Array, positions: Int32Array, length: number): Uint8Array {
  const out = new Uint8Array(length).fill(1)
  for (let i = 0; i < marks.length; i++) out[positions[i]!] = marks[i]!
  return out
}

function hunksOf(deleted: Uint8Array, inserted: Uint8Array, beforeOffset: number, afterOffset: number): Hunk[] {
  const hunks: Hunk[] = []
  let a = 0
  let b = 0
  while (a < deleted.length || b < inserted.length) {
    const aStart = a
    const bStart = b
    while (deleted[a] === 1) a++
    while (inserted[b] === 1) b++
    if (a > aStart || b > bStart) {
      hunks.push({
        beforeStart: beforeOffset + aStart,
        beforeEnd: beforeOffset + a,
        afterStart: afterOffset + bStart,
        afterEnd: afterOffset + b,
      })
    }
    while (a < deleted.length && deleted[a] === 0 && inserted[b] === 0) {
      a++
      b++
    }
    if (a === aStart && b === bStart) throw new Error('diffLines: the shared lines of both sides do not pair up')
  }
  return hunks
}
