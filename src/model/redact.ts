/** Hides secrets in a command line before it is written down. */
import { matchAll, matchWithin } from './bounded-match.ts'

const HIDDEN = '‹redacted›'
/** A pattern of the user's may take time that grows with the square of what it is given: 64 KiB took 12 s, this 0.14 s. */
const MAX_SEARCHED = 8 * 1024
/** Less than what is searched, because a pattern may know a secret only by what follows it. The rest is cut off. */
const MAX_KEPT = 7 * 1024
const CUT = '…'
/** The command waits for this. What is searched takes the default patterns some milliseconds. */
const BUDGET_MS = 2000

export interface RedactPatterns {
  /** Known to take no longer than the text is long: they need no watch, whose start takes longer than the search. */
  quick: readonly RegExp[]
  other: readonly RegExp[]
}

export function redactCommand(
  command: readonly string[],
  patterns: RedactPatterns,
  onLate: () => void = () => {},
): string[] {
  return redactCommands([command], patterns, onLate)[0]!
}

/**
 * Patterns see the words joined by spaces, because a secret often follows its option as a word of its own. When they take too
 * long, `onLate` is called and every word but the program is hidden: any of them may be a secret. Many at once, because
 * starting a search costs more than the search.
 */
export function redactCommands(
  commands: readonly (readonly string[])[],
  { quick, other }: RedactPatterns,
  onLate: () => void,
): string[][] {
  if (commands.length === 0) return []
  const texts = commands.map(command => command.join(' ').slice(0, MAX_SEARCHED))
  const secrets = other.length === 0 ? texts.map(() => []) : matchWithin(BUDGET_MS, texts, other)
  if (!secrets) {
    onLate()
    return commands.map(command => command.map((word, index) => (index === 0 ? word : HIDDEN)))
  }
  return commands.map((command, i) => hideIn(command, [...matchAll(texts[i]!, quick), ...secrets[i]!]))
}

function hideIn(command: readonly string[], secrets: readonly (readonly [number, number])[]): string[] {
  let start = 0
  // Most have none.
  if (secrets.length === 0 && command.reduce((sum, word) => sum + word.length + 1, 0) <= MAX_KEPT) return [...command]
  return command.map(word => {
    const from = start
    start += word.length + 1
    const kept = word.slice(0, Math.max(0, MAX_KEPT - from))
    const shown = hide(
      kept,
      secrets.map(([a, b]) => [Math.max(a - from, 0), Math.min(b - from, kept.length)] as const),
    )
    return kept === word ? shown : shown + CUT
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
