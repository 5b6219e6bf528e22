/** Regular expressions of somebody else's, such as those of a repository's savepoint.yaml. */
import { Script } from 'node:vm'

const search = new Script(
  'texts.map(text => patterns.flatMap(pattern => Array.from(text.matchAll(pattern), ({ index, 0: { length } }) => [index, index + length])))',
)

type Range = readonly [start: number, end: number]

/**
 * Where `patterns` (which are global) match in each text, as start and end; undefined when that takes longer than `budgetMs`
 * in all. A pattern such as `(a+)+$` can take longer than anybody waits; only a script of node:vm can be stopped in the
 * middle of one.
 */
export function matchWithin(
  budgetMs: number,
  texts: readonly string[],
  patterns: readonly RegExp[],
): readonly (readonly Range[])[] | undefined {
  try {
    return search.runInNewContext({ texts, patterns }, { timeout: budgetMs })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  }
}
