import type { Change, ChangeKind } from '../../model/entry.ts'
import { formatBytes, formatCount } from '../../model/format.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { Style } from '../style.ts'

const letters: Record<ChangeKind, string> = {
  added: 'A',
  modified: 'M',
  deleted: 'D',
  renamed: 'R',
  metadata: 'm',
  'type-changed': 'T',
}

export const changesLegend = 'A added, M modified, D deleted, R renamed, T type changed, m permissions or times'

/** "M src/a.ts", "R old -> new". */
export function changeLine(change: Change, style: Style, withSize = false): string {
  const letter = letters[change.kind]
  const paint = change.kind === 'added' ? style.green : change.kind === 'deleted' ? style.red : style.yellow
  const isDir = (change.after ?? change.before)?.kind === 'dir'
  const name = `${change.from === undefined ? '' : `${style.path(change.from)} -> `}${style.path(change.path)}${isDir ? '/' : ''}`
  const size = withSize ? sizeText(change) : ''
  return `${paint(letter)} ${name}${size === '' ? '' : style.dim(` (${size})`)}`
}

function sizeText({ before, after }: Change): string {
  const old = before?.kind === 'file' ? before.size : undefined
  const size = after?.kind === 'file' ? after.size : undefined
  if (old !== undefined && size !== undefined && old !== size) return `${formatBytes(old)} -> ${formatBytes(size)}`
  const only = size ?? old
  return only === undefined ? '' : formatBytes(only)
}

/** Whether a path lies in a git repository's own directory: its objects are noise to people. */
export const isGitInternal = (path: Raw): boolean =>
  path.startsWith('.git/') || path.includes('/.git/') || path === '.git'

/** Up to `limit` lines, each indented and ending in a line feed; what is inside .git is one line; `more` shows all. */
export function changeList(changes: Change[], style: Style, limit: number, more: string): string {
  const inGit = changes.filter(({ path }) => isGitInternal(path))
  const others = inGit.length > 1 ? changes.filter(({ path }) => !isGitInternal(path)) : changes
  const lines = others.slice(0, limit).map(change => `  ${changeLine(change, style)}\n`)
  if (inGit.length > 1) lines.push(`  ${gitLine(inGit, style)}\n`)
  if (others.length > limit) lines.push(`  … and ${formatCount(others.length - limit)} more: ${more}\n`)
  return lines.join('')
}

function gitLine(changes: Change[], style: Style): string {
  const kinds = new Set(changes.map(({ kind }) => kind))
  const word = kinds.size > 1 ? 'changes' : kinds.has('added') ? 'added' : kinds.has('deleted') ? 'deleted' : 'changes'
  return `${style.yellow(kinds.size === 1 ? letters[changes[0]!.kind] : 'M')} .git/ (${formatCount(changes.length)} ${word})`
}
