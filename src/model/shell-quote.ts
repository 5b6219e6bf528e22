import { hasStrayBytes, type Raw, rawFromText, rawToText, showPath } from './raw-path.ts'

/** A command line as a POSIX shell reads it back, for showing and for pasting. */
export const quoteCommand = (command: readonly string[]): string => command.map(quoteWord).join(' ')

/** The same in one line, short enough to stand in a sentence. */
export function nameCommand(command: readonly string[]): string {
  const line = quoteCommand(command).replace(/\s+/g, ' ')
  return line.length <= NAME_CHARS ? line : `${line.slice(0, NAME_CHARS - 1)}…`
}

const NAME_CHARS = 60

export function quoteWord(word: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word
  // No terminal shows bytes that are not UTF-8, so that they could be pasted.
  return hasStrayBytes(word) ? `"$(printf ${quoted(octal(rawFromText(word), '\\'))})"` : quoted(word)
}

/**
 * The same of bytes that a program gets as they are, in one line. What cannot be shown is spelled: not by printf, because `$( )`
 * loses the newlines at the end. bash, zsh and ksh read that.
 */
export function quoteRaw(raw: Raw): string {
  const text = rawToText(raw)
  return showPath(raw) === text ? quoteWord(text) : `$'${octal(raw, '\\')}'`
}

/** As ASCII for a shell that does `eval "exec $(printf %b "$1")"`: every byte of every word arrives. */
export const spellCommand = (command: readonly string[]): string =>
  octal(command.map(word => quoted(rawFromText(word))).join(' '), '\\0')

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** printf takes `\377` in its format, but `\0377` for %b. */
const octal = (raw: Raw, start: string): string =>
  raw.replace(/[^\w ./=-]/g, byte => `${start}${byte.charCodeAt(0).toString(8).padStart(3, '0')}`)
