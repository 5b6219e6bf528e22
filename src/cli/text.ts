/** Text as it can stand in a cell of a terminal. */
import { stripVTControlCharacters } from 'node:util'

const unsafe = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\udc80-\udcff]/gu

/** Labels and command lines on one line: control characters, those that reorder text, and bytes that are none are escaped. */
export function showText(text: string): string {
  return text.replace(unsafe, char => {
    if (char === '\n') return '\\n'
    if (char === '\t') return '\\t'
    // Of a lone surrogate, which stands for a byte that is not UTF-8, only that byte.
    const code = char >= '\udc80' ? char.charCodeAt(0) - 0xdc00 : char.charCodeAt(0)
    return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, '0')}`
  })
}

/** Several lines of a message, each of them as `showText` has it. */
export const showLines = (text: string): string => text.split('\n').map(showText).join('\n')

const plain = /^[ -~]*$/
const zeroWidth = /[\p{Mn}\p{Me}\p{Cf}]/u
/** Emoji shown as pictures, and the East Asian blocks that take two columns. */
const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u

/** Columns that `text` takes; colours take none. */
export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const char of stripVTControlCharacters(text)) width += zeroWidth.test(char) ? 0 : wide.test(char) ? 2 : 1
  return width
}

export function padTo(text: string, width: number, side: 'left' | 'right' = 'left'): string {
  const gap = ' '.repeat(Math.max(0, width - displayWidth(text)))
  return side === 'left' ? text + gap : gap + text
}

/** What no program takes as a path. */
const PATH_MAX = 4096
const END_CHARS = 100

/** Of a path that nobody reads, both ends: for a sentence, not for a command, which takes the whole of it. */
export const shortenPath = (shown: string): string =>
  shown.length < PATH_MAX ? shown : `${shown.slice(0, END_CHARS)}…${shown.slice(-END_CHARS)}`

/** Cuts at `limit` characters with an ellipsis. */
export function shorten(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`
}
