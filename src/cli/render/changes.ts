import type { Change, ChangeKind } from '../../model/entry.ts'
import { formatBytes, formatCount } from '../../model/format.ts'
import { showPath } from '../../model/raw-path.ts'
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
  const name = `${change.from === undefined ? '' : `${showPath(change.from)} -> `}${showPath(change.path)}${isDir ? '/' : ''}`
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

/** Up to `limit` lines, each indented and ending in a line feed; the last one says how many more there are. */
export function changeList(changes: Change[], style: Style, limit: number, more: string): string {
  const lines = changes.slice(0, limit).map(change => `  ${changeLine(change, style)}\n`)
  if (changes.length > limit) lines.push(`  … and ${formatCount(changes.length - limit)} more: ${more}\n`)
  return lines.join('')
}
