import type { Raw } from '../model/raw-path.ts'
import type { Hunk, LineDiff } from './line-diff.ts'
import type { Lines } from './lines.ts'
import type { Paint } from './paint.ts'

const maxPieceBytes = 64 * 1024
const maxHeadingBytes = 80
const lineFeed = 0x0a

/** The hunks with `context` unchanged lines around them; hunks whose context would touch become one. */
export function* hunkText(diff: LineDiff, context: number, paint: Paint): Generator<Raw, void> {
  let heading = ''
  let searchedTo = 0
  for (const group of groupHunks(diff.hunks, context)) {
    const first = group[0]!
    const last = group.at(-1)!
    const lead = Math.min(context, first.beforeStart)
    const trail = Math.min(context, diff.before.count - last.beforeEnd)
    const beforeStart = first.beforeStart - lead
    heading = headingAbove(diff.before, beforeStart, searchedTo) ?? heading
    searchedTo = beforeStart
    const beforeRange = rangeText(beforeStart, last.beforeEnd + trail)
    const afterRange = rangeText(first.afterStart - lead, last.afterEnd + trail)
    yield paint.range(`@@ -${beforeRange} +${afterRange} @@`, heading)

    let at = beforeStart
    for (const hunk of group) {
      yield* lineText(diff.before, at, hunk.beforeStart, ' ', paint)
      yield* lineText(diff.before, hunk.beforeStart, hunk.beforeEnd, '-', paint)
      yield* lineText(diff.after, hunk.afterStart, hunk.afterEnd, '+', paint)
      at = hunk.beforeEnd
    }
    yield* lineText(diff.before, at, at + trail, ' ', paint)
  }
}

function* groupHunks(hunks: Hunk[], context: number): Generator<Hunk[], void> {
  let group: Hunk[] = []
  for (const hunk of hunks) {
    const previous = group.at(-1)
    if (previous && hunk.beforeStart - previous.beforeEnd > 2 * context) {
      yield group
      group = []
    }
    group.push(hunk)
  }
  if (group.length > 0) yield group
}

/** Lines count from 1; an empty range names the line before it. */
function rangeText(start: number, end: number): string {
  if (end === start) return `${start},0`
  return end === start + 1 ? `${end}` : `${start + 1},${end - start}`
}

function* lineText(lines: Lines, from: number, to: number, sign: ' ' | '-' | '+', paint: Paint): Generator<Raw, void> {
  for (let line = from; line < to; line++) {
    const end = lines.starts[line + 1]!
    const endsWithFeed = lines.bytes[end - 1] === lineFeed
    yield paint.start[sign]
    yield* contentText(lines.bytes, lines.starts[line]!, endsWithFeed ? end - 1 : end, paint)
    yield `${paint.end[sign]}\n`
    if (!endsWithFeed) yield '\\ No newline at end of file\n'
  }
}

/** In pieces, because a line may be longer than a string can be; no piece ends inside a UTF-8 character. */
function* contentText(bytes: Buffer, from: number, to: number, paint: Paint): Generator<Raw, void> {
  for (let at = from; at < to; ) {
    const end = cutBefore(bytes, at + maxPieceBytes, to)
    yield paint.content(bytes.toString('latin1', at, end))
    at = end
  }
}

/** `wanted`, or a little less where that lies inside a UTF-8 character; at most `end`. */
function cutBefore(bytes: Buffer, wanted: number, end: number): number {
  if (wanted >= end) return end
  let cut = wanted
  while (cut > wanted - 3 && (bytes[cut]! & 0xc0) === 0x80) cut--
  return cut
}

/** The nearest line above that begins like a definition (a letter, `_` or `$` in the first column), as git shows it. */
function headingAbove(lines: Lines, below: number, from: number): Raw | undefined {
  for (let line = below - 1; line >= from; line--) {
    const start = lines.starts[line]!
    if (!startsName(lines.bytes[start]!)) continue
    const end = cutBefore(lines.bytes, start + maxHeadingBytes, lines.starts[line + 1]!)
    return lines.bytes.toString('latin1', start, end).replace(/[ \t-\r]+$/, '')
  }
  return undefined
}

const startsName = (byte: number) =>
  (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a) || byte === 0x5f || byte === 0x24
