/** What a run moved and no snapshot has stays where it is now: the command that puts it back. */
import type { RestoreResult } from '../../index.ts'
import { formatCount } from '../../model/format.ts'
import { nearAny, parentOf, type Raw } from '../../model/raw-path.ts'
import type { Style } from '../style.ts'
import { fitting } from './fitting.ts'
import { wordOf } from './typed-path.ts'

interface Move {
  from: Raw
  to: Raw
}

/** One line, or none. What was to be left alone is named before anything is done, too. */
export function putBackLines({ leftAlone, unprotected, dryRun }: RestoreResult, style: Style): string[] {
  const isLeft = nearAny(leftAlone.flatMap(({ path, why }) => (why === 'only-copy' ? [path] : [])))
  const moves = unprotected.paths.flatMap(({ path, to }) =>
    to !== undefined && !isOutside(to) && (!dryRun || isLeft(to)) ? [{ from: to, to: path }] : [],
  )
  if (moves.length === 0) return []
  const shown = fitting(moves, ({ from, to }) => from + to)
  const more = moves.length > shown.length ? ` … and ${formatCount(moves.length - shown.length)} more (see --json)` : ''
  return [`To put ${moves.length === 1 ? 'it' : 'them'} back: ${style.bold(commandFor(shown, style))}${more}`]
}

const isOutside = (path: Raw): boolean => path.startsWith('/')

/** Nothing is replaced by it: what is in the place of another one goes aside first, as where two directories were swapped. */
function commandFor(moves: Move[], style: Style): string {
  const places = new Set(moves.map(({ to }) => to))
  const aside = moves.filter(({ from }) => places.has(from)).map(({ from }) => ({ from, to: asideOf(from) }))
  const rest = moves.map(({ from, to }) => ({ from: places.has(from) ? asideOf(from) : from, to }))
  return [aside, rest].flatMap(each => commandsFor(each, style)).join('; ')
}

const asideOf = (path: Raw): Raw => `${path}.aside`

/** What goes from one directory to one other goes at once. */
function commandsFor(moves: Move[], style: Style): string[] {
  const groups = Map.groupBy(moves, ({ from, to }) => {
    const isRenamed = nameOf(from) !== nameOf(to)
    return isRenamed ? `${from}\0${to}` : `${parentOf(from)}\0${parentOf(to)}\0`
  })
  return Array.from(groups.values(), group => {
    const { from, to } = group[0]!
    const target = nameOf(from) === nameOf(to) ? `${wordOf(parentOf(to), style)}/` : wordOf(to, style)
    return `mv -n ${group.map(each => wordOf(each.from, style)).join(' ')} ${target}`
  })
}

const nameOf = (path: Raw): Raw => path.slice(path.lastIndexOf('/') + 1)
