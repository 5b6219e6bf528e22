/**
 * Patterns of commands, as people write them in savepoint.yaml: the words that a command begins with. `*` in a word stands
 * for anything, `$` as the last word for the end of the line. Options between the words do not matter, unless the pattern
 * names options itself.
 */

export function matchesCommand(pattern: string, argv: readonly string[]): boolean {
  const [program, ...words] = pattern.trim().split(/\s+/)
  const [first = '', ...rest] = argv
  const script = rest.find(word => !word.startsWith('-'))
  if (!program) return false
  if (matchesWord(program, baseName(first))) return matchesWords(words, rest)
  // `node node_modules/.bin/jest` is jest.
  if (!/^(?:node|nodejs|python[\d.]*|bun|deno)$/.test(baseName(first)) || script === undefined) return false
  const name = baseName(script).replace(/\.(?:[cm]?js|py)$/, '')
  return matchesWord(program, name) && matchesWords(words, rest.slice(rest.indexOf(script) + 1))
}

function matchesWords(pattern: readonly string[], words: readonly string[]): boolean {
  const named = pattern.some(word => word.startsWith('-')) ? words : words.filter(word => !word.startsWith('-'))
  return pattern.every((word, i) =>
    word === '$' ? named.length === i : i < named.length && matchesWord(word, named[i]!),
  )
}

function matchesWord(pattern: string, word: string): boolean {
  if (!pattern.includes('*')) return pattern === word
  const source = pattern.split('*').map(part => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${source.join('.*')}$`, 's').test(word)
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
