/**
 * Patterns of commands, as people write them in savepoint.yaml: the words that a command begins with. `*` in a word stands
 * for anything, `$` as the last word for the end of the line. Options between the words, and what they take, do not matter, unless the pattern
 * names options itself.
 */
import { baseName, plainWords, scriptCall } from './command-words.ts'

export function matchesCommand(patterns: readonly string[], argv: readonly string[]): boolean {
  const name = baseName(argv[0] ?? '')
  // `node node_modules/.bin/jest` is jest.
  const script = scriptCall(argv)
  return patterns.some(pattern => {
    const { program, words, namesOptions } = parsed(pattern)
    if (!program) return false
    if (program(name)) return matchesWords(words, namesOptions, name, argv.slice(1))
    return (
      script !== undefined && program(script.program) && matchesWords(words, namesOptions, script.program, script.words)
    )
  })
}

type Matcher = (word: string) => boolean
/** `end`: nothing may follow. */
interface Parsed {
  program: Matcher | undefined
  words: (Matcher | 'end')[]
  namesOptions: boolean
}

/** Every command of a run is held against all of them. */
const known = new Map<string, Parsed>()

function parsed(pattern: string): Parsed {
  let result = known.get(pattern)
  if (!result) {
    const [program, ...words] = pattern.trim().split(/\s+/)
    result = {
      program: program ? matcherOf(program) : undefined,
      words: words.map(word => (word === '$' ? 'end' : matcherOf(word))),
      namesOptions: words.some(word => word.startsWith('-')),
    }
    known.set(pattern, result)
  }
  return result
}

function matchesWords(
  matchers: Parsed['words'],
  namesOptions: boolean,
  program: string,
  words: readonly string[],
): boolean {
  const named = namesOptions ? words : plainWords(program, words)
  return matchers.every((matcher, i) =>
    matcher === 'end' ? named.length === i : i < named.length && matcher(named[i]!),
  )
}

function matcherOf(pattern: string): Matcher {
  if (!pattern.includes('*')) return word => word === pattern
  const source = pattern.split('*').map(part => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const expression = new RegExp(`^${source.join('.*')}$`, 's')
  return word => expression.test(word)
}
