/** The options of `git commit`: whether it commits, or only says what it would. */

/** Those that take the next word, unless their value is in their own. */
const longWithValue =
  /^--(?:message|file|reedit-message|reuse-message|author|date|fixup|squash|trailer|template|cleanup|pathspec-from-file)$/
/** In a word of several letters the first of these takes the rest, or the next word if there is none. */
const shortWithValue = /^-[a-zA-Z]*?([mFcCtSu])(.*)$/s
/** `-S` and `-u` have their value in their own word, or none. */
const takesNext = /[mFcCt]/
/** Each implies --dry-run. Git takes what a long option begins with for it. */
const dry = ['--dry-run', '--short', '--porcelain', '--long', '--null', '--help']
const LEAST_LETTERS = '--lo'.length

/** `words`: behind `git commit`. */
export function onlyShowsCommit(words: readonly string[]): boolean {
  for (let at = 0; at < words.length && words[at] !== '--'; at++) {
    const word = words[at]!
    if (word.startsWith('--')) {
      if (word.length >= LEAST_LETTERS && dry.some(option => option.startsWith(word))) return true
      if (longWithValue.test(word)) at++
      continue
    }
    const [, letter, value] = shortWithValue.exec(word) ?? []
    if (/^-[a-zA-Z]*z/.test(letter === undefined ? word : word.slice(0, word.indexOf(letter)))) return true
    if (letter !== undefined && takesNext.test(letter) && value === '') at++
  }
  return false
}
