import { changeLetters } from '../../model/change-letters.ts'
import type { Change, ChangeCounts, ChangeKind, Entry } from '../../model/entry.ts'
import { formatBytes, formatCount, plural } from '../../model/format.ts'
import { isGitInternal, type Raw } from '../../model/raw-path.ts'
import type { Style } from '../style.ts'
import { countsText } from './snapshot.ts'

/** "M src/a.ts", "R old -> new"; with what is to be said of it, or also with sizes, in brackets. */
export function changeLine(change: Change, style: Style, remarks: 'none' | 'some' | 'sizes' = 'none'): string {
  const letter = changeLetters[change.kind]
  const paint = change.kind === 'added' ? style.green : change.kind === 'deleted' ? style.red : style.yellow
  const isDir = (change.after ?? change.before)?.kind === 'dir'
  const name = `${change.from === undefined ? '' : `${style.path(change.from)} -> `}${style.path(change.path)}${isDir ? '/' : ''}`
  const remark = remarks === 'none' ? '' : mountText(change) || (remarks === 'sizes' ? sizeText(change) : '')
  return `${paint(letter)} ${name}${remark === '' ? '' : style.dim(` (${remark})`)}`
}

function mountText({ before, after }: Change): string {
  if (after?.reason === 'mount') return 'now a mount or nested subvolume, not captured any more'
  return before?.reason === 'mount' ? 'was a mount or nested subvolume, not captured' : ''
}

function sizeText({ before, after }: Change): string {
  const old = before?.kind === 'file' ? before.size : undefined
  const size = after?.kind === 'file' ? after.size : undefined
  // What is too large is only known to be so.
  const bytesOf = (entry: Entry) => `${entry.reason === undefined ? '' : 'more than '}${formatBytes(entry.size)}`
  if (old !== undefined && size !== undefined && old !== size) return `${bytesOf(before!)} -> ${bytesOf(after!)}`
  const only = size ?? old
  return only === undefined ? '' : formatBytes(only)
}

/** Which repositories' own directories they lie in. */
export const gitDirsOf = (changes: readonly Change[]): Raw[] => [
  ...new Set(changes.filter(({ path }) => isGitInternal(path)).map(({ path }) => gitDirOf(path))),
]

const gitDirOf = (path: Raw): Raw => path.slice(0, `/${path}/`.indexOf('/.git/') + '.git'.length)

/**
 * Up to `limit` lines, each indented and ending in a line feed; what is inside .git is one line for each repository, and so is a directory that
 * came or went as a whole when there are more changes than lines; `more` shows all.
 */
export function changeList(changes: Change[], style: Style, limit: number, more: string): string {
  const inGit = changes.filter(({ path }) => isGitInternal(path))
  const others = inGit.length > 1 ? changes.filter(({ path }) => !isGitInternal(path)) : changes
  const groups = others.length > limit ? joinWholeDirs(others) : others.map(change => [change])
  const lines = groups.slice(0, limit).map(group => `  ${groupLine(group, style)}\n`)
  if (inGit.length > 1) lines.push(...gitLines(inGit, style))
  const rest = groups.slice(limit).reduce((sum, { length }) => sum + length, 0)
  if (rest > 0) lines.push(`  … and ${formatCount(rest)} more: ${more}\n`)
  return lines.join('')
}

/** Those of one whole directory together, in the order of their first ones. */
const joinWholeDirs = (changes: Change[]): Change[][] => [
  ...Map.groupBy(changes, change => change.within ?? change).values(),
]

/** "D dir/ (10,000 files)", or the one change. */
function groupLine(group: Change[], style: Style): string {
  const [first] = group
  if (group.length === 1 || first?.within === undefined) return changeLine(first!, style, 'some')
  const paint = first.kind === 'added' ? style.green : style.red
  const emptyDirs = emptyDirsIn(group)
  const counts = [
    ...(group.length > emptyDirs ? [plural('file', group.length - emptyDirs)] : []),
    ...(emptyDirs > 0 ? [plural('empty directory', emptyDirs)] : []),
  ]
  return `${paint(changeLetters[first.kind])} ${style.path(first.within)}/ (${counts.join(', ')})`
}

/** Directories come and go as changes only when there is nothing in them. */
const emptyDirsIn = (changes: readonly Change[]): number =>
  changes.filter(({ kind, before, after }) => isComingOrGoing.has(kind) && (after ?? before)?.kind === 'dir').length

const isComingOrGoing: ReadonlySet<ChangeKind> = new Set(['added', 'deleted'])

/** What a count of files and empty directories has of the latter: " (5 empty directories included)", or ''. */
export const includedText = (emptyDirs: number): string =>
  emptyDirs > 0 ? ` (${plural('empty directory', emptyDirs)} included)` : ''

/** "3 added, 1 modified (1 empty directory included)". Attributes alone are changes too, but no count of files has them. */
export function changesText(counts: ChangeCounts, changes: readonly Change[]): string {
  const text = countsText(counts)
  return text === 'no changes' ? plural('change', changes.length) : `${text}${includedText(emptyDirsIn(changes))}`
}

/** Where there are many, as with submodules, all of them are one line. */
const MAX_REPOSITORIES = 3

function gitLines(changes: Change[], style: Style): string[] {
  const repositories = Map.groupBy(changes, ({ path }) => gitDirOf(path))
  if (repositories.size > MAX_REPOSITORIES)
    return [gitLine(`.git/ of ${plural('repository', repositories.size)}`, changes, style)]
  return [...repositories].map(([directory, own]) => gitLine(`${style.path(directory)}/`, own, style))
}

function gitLine(where: string, changes: Change[], style: Style): string {
  const kinds = new Set(changes.map(({ kind }) => kind))
  const word = kinds.size > 1 ? 'changes' : kinds.has('added') ? 'added' : kinds.has('deleted') ? 'deleted' : 'changes'
  const paint = word === 'added' ? style.green : word === 'deleted' ? style.red : style.yellow
  const letter = kinds.size === 1 ? changeLetters[changes[0]!.kind] : 'M'
  return `  ${paint(letter)} ${where} (${formatCount(changes.length)} ${word})\n`
}
