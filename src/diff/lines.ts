/**
 * A buffer seen as lines. A line is its bytes with the line feed that ends it, so CRLF, a missing final line feed and
 * bytes that are not UTF-8 all count as differences and all survive.
 */
export interface Lines {
  bytes: Buffer
  count: number
  /** Where each line starts, with the length of `bytes` as one entry more. */
  starts: Float64Array
}

const lineFeed = 0x0a
const compareBlockBytes = 4096
const guessedLineBytes = 24
/** Above this a native call is faster than a loop. */
const longBytes = 64

export function indexLines(bytes: Buffer): Lines {
  let starts = new Float64Array(16 + Math.ceil(bytes.length / guessedLineBytes))
  let count = bytes.length === 0 ? 0 : 1
  for (let i = 0; i < bytes.length - 1; i++) {
    if (bytes[i] !== lineFeed) continue
    // One place more than now needed: the last entry is the length.
    if (count + 1 >= starts.length) {
      const larger = new Float64Array(starts.length * 2)
      larger.set(starts)
      starts = larger
    }
    starts[count++] = i + 1
  }
  starts[count] = bytes.length
  return { bytes, count, starts: starts.subarray(0, count + 1) }
}

export function sameLine(lines: Lines, left: number, right: number): boolean {
  const from = lines.starts[left]!
  const to = lines.starts[right]!
  const length = lines.starts[left + 1]! - from
  return lines.starts[right + 1]! - to === length && equalBytes(lines.bytes, from, lines.bytes, to, length)
}

export function equalBytes(a: Buffer, aAt: number, b: Buffer, bAt: number, length: number): boolean {
  if (length > longBytes) return a.compare(b, bAt, bAt + length, aAt, aAt + length) === 0
  for (let i = 0; i < length; i++) if (a[aAt + i] !== b[bAt + i]) return false
  return true
}

/** How many whole lines both sides share at their start and, without overlap, at their end. */
export function commonEnds(before: Lines, after: Lines): { prefix: number; suffix: number } {
  const shared = commonPrefixBytes(before.bytes, after.bytes)
  const prefix = Math.min(linesWithin(before, shared), linesWithin(after, shared))
  const tail = commonSuffixBytes(before.bytes, after.bytes, before.starts[prefix]!)
  const suffix = Math.min(linesFrom(before, before.bytes.length - tail), linesFrom(after, after.bytes.length - tail))
  return { prefix, suffix }
}

function commonPrefixBytes(a: Buffer, b: Buffer): number {
  const limit = Math.min(a.length, b.length)
  let at = 0
  while (at + compareBlockBytes <= limit && equalBytes(a, at, b, at, compareBlockBytes)) at += compareBlockBytes
  while (at < limit && a[at] === b[at]) at++
  return at
}

function commonSuffixBytes(a: Buffer, b: Buffer, taken: number): number {
  const limit = Math.min(a.length, b.length) - taken
  let length = 0
  for (let next = compareBlockBytes; next <= limit; next += compareBlockBytes) {
    if (!equalBytes(a, a.length - next, b, b.length - next, compareBlockBytes)) break
    length = next
  }
  while (length < limit && a[a.length - length - 1] === b[b.length - length - 1]) length++
  return length
}

/** Lines that end at or before `offset`. */
function linesWithin(lines: Lines, offset: number): number {
  const line = firstStartFrom(lines, offset)
  return line <= lines.count && lines.starts[line] === offset ? line : line - 1
}

/** Lines that start at or after `offset`. */
const linesFrom = (lines: Lines, offset: number) => lines.count - Math.min(lines.count, firstStartFrom(lines, offset))

/** The smallest index into `starts` whose value is at least `offset`. */
function firstStartFrom(lines: Lines, offset: number): number {
  let low = 0
  let high = lines.count + 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (lines.starts[middle]! < offset) low = middle + 1
    else high = middle
  }
  return low
}
