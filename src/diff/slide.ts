import type { Hunk } from './line-diff.ts'
import { type Lines, sameLine } from './lines.ts'

/** How far a hunk is moved in search of a better place. */
const maxSlide = 100
const maxBlankRun = 20
const maxIndentBytes = 200

/**
 * A block that was only inserted or only deleted can often be moved: in `{ x } { x }` either pair of braces may be "the
 * new one". Moves such blocks next to another hunk (one hunk instead of two), or else to where the least indented lines
 * begin, because that is where people think a block begins. The hunks stay correct and no line more is changed.
 */
export function slideHunks(before: Lines, after: Lines, hunks: Hunk[]): Hunk[] {
  const out: Hunk[] = []
  for (let i = 0; i < hunks.length; i++) {
    const hunk = hunks[i]!
    const next = hunks[i + 1]
    const inserts = hunk.beforeStart === hunk.beforeEnd
    if (!inserts && hunk.afterStart !== hunk.afterEnd) {
      push(out, hunk)
      continue
    }
    const lines = inserts ? after : before
    const start = inserts ? hunk.afterStart : hunk.beforeStart
    const end = inserts ? hunk.afterEnd : hunk.beforeEnd
    const previous = out.at(-1)
    const low = previous ? (inserts ? previous.afterEnd : previous.beforeEnd) : 0
    const high = next ? (inserts ? next.afterStart : next.beforeStart) : lines.count
    const shift = bestShift(lines, start, end, low, high, previous !== undefined, next !== undefined)
    push(out, {
      beforeStart: hunk.beforeStart + shift,
      beforeEnd: hunk.beforeEnd + shift,
      afterStart: hunk.afterStart + shift,
      afterEnd: hunk.afterEnd + shift,
    })
  }
  return out
}

/** Adds a hunk, or extends the last one when the new one touches it. */
function push(hunks: Hunk[], hunk: Hunk): void {
  const last = hunks.at(-1)
  if (last && last.beforeEnd === hunk.beforeStart && last.afterEnd === hunk.afterStart) {
    last.beforeEnd = hunk.beforeEnd
    last.afterEnd = hunk.afterEnd
  } else hunks.push({ ...hunk })
}

function bestShift(
  lines: Lines,
  start: number,
  end: number,
  low: number,
  high: number,
  hasPrevious: boolean,
  hasNext: boolean,
): number {
  let up = 0
  while (up < maxSlide && start - up > low && sameLine(lines, start - up - 1, end - up - 1)) up++
  if (hasPrevious && start - up === low) return -up
  let down = 0
  while (down < maxSlide && end + down < high && sameLine(lines, start + down, end + down)) down++
  if (hasNext && end + down === high) return down

  let best = down
  let bestRank = rankAt(lines, start + down, end + down)
  for (let shift = down - 1; shift >= -up; shift--) {
    const rank = rankAt(lines, start + shift, end + shift)
    if (rank < bestRank) {
      best = shift
      bestRank = rank
    }
  }
  return best
}

/** Lower is better: first by the indentation of what begins at either edge, then by blank lines before the edges. */
const rankAt = (lines: Lines, start: number, end: number) => edgeRank(lines, start) + edgeRank(lines, end)

const indentWeight = 4
const tabColumns = 8

function edgeRank(lines: Lines, line: number): number {
  let next = line
  let indent = indentOf(lines, next)
  while (indent < 0 && next < line + maxBlankRun) indent = indentOf(lines, ++next)
  const afterGap = line === 0 || line === lines.count || indentOf(lines, line - 1) < 0
  return Math.max(indent, 0) * indentWeight + (afterGap ? 0 : 1)
}

/** Columns of white space at the start; −1 for a blank line, 0 past the end. */
function indentOf(lines: Lines, line: number): number {
  if (line >= lines.count) return 0
  let columns = 0
  const end = Math.min(lines.starts[line + 1]!, lines.starts[line]! + maxIndentBytes)
  for (let at = lines.starts[line]!; at < end; at++) {
    const byte = lines.bytes[at]
    if (byte === 0x20) columns++
    else if (byte === 0x09) columns += tabColumns - (columns % tabColumns)
    else if (byte !== 0x0d && byte !== 0x0a) return columns
  }
  return -1
}
