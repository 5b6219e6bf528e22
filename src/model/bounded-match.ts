/** Regular expressions of our own, and of somebody else's, such as those of a repository's savepoint.yaml. */
import { type Context, createContext, Script } from 'node:vm'

type Range = readonly [start: number, end: number]

/** Where `patterns` (which are global) match. `exec` in a loop: `matchAll` would make a new expression each time. */
export function matchAll(text: string, patterns: readonly RegExp[]): Range[] {
  const found: Range[] = []
  for (const pattern of patterns) {
    pattern.lastIndex = 0
    for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
      found.push([match.index, match.index + match[0].length])
      if (match[0] === '') pattern.lastIndex++
    }
  }
  return found
}

const search = new Script('texts.map(text => matchAll(text, patterns))')

/** Made once: making one takes longer than most searches. */
let context: Context | undefined

/**
 * The same for each text; undefined when that takes longer than `budgetMs`
 * in all. A pattern such as `(a+)+$` can take longer than anybody waits; only a script of node:vm can be stopped in the
 * middle of one.
 */
export function matchWithin(
  budgetMs: number,
  texts: readonly string[],
  patterns: readonly RegExp[],
): readonly (readonly Range[])[] | undefined {
  try {
    context ??= createContext({})
    Object.assign(context, { texts, patterns, matchAll })
    return search.runInContext(context, { timeout: budgetMs })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  }
}
