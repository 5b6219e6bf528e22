import type { Raw } from '../model/raw-path.ts'

const letters: Record<string, string> = {
  '\x07': 'a',
  '\b': 'b',
  '\t': 't',
  '\n': 'n',
  '\v': 'v',
  '\f': 'f',
  '\r': 'r',
  '"': '"',
  '\\': '\\',
}
const special = /["\\\x00-\x1f\x7f-\xff]/g

/**
 * A name as git writes it (core.quotePath on): as it is, or in double quotes with C escapes when it holds a control
 * character, a quote, a backslash or a byte above 0x7f. The result is ASCII without line feeds.
 */
export function quoteName(name: Raw): string {
  const escaped = name.replace(special, char => {
    return `\\${letters[char] ?? char.charCodeAt(0).toString(8).padStart(3, '0')}`
  })
  return escaped === name ? name : `"${escaped}"`
}
