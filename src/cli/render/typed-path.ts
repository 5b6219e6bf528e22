/** A path as it can be typed where it is shown. */
import type { Raw } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import type { Style } from '../style.ts'

export function wordOf(path: Raw, style: Style): string {
  const shown = style.operand(path) || '.'
  return quoteWord(shown.startsWith('-') ? `./${shown}` : shown)
}
