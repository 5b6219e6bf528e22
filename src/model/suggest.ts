/** Longer words are not typing errors, and the distance costs the product of the lengths. */
const maxWordLength = 64
const minPrefixLength = 2

/**
 * The candidate that the writer of `word` most likely meant, for "did you mean": the fewest typing errors (a letter
 * missing, added, wrong, or two swapped), where an abbreviation counts as one error. Undefined when nothing is close.
 * Among equals the earlier candidate wins.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length === 0 || word.length > maxWordLength) return undefined
  const typed = fold(word)
  const allowed = Math.max(1, Math.floor(typed.length / 3))
  let best: string | undefined
  let bestScore = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    const score = scoreOf(typed, fold(candidate), allowed)
    if (score < bestScore) {
      best = candidate
      bestScore = score
    }
  }
  return best
}

/** How far apart, or Infinity for "not alike". */
function scoreOf(typed: string, candidate: string, allowed: number): number {
  const isAbbreviation = typed.length >= minPrefixLength && candidate.startsWith(typed)
  // Among several continuations of an abbreviation the shortest is the likeliest.
  const abbreviationScore = isAbbreviation ? 1 + Math.min(candidate.length, 999) / 1000 : Number.POSITIVE_INFINITY
  if (Math.abs(candidate.length - typed.length) > allowed) return abbreviationScore
  const distance = editDistance(typed, candidate)
  // A wrong word of the same few letters shares nothing: "gc" is no "ui".
  const alike = distance <= allowed && distance < candidate.length && distance < Math.max(2, typed.length)
  return Math.min(abbreviationScore, alike ? distance : Number.POSITIVE_INFINITY)
}

/** maxFileBytes, max-file-bytes and MAX_FILE_BYTES all read as max_file_bytes. */
function fold(word: string): string {
  return word
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
}

/** Damerau-Levenshtein distance (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const changed = a[row - 1] === b[column - 1] ? 0 : 1
      let cost = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + changed)
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, beforePrevious[column - 2]! + 1)
      }
      current.push(cost)
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length]!
}
