/** The command line of git: what it is asked to do, and where. */

export interface GitCall {
  /** '' when there is none. */
  verb: string
  words: string[]
  /** From where it was called, or the work tree that is named; '.' when nothing says otherwise. */
  directory: string
  /** The repository, where it is named and not found from the directory. */
  gitDirectory: string | undefined
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

/**
 * `words`: behind `git`. `alias`: the words that git puts in the place of a verb, if that is an alias. `named`: what its
 * environment says, unless its options say otherwise.
 */
export function parseGit(
  words: readonly string[],
  alias: (call: GitCall) => string | undefined,
  named: { workTree: string | undefined; gitDirectory: string | undefined } = noNames,
): GitCall {
  let at = 0
  let directory = '.'
  let { workTree, gitDirectory } = named
  while (at < words.length && words[at]!.startsWith('-')) {
    const word = words[at]!
    const value = words[at + 1]
    if (word === '-C' && value !== undefined) directory = join(directory, value)
    workTree = optionValue('--work-tree', word, value) ?? workTree
    gitDirectory = optionValue('--git-dir', word, value) ?? gitDirectory
    at += withValue.has(word) ? 2 : 1
  }
  let call: GitCall = {
    verb: words[at] ?? '',
    words: words.slice(at + 1),
    directory: workTree === undefined ? directory : join(directory, workTree),
    gitDirectory: gitDirectory === undefined ? undefined : join(directory, gitDirectory),
  }
  for (let i = 0; i < MAX_ALIASES; i++) {
    const meaning = alias(call)
    // `!` starts a shell, whose commands are seen as such.
    if (meaning === undefined || meaning.startsWith('!')) break
    const [verb = '', ...more] = meaning.trim().split(/\s+/)
    call = { ...call, verb, words: [...more, ...call.words] }
  }
  return call
}

const noNames = { workTree: undefined, gitDirectory: undefined }

function optionValue(option: string, word: string, next: string | undefined): string | undefined {
  if (word === option) return next
  return word.startsWith(`${option}=`) ? word.slice(option.length + 1) : undefined
}

const join = (base: string, path: string): string => (path.startsWith('/') || base === '.' ? path : `${base}/${path}`)
