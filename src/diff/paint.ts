import type { Raw } from '../model/raw-path.ts'
import { makeVisible } from './visible.ts'

/** How the parts of a diff are written. Parts are raw strings; `start` and `end` go around the content of a line. */
export interface Paint {
  /** A whole line, without its line feed. */
  header(line: string): Raw
  range(range: string, heading: Raw): Raw
  /** Content on its way out. */
  content(text: Raw): Raw
  start: { ' ': Raw; '-': Raw; '+': Raw }
  end: { ' ': Raw; '-': Raw; '+': Raw }
}

/** Exact to the byte. */
export const plainPaint: Paint = {
  header: line => `${line}\n`,
  range: (range, heading) => `${range}${heading === '' ? '' : ` ${heading}`}\n`,
  content: text => text,
  start: { ' ': ' ', '-': '-', '+': '+' },
  end: { ' ': '', '-': '', '+': '' },
}

const reset = '\x1b[m'

/** For a terminal: git's colours, and content that cannot steer the terminal. */
export const terminalPaint: Paint = {
  header: line => `\x1b[1m${line}${reset}\n`,
  range: (range, heading) => `\x1b[36m${range}${reset}${heading === '' ? '' : ` ${makeVisible(heading)}`}\n`,
  content: makeVisible,
  start: { ' ': ' ', '-': '\x1b[31m-', '+': '\x1b[32m+' },
  end: { ' ': '', '-': reset, '+': reset },
}
