import type { Gone, GonePath, RunResult, UnknownReason, Unprotected, UnprotectedPath } from '../../index.ts'
import { formatCount } from '../../model/format.ts'
import { type Raw, showPath } from '../../model/raw-path.ts'
import type { Style } from '../style.ts'
import { keptCopyText } from './kept-copy.ts'
import { reasonWords } from './reason-words.ts'
import { wordOf } from './typed-path.ts'

const listedGone = 5

const words: Partial<Record<UnknownReason, string>> = { excluded: 'ignored', 'too-large': 'too large' }

/**
 * "NOT protected and gone: data.db, node_modules (ignored; they cannot be brought back)", and a line for each snapshot that
 * has an older version of some of them, or that a filesystem keeps with them in it.
 */
export function goneText({ count, paths }: Gone, style: Style): string {
  const shown = paths.slice(0, listedGone)
  const more = count > shown.length ? ` and ${formatCount(count - shown.length)} more` : ''
  const names = shown.map(({ path }) => style.path(path)).join(', ')
  const line = `${style.red('NOT protected')} and gone: ${names}${more} (${whyOf(paths)}; ${whatIsLeft({ count, paths })})`
  return [line, ...unmountedLines(shown, style), ...keptLines(paths, style), ...olderLines(paths, style)].join('\n')
}

function whatIsLeft({ count, paths }: Gone): string {
  const kept = paths.flatMap(path => path.kept ?? [])
  if (kept.length === 0) return `${count === 1 ? 'it' : 'they'} cannot be brought back`
  const keepers = [...new Set(kept.map(({ backend }) => backend))].join(' and ')
  const all = count === 1 ? 'it' : 'them'
  return `only ${keepers} has ${kept.length === count ? all : 'some of them'}`
}

function keptLines(paths: GonePath[], style: Style): string[] {
  const kept = paths.filter(path => path.kept !== undefined)
  const lines = kept.slice(0, listedGone).map(({ path, kept }) => keptCopyText(path, kept!, true, style))
  const more = kept.length - lines.length
  return more > 0 ? [...lines, `and ${formatCount(more)} more: ${style.command('coverage PATH')} says where`] : lines
}

/** A nested subvolume is deleted as a directory is, with all that is in it; a mount point only once it is none. Which of them it was is not known any more. */
function unmountedLines(shown: GonePath[], style: Style): string[] {
  const names = shown.flatMap(({ path, reason }) => (reason === 'mount' ? [style.path(path)] : []))
  if (names.length === 0) return []
  return [
    `If ${names.join(', ')} was only unmounted, its own filesystem still has what is in it, unless that was in memory`,
  ]
}

/** The same of what was changed or moved, and where a filesystem keeps what was changed; '' when there is none. Ends in a line feed. */
export function unprotectedText({ count, paths }: Unprotected, style: Style): string {
  const moved = paths.filter(({ to }) => to !== undefined)
  const changed = paths.filter(({ to }) => to === undefined)
  const line = (verb: string, all: UnprotectedPath[], number: number, undo: string) => {
    if (all.length === 0) return ''
    const names = all
      .slice(0, listedGone)
      .map(({ path, to }) => style.path(path) + (to === undefined ? '' : ` (now ${placeOf(to, style)})`))
    const more = number > listedGone ? ` and ${formatCount(number - listedGone)} more` : ''
    return `${style.red('NOT protected')} and ${verb}: ${names.join(', ')}${more} (${whyOf(all)}; undo ${undo})\n`
  }
  return (
    line('changed', changed, count - moved.length, 'cannot take that back') +
    keptOf(changed)
      .map(({ path, kept }) => `${keptCopyText(path, kept, false, style)}\n`)
      .join('') +
    line('moved', moved, moved.length, 'does not move that back')
  )
}

const keptOf = (paths: UnprotectedPath[]) =>
  paths.slice(0, listedGone).flatMap(({ path, kept }) => (kept === undefined ? [] : [{ path, kept }]))

/** What a run made and hid by rules of its own, or was too large, or mounted; '' when there is none. Ends in a line feed. */
export function madeText({ hidden, uncaptured }: Pick<RunResult, 'hidden' | 'uncaptured'>, style: Style): string {
  const line = (count: number, paths: readonly Raw[], why: string) => {
    if (count === 0) return ''
    const names = paths.slice(0, listedGone).map(path => style.path(path))
    const more = count > names.length ? ` and ${formatCount(count - names.length)} more` : ''
    const them = count === 1 ? 'it' : 'them'
    return `${style.red('NOT protected')} and made: ${names.join(', ')}${more} (${why}; undo leaves ${them})\n`
  }
  const others = uncaptured.map(({ path }) => path)
  const why = whyOf(uncaptured)
  return line(hidden.count, hidden.paths, 'ignored by rules of the run') + line(others.length, others, why)
}

const placeOf = (to: Raw, style: Style): string => (to.startsWith('/') ? showPath(to) : style.path(to))

const whyOf = (paths: { reason: UnknownReason }[]): string =>
  [...new Set(paths.map(({ reason }) => words[reason] ?? reasonWords(reason)))].join(', ')

function olderLines(paths: GonePath[], style: Style): string[] {
  const bySnapshot = Map.groupBy(
    paths.filter(({ snapshot }) => snapshot !== undefined),
    ({ snapshot }) => snapshot!,
  )
  return Array.from(bySnapshot, ([snapshot, found]) => {
    const words = found.slice(0, listedGone).map(({ path }) => wordOf(path, style))
    const what = found.length === 1 ? 'an older version' : 'older versions'
    const some = found.length > listedGone ? ` of ${formatCount(found.length)}, ${listedGone} of them` : ''
    return `${snapshot} has ${what}${some}: ${style.bold(style.command(`revert ${words.join(' ')} --from ${snapshot}`))}`
  })
}
