/** What a rollback, revert, undo or redo did, or would do, and how to take it back. */

import type { LeftAlonePath, PlannedChange, RestoreResult } from '../../index.ts'
import { formatCount, plural, restoreCounts } from '../../model/format.ts'
import { isGitInternal, nearAny, parentOf, type Raw } from '../../model/raw-path.ts'
import { writesToOldFile } from '../../model/running.ts'
import type { Style } from '../style.ts'
import { shortenPath } from '../text.ts'
import { includedText } from './changes.ts'
import { fits, fitting } from './fitting.ts'
import { goneText, unprotectedText } from './gone.ts'
import { keptCopyText } from './kept-copy.ts'
import { putBackLines } from './put-back.ts'
import { reasonWords } from './reason-words.ts'
import { isPartial, missingText, nameOf } from './snapshot.ts'
import { wordOf } from './typed-path.ts'

const reasons: Record<LeftAlonePath['why'], string> = {
  edited: 'edited by somebody else since',
  'not-stored': 'its present content could not be stored first',
  'no-room': 'its present content could not be stored first, for want of room',
  mounted: 'something is mounted there, which is not entered',
  subvolume: 'it is a nested subvolume now, which is not entered',
  'holds-uncaptured': 'holds files that no snapshot has',
  refused: 'the system refused to change it',
  attributes: 'the system refused its owner, or other attributes',
  'in-the-way': 'something else stands in its place',
  'only-copy': 'the run moved it there from where nothing is captured: there is no other',
  outside: 'changed by somebody outside of the run while it went on',
  purged: 'its content was purged from history since',
  overlapped: 'another run was at work, too: whose change it is cannot be told',
}

const actions: Record<PlannedChange['action'], [letter: string, paint: 'green' | 'red' | 'yellow']> = {
  create: ['+', 'green'],
  delete: ['-', 'red'],
  replace: ['~', 'yellow'],
  metadata: ['m', 'yellow'],
}

const listedPaths = 20
const listedCommands = 3

/** `verb` in the past and in the conditional: "Rolled back to", "Would roll back to". */
export interface RestoreWords {
  done: string
  would: string
  /** The line that says how to take it back; '' when that is said elsewhere. */
  undo: string
  /** The snapshot before what is taken back, when `result.snapshot` is not it. */
  before?: string
  /** What to try when all is as it was wanted already. */
  otherwise?: string
}

/** The whole report, ending in a line feed. */
export function restoreText(result: RestoreResult, words: RestoreWords, style: Style): string {
  const lines: string[] = []
  const to = result.snapshot ? ` ${nameOf(result.snapshot)}` : ''
  const counts = `${restoreCounts(result.files)}${includedText(result.emptyDirs)}`
  if (counts === '' && result.changes.length === 0) {
    lines.push(nothingText(result))
  } else {
    lines.push(`${result.dryRun ? words.would : words.done}${to}: ${counts || plural('change', result.changes.length)}`)
  }
  if (result.dryRun) lines.push(...result.changes.map(change => planLine(change, style)))
  lines.push(...notDoneLines(result, words.before ?? result.snapshot?.id, style), ...putBackLines(result, style))
  if (result.keptDirs.length > 0) {
    lines.push(`Kept, because something else lives in them: ${pathList(result.keptDirs, style)}`)
  }
  const { hidden } = result
  if (hidden.count > 0) {
    lines.push(`Stay, because ignore rules hid them: ${pathList(hidden.paths, style, hidden.count)}`)
  }
  if (result.gone.count > 0) lines.push(goneText(result.gone, style))
  if (result.unprotected.count > 0) lines.push(unprotectedText(result.unprotected, style).trimEnd())
  if (mayBeBuilt(result)) lines.push('Files that went back have their old times: build what is made of them anew')
  lines.push(...mixedLines(result, style))
  if (result.uncaptured.length > 0) lines.push(uncapturedText(result, style))
  lines.push(...stillOpenLines(result, style))
  if (result.lateEdits) lines.push(`Edits that came in meanwhile are kept in ${result.lateEdits.id}`)
  if (result.dryRun && result.changes.length > 0) lines.push('Nothing was changed (dry run)')
  else if (isUndoable(result) && words.undo !== '') lines.push(words.undo)
  if (words.otherwise !== undefined && isAsWanted(result)) lines.push(words.otherwise)
  return `${lines.join('\n')}\n`
}

/** Only what went wrong: what is not as it was wanted, or was perhaps somebody else's, and what to do about it; '' when there is none. Ends in a line feed. */
export function notDoneText(result: RestoreResult, style: Style): string {
  const isAllDone = result.leftAlone.length === 0
  const notDone = isAllDone ? [] : [...notDoneLines(result, result.snapshot?.id, style), ...putBackLines(result, style)]
  return [...notDone, ...mixedLines(result, style)].map(line => `${line}\n`).join('')
}

const notDoneLines = (result: RestoreResult, before: string | undefined, style: Style): string[] => [
  ...leftAloneLines(result.leftAlone, style),
  ...inTheWayLines(result, style),
  ...noRoomLines(result, style),
  ...othersLines(result, before, style),
]

/** "Everything" only where nothing is left that is not so. */
function nothingText({ snapshot, leftAlone, hidden, uncaptured, gone, dryRun }: RestoreResult): string {
  if (leftAlone.length > 0) return dryRun ? 'Nothing would be changed' : 'Nothing was changed'
  if (!snapshot) return 'Nothing to change'
  const isAll = hidden.count + uncaptured.length + gone.count === 0
  return `Nothing to change: everything ${isAll ? '' : 'else '}is as in ${nameOf(snapshot)}`
}

const isAsWanted = ({ changes, leftAlone }: RestoreResult): boolean => changes.length === 0 && leftAlone.length === 0

export const changedPaths = ({ changes }: RestoreResult): Raw[] => changes.map(({ path }) => path)

/** A restore without a safety snapshot is an operation that cannot be taken back. */
export const isUndoable = ({ operation }: RestoreResult): boolean => operation?.state === 'done'

/** How to take back all of `done`, each of which is an operation. */
export function undoHint(done: RestoreResult[], style: Style): string {
  const times = done.length > 1 ? ` all, ${done.length} times` : ''
  return `To undo${times}: ${style.bold(style.wayBack('undo', done.flatMap(changedPaths)))}`
}

function planLine({ action, path, files }: PlannedChange, style: Style): string {
  const [letter, paint] = actions[action]
  return `  ${style[paint](letter)} ${shown(path, style)}${path === '' ? '/' : ''}${files > 1 ? ` (${plural('file', files)})` : ''}`
}

function leftAloneLines(all: LeftAlonePath[], style: Style): string[] {
  const { incomplete = [], untouched = [] } = Object.groupBy(all, ({ why }) =>
    why === 'attributes' ? 'incomplete' : 'untouched',
  )
  return [
    ...listLines('Left alone', untouched, style),
    ...listLines('Restored, but not with all attributes', incomplete, style),
  ]
}

function listLines(title: string, paths: LeftAlonePath[], style: Style): string[] {
  if (paths.length === 0) return []
  const lines = [style.yellow(`${title} (${formatCount(paths.length)}):`)]
  for (const { path, why } of paths.slice(0, listedPaths)) lines.push(`  ${shown(path, style)}: ${reasons[why]}`)
  if (paths.length > listedPaths)
    lines.push(`  … and ${formatCount(paths.length - listedPaths)} more (--json lists all)`)
  return lines
}

/** The whole directory was not asked for, so it is named how to ask for it. */
function inTheWayLines({ leftAlone, snapshot }: RestoreResult, style: Style): string[] {
  const paths = leftAlone.flatMap(({ path, why }) => (why === 'in-the-way' ? [wordOf(path, style)] : []))
  if (!snapshot || paths.length === 0 || !fits(paths)) return []
  const what = paths.length === 1 ? 'the directory' : 'the directories'
  return [`To put ${what} back: ${style.bold(style.command(`revert ${paths.join(' ')} --from ${snapshot.id}`))}`]
}

/** What others did, or what no snapshot can give back, is left to the user: how to have the state `before` all the same. */
function othersLines({ leftAlone }: RestoreResult, before: string | undefined, style: Style): string[] {
  const pathsOf = (...reasons: LeftAlonePath['why'][]) =>
    leftAlone.flatMap(({ path, why }) => (path !== '' && reasons.includes(why) ? [wordOf(path, style)] : []))
  const lines: string[] = []
  const others = pathsOf('overlapped', 'outside', 'edited')
  if (before !== undefined && others.length > 0) {
    const which = fits(others) ? ` -- ${others.join(' ')}` : ''
    lines.push(`To take back their changes, too: ${style.bold(style.command(`rollback ${before}${which}`))}`)
  }
  const purged = pathsOf('purged')
  if (before !== undefined && purged.length > 0 && fits(purged))
    lines.push(
      `To remove what is purged, too: ${style.bold(style.command(`rollback ${before} -- ${purged.join(' ')}`))}`,
    )
  const held = pathsOf('holds-uncaptured', 'subvolume')
  const mounted = pathsOf('mounted')
  const them = (paths: string[]): string => (paths.length === 1 ? 'it' : 'them')
  const putBack = (clear: string[], paths: string[]): string =>
    style.bold([...clear, style.command(`revert ${paths.join(' ')} --from ${before}`)].join('; '))
  if (before !== undefined && held.length > 0 && fits(held)) {
    const clear = held.map(path => `mv ${path} ${path}.aside`)
    lines.push(`To put ${them(held)} back: ${putBack(clear, held)}`)
  }
  if (before !== undefined && mounted.length > 0 && fits(mounted)) {
    const clear = [`umount ${mounted.join(' ')}`]
    lines.push(`To put ${them(mounted)} back, without what is only in memory there: ${putBack(clear, mounted)}`)
  }
  return lines
}

/** `make` takes an object file for up to date that is newer than its source, also where that has another content again. */
const mayBeBuilt = ({ unprotected, changes, dryRun }: RestoreResult): boolean =>
  !dryRun &&
  unprotected.paths.some(({ reason, to }) => reason === 'excluded' && to === undefined) &&
  changes.some(({ action, path }) => (action === 'replace' || action === 'create') && !isGitInternal(path))

/** It is taken back all the same: the run changed it. */
function mixedLines({ mixed, changes, safety }: RestoreResult, style: Style): string[] {
  const created = new Set(changes.flatMap(({ action, path }) => (action === 'create' ? [path] : [])))
  const isCreated = (path: Raw): boolean => created.has(path) || (path !== '' && isCreated(parentOf(path)))
  const isConcerned = nearAny(changes.flatMap(({ path }) => (path === '' ? [] : [path])))
  const isMissing = (path: Raw): boolean => isCreated(path) || !isConcerned(path)
  const present = mixed.filter(path => !isMissing(path))
  const missing = mixed.filter(isMissing)
  const lines: string[] = []
  if (present.length > 0) {
    lines.push(`May also hold somebody else's edit, made while the run went on: ${pathList(present, style)}`)
    const words = fitting(
      present.map(path => wordOf(path, style)),
      word => word,
    )
    if (safety)
      lines.push(`To have that back: ${style.bold(style.command(`revert ${words.join(' ')} --from ${safety.id}`))}`)
  }
  if (missing.length > 0)
    lines.push(
      `May have been edited by somebody else before it was removed, or removed by them: ${pathList(missing, style)}`,
    )
  // A repository is one thing, and has no versions of its own. What is gone has no other way back.
  const files = [...missing, ...present].filter(path => !isGitInternal(`${path}/`))
  const commands = files
    .slice(0, Math.min(Math.max(missing.length, 1), listedCommands))
    .map(path => style.bold(style.command(`history ${wordOf(path, style)}`)))
  if (commands.length > 0) lines.push(`Versions that the run replaced or removed: ${commands.join('; ')}`)
  return lines
}

/** Nothing is lost yet: what they write from here on is. */
function stillOpenLines({ stillOpen }: RestoreResult, style: Style): string[] {
  const lines = stillOpen
    .slice(0, listedPaths)
    .map(({ path, processes }) => writesToOldFile(shown(path, style), processes))
  const more = stillOpen.length - lines.length
  return more > 0 ? [...lines, `and ${formatCount(more)} more (--json lists all)`] : lines
}

function noRoomLines({ leftAlone, snapshot }: RestoreResult, style: Style): string[] {
  if (!leftAlone.some(({ why }) => why === 'no-room')) return []
  const mend = "Free some space on the store's disk and say it again"
  if (!snapshot) return [mend]
  return [
    `${mend}; or, if their present content may be lost: ${style.bold(style.command(`rollback ${snapshot.id} --no-safety`))}`,
  ]
}

function uncapturedText({ uncaptured, to }: RestoreResult, style: Style): string {
  if (to !== undefined) return missingText(uncaptured, style).trimEnd()
  const listed = fitting(
    uncaptured.map(({ path, reason }) => `${shown(path, style)} (${reasonWords(reason)})`),
    name => name,
  )
  const more = uncaptured.length > listed.length ? ` and ${formatCount(uncaptured.length - listed.length)} more` : ''
  const copies = uncaptured.flatMap(({ path, kept }) => (kept ? [keptCopyText(path, kept, false, style)] : []))
  return [`Stay, because they were not captured: ${listed.join(', ')}${more}`, ...copies.slice(0, listedPaths)].join(
    '\n',
  )
}

function pathList(paths: readonly Raw[], style: Style, count = paths.length): string {
  const listed = fitting(paths, path => shown(path, style))
  const names = listed.map(path => shown(path, style)).join(', ')
  return count > listed.length ? `${names} and ${formatCount(count - listed.length)} more` : names
}

const shown = (path: Raw, style: Style): string => shortenPath(style.path(path))

/** 3 when something was left as it is, or is missing where it was written. */
export const restoreExitCode = (result: RestoreResult | undefined): number =>
  result && (result.leftAlone.length > 0 || (result.to !== undefined && result.uncaptured.some(isPartial))) ? 3 : 0
