import type { Raw } from '../model/raw-path.ts'

// Alternatives in order: UTF-8 that steers a terminal (C1 controls, line separators, direction overrides), other valid
// UTF-8, control characters except tab and line feed, bytes that are not UTF-8.
const pieces = new RegExp(
  [
    '(\\xc2[\\x80-\\x9f]|\\xe2\\x80[\\xa8-\\xae]|\\xe2\\x81[\\xa6-\\xa9])',
    '([\\xc2-\\xdf][\\x80-\\xbf]|\\xe0[\\xa0-\\xbf][\\x80-\\xbf]|\\xed[\\x80-\\x9f][\\x80-\\xbf]|' +
      '[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}|\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}|[\\xf1-\\xf3][\\x80-\\xbf]{3}|' +
      '\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2})',
    '([\\x00-\\x08\\x0b-\\x1f\\x7f])',
    '([\\x80-\\xff])',
  ].join('|'),
  'g',
)

/**
 * Content (one character per byte) that is safe to show in a terminal: control characters in caret notation (`^[`),
 * direction overrides and C1 controls as `<U+202E>`, bytes that are not UTF-8 as `<FF>`. Tabs, line feeds and all other
 * UTF-8 stay. Not reversible.
 */
export function makeVisible(content: Raw): Raw {
  return content.replace(pieces, (whole, steering?: string, valid?: string, control?: string) => {
    if (valid !== undefined) return valid
    if (control !== undefined) return `^${String.fromCharCode(control.charCodeAt(0) ^ 0x40)}`
    if (steering === undefined) return `<${hex(whole.charCodeAt(0), 2)}>`
    return `<U+${hex(Buffer.from(steering, 'latin1').toString('utf8').codePointAt(0)!, 4)}>`
  })
}

const hex = (code: number, digits: number) => code.toString(16).toUpperCase().padStart(digits, '0')
