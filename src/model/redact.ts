/** Hides secrets in a command line before it is written down. */

const HIDDEN = '‹redacted›'
/** Longer command lines are not searched: a pattern could take too long. What is behind this is cut off. */
const MAX_SEARCHED = 64 * 1024

/** Patterns see the words joined by spaces, because a secret often follows its option as a word of its own. */
export function redactCommand(command: readonly string[], patterns: readonly RegExp[]): string[] {
  const line = command.join(' ').slice(0, MAX_SEARCHED)
  const secrets = patterns.flatMap(pattern =>
    [...line.matchAll(pattern)].map(match => [match.index, match.index + match[0].length] as const),
  )
  let start = 0
  return command.map(word => {
    const from = start
    start += word.length + 1
    if (from >= MAX_SEARCHED) return '…'
    return hide(
      word,
      secrets.map(([a, b]) => [Math.max(a - from, 0), Math.min(b - from, word.length)] as const),
    )
  })
}

/** Replaces the ranges of `word`; they may overlap or lie outside of it. */
function hide(word: string, ranges: readonly (readonly [number, number])[]): string {
  let result = ''
  let at = 0
  for (const [start, end] of ranges.filter(([a, b]) => a < b).sort((x, y) => x[0] - y[0])) {
    if (end <= at) continue
    if (start >= at) result += word.slice(at, start) + HIDDEN
    at = end
  }
  return result + word.slice(at)
}
