/**
 * Patterns of commands, as people write them in savepoint.yaml: the words that a command begins with. `*` in a word stands
 * for anything, `$` as the last word for the end of the line, and what follows a backslash for itself. Options between the words, and what
 * they take, do not matter, unless the pattern names options itself. A program without a slash is meant wherever it lies; with one it
 * is that very file.
 */
import { resolve } from 'node:path'
import { baseName, plainWords, scriptCall } from './command-words.ts'

/** Of a command: the file that is executed, and its directory. What is not known is not compared. */
export interface CommandPlace {
  file?: string
  cwd?: string
}

export function matchesCommand(
  patterns: readonly string[],
  argv: readonly string[],
  { file, cwd }: CommandPlace = {},
): boolean {
  const [first = '', ...rest] = argv
  // `node node_modules/.bin/jest` is jest.
  const script = scriptCall(argv)
  const calls = [
    { name: baseName(first), paths: [file, placeOf(first, cwd)], words: rest },
    ...(script ? [{ name: script.program, paths: [placeOf(script.path, cwd)], words: script.words }] : []),
  ]
  return patterns.some(pattern => {
    const { program, isPath, words, namesOptions } = parsed(pattern)
    if (!program) return false
    const call = calls.find(({ name, paths }) =>
      isPath ? paths.some(path => path !== undefined && program(path)) : program(name),
    )
    return call !== undefined && matchesWords(words, namesOptions, call.name, call.words)
  })
}

/** The pattern with the path of its program, if it has one, as seen from `directory`. One that begins with `*` is seen from anywhere. */
export function patternIn(directory: string, pattern: string): string {
  const [program = '', ...words] = wordsOf(pattern)
  if (!program.includes('/') || /^[/*]/.test(program)) return pattern
  const literal = directory.replaceAll(/[\\*\s]/g, '\\$&')
  return [resolve(literal, program), ...words].join(' ')
}

/** What the program of a pattern is called; undefined where that may be anything. */
export function programName(pattern: string): string | undefined {
  const name = baseName(wordsOf(pattern)[0] ?? '')
  return hasStar(name) ? undefined : name.replaceAll(escaped, '$1')
}

/** By its own path, not found by its name; undefined where that is not known. */
function placeOf(program: string, cwd: string | undefined): string | undefined {
  if (program.startsWith('/')) return resolve(program)
  return cwd !== undefined && program.includes('/') ? resolve(cwd, program) : undefined
}

type Matcher = (word: string) => boolean
/** `end`: nothing may follow. */
interface Parsed {
  program: Matcher | undefined
  isPath: boolean
  words: (Matcher | 'end')[]
  namesOptions: boolean
}

/** Every command of a run is held against all of them. */
const known = new Map<string, Parsed>()

function parsed(pattern: string): Parsed {
  let result = known.get(pattern)
  if (!result) {
    const [program, ...words] = wordsOf(pattern)
    result = {
      program: program ? matcherOf(program) : undefined,
      isPath: program?.includes('/') === true,
      words: words.map(word => (word === '$' ? 'end' : matcherOf(word))),
      namesOptions: words.some(word => word.startsWith('-')),
    }
    known.set(pattern, result)
  }
  return result
}

const escaped = /\\(.)/gs
const wordsOf = (pattern: string): string[] => pattern.match(/(?:\\.|\S)+/gs) ?? []
const hasStar = (word: string): boolean => word.replaceAll(escaped, '').includes('*')

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
  if (!/[*\\]/.test(pattern)) return word => word === pattern
  const source = pattern.replaceAll(
    /\\(.)|(\*)|([.+?^${}()|[\]\\])/gs,
    (_, literal?: string, star?: string, special?: string) =>
      star ? '.*' : (literal ?? special!).replace(/\W/s, '\\$&'),
  )
  const expression = new RegExp(`^${source}$`, 's')
  return word => expression.test(word)
}
