/** The command line of git: what it is asked to do, and where. */

export interface GitCall {
  /** '' when there is none. */
  verb: string
  words: string[]
  /** From where it was called; '.' when no option says otherwise. */
  directory: string
}

/** Options of git itself that take the next word. */
const withValue = new Set([
  '-C',
  '-c',
  '--git-dir',
  '--work-tree',
  '--namespace',
  '--exec-path',
  '--super-prefix',
  '--config-env',
])
/** An alias may name another one. */
const MAX_ALIASES = 5

/** `words`: behind `git`. `alias`: the words that git puts in the place of a verb, if that is an alias. */
export function parseGit(words: readonly string[], alias: (call: GitCall) => string | undefined): GitCall {
  let at = 0
  let directory = '.'
  while (at < words.length && words[at]!.startsWith('-')) {
    const word = words[at]!
    const value = words[at + 1]
    if ((word === '-C' || word === '--work-tree') && value !== undefined) directory = join(directory, value)
    if (word.startsWith('--work-tree=')) directory = join(directory, word.slice('--work-tree='.length))
    at += withValue.has(word) ? 2 : 1
  }
  let call: GitCall = { verb: words[at] ?? '', words: words.slice(at + 1), directory }
  for (let i = 0; i < MAX_ALIASES; i++) {
    const meaning = alias(call)
    // `!` starts a shell, whose commands are seen as such.
    if (meaning === undefined || meaning.startsWith('!')) break
    const [verb = '', ...more] = meaning.trim().split(/\s+/)
    call = { ...call, verb, words: [...more, ...call.words] }
  }
  return call
}

const join = (base: string, path: string): string => (path.startsWith('/') || base === '.' ? path : `${base}/${path}`)
