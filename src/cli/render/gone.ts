import type { Gone, UnknownReason } from '../../index.ts'
import { formatCount } from '../../model/format.ts'
import type { Style } from '../style.ts'
import { reasonWords } from './reason-words.ts'

const listedGone = 5

const words: Partial<Record<UnknownReason, string>> = { excluded: 'ignored', 'too-large': 'too large' }

/** "NOT protected and gone: data.db, node_modules (ignored; undo cannot bring them back)". */
export function goneText({ count, paths }: Gone, style: Style): string {
  const shown = paths.slice(0, listedGone)
  const more = count > shown.length ? ` and ${formatCount(count - shown.length)} more` : ''
  const why = [...new Set(paths.map(({ reason }) => words[reason] ?? reasonWords(reason)))].join(', ')
  const names = shown.map(({ path }) => style.path(path)).join(', ')
  return `${style.red('NOT protected')} and gone: ${names}${more} (${why}; undo cannot bring ${count === 1 ? 'it' : 'them'} back)`
}
