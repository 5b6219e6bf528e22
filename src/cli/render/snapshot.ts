/** Snapshots as people see them: in tables, in the tree, and one by one. */

import type { LogNode } from '../../index.ts'
import type { ChangeCounts } from '../../model/entry.ts'
import { formatAge, formatBytes, formatCount, formatDelta, plural } from '../../model/format.ts'
import { type Skipped, type Snapshot, UNREAD_ROOT } from '../../model/snapshot.ts'
import { drawTree } from '../log-tree.ts'
import type { Style } from '../style.ts'
import { renderTable } from '../table.ts'
import { shorten, showText } from '../text.ts'
import { reasonWords } from './reason-words.ts'

const listedSkipped = 10
const titleChars = 60

/** The label, and the command that caused it. */
export function titleOf(snapshot: Snapshot, style: Style): string {
  const isOurs = ['build', 'test', 'guard'].includes(snapshot.type)
  if (snapshot.label !== undefined && isOurs && snapshot.command !== undefined)
    return `${showText(snapshot.label)} ${style.dim(`$ ${shorten(showText(snapshot.command), titleChars)}`)}`
  if (snapshot.label !== undefined) return showText(snapshot.label)
  if (snapshot.command === undefined) return ''
  // A safety snapshot is the state before an operation; others are the doing of a command line.
  const mark = snapshot.type === 'safety' ? 'before:' : '$'
  return style.dim(`${mark} ${shorten(showText(snapshot.command), titleChars)}`)
}

/** "snap_abcd1234 (label)", for sentences. */
export const nameOf = (snapshot: Snapshot): string =>
  snapshot.label === undefined ? snapshot.id : `${snapshot.id} (${showText(snapshot.label)})`

/** "(HEAD, tag: good)", or ''. */
export function marksOf({ tags, isHead }: { tags: string[]; isHead: boolean }, style: Style): string {
  const marks = [...(isHead ? [style.cyan('HEAD')] : []), ...tags.map(tag => style.yellow(`tag: ${showText(tag)}`))]
  return marks.length > 0 ? `(${marks.join(', ')})` : ''
}

/** What a reader must know about its quality. */
function warningsOf(snapshot: Snapshot, style: Style): string {
  const words = []
  if (snapshot.root === UNREAD_ROOT) words.push(style.yellow('not read yet'))
  if (snapshot.skippedCount > 0) words.push(style.red('PARTIAL'))
  if (snapshot.damage !== undefined) words.push(style.red('ARCHIVE DAMAGED'))
  if (snapshot.unsettled) words.push(style.yellow('unsettled'))
  if (snapshot.deletedAt !== undefined) words.push(style.dim('deleted'))
  return words.join(' ')
}

/** "3 added, 1 modified, 2 deleted", without what is zero; "no changes". */
export function countsText({ added, modified, deleted }: ChangeCounts): string {
  const parts = [
    [added, 'added'],
    [modified, 'modified'],
    [deleted, 'deleted'],
  ] as const
  const texts = parts.filter(([count]) => count > 0).map(([count, word]) => `${formatCount(count)} ${word}`)
  return texts.length > 0 ? texts.join(', ') : 'no changes'
}

/** Against its parent, as far as that is known. */
export const deltaText = (snapshot: Snapshot): string =>
  snapshot.root === UNREAD_ROOT ? 'not read yet' : countsText(snapshot.counts)

/** "+3 ~1 -2", without what is zero; "=" for no change. */
function countsMarks({ added, modified, deleted }: ChangeCounts, style: Style): string {
  const marks = []
  if (added > 0) marks.push(style.green(`+${formatCount(added)}`))
  if (modified > 0) marks.push(style.yellow(`~${formatCount(modified)}`))
  if (deleted > 0) marks.push(style.red(`-${formatCount(deleted)}`))
  return marks.length > 0 ? marks.join(' ') : style.dim('=')
}

const join = (...parts: string[]) => parts.filter(part => part !== '').join(' ')

/** The table of `snapshots`, newest first, with its footer. */
export function snapshotTable(nodes: LogNode[], now: number, style: Style): string {
  const rows = nodes.map(node => {
    const { snapshot } = node
    return [
      snapshot.id,
      snapshot.type,
      formatDelta(snapshot.sizeDelta),
      formatAge(now - snapshot.createdAt),
      join(titleOf(snapshot, style), marksOf(node, style), warningsOf(snapshot, style)),
    ]
  })
  const columns = [
    { title: 'ID' },
    { title: 'TYPE' },
    { title: 'SIZE', align: 'right' as const },
    { title: 'CREATED' },
    { title: 'LABEL' },
  ]
  return renderTable(columns, rows, style) + snapshotFooter(nodes)
}

/** "5 snapshots (backend: cas)". */
function snapshotFooter(nodes: LogNode[]): string {
  const backends = [...new Set(nodes.map(({ snapshot }) => snapshot.backend))]
  const backend = backends.length > 0 ? ` (backend: ${backends.join(', ')})` : ''
  return `${plural('snapshot', nodes.length)}${backend}\n`
}

/** The drawing of `log`; `limit` keeps the newest lines. */
export function logText(nodes: LogNode[], now: number, style: Style, limit = Number.POSITIVE_INFINITY): string {
  let text = ''
  let left = limit
  for (const { graph, node } of drawTree(nodes)) {
    if (left <= 0) break
    if (node) left--
    text += `${style.dim(graph)}${node ? logLine(node, now, style) : ''}\n`
  }
  return text
}

function logLine(node: LogNode, now: number, style: Style): string {
  const { snapshot } = node
  return join(
    node.isHead ? style.bold(snapshot.id) : snapshot.id,
    marksOf(node, style),
    style.blue(snapshot.type),
    style.dim(formatAge(now - snapshot.createdAt)),
    // What changed is not known then.
    snapshot.root === UNREAD_ROOT ? '' : countsMarks(snapshot.counts, style),
    titleOf(snapshot, style),
    warningsOf(snapshot, style),
  )
}

/** "snap_abcd1234  +12 KB  3 added, 1 modified". */
export function snapshotLine(snapshot: Snapshot, style: Style): string {
  const parts = [style.bold(nameOf(snapshot)), formatDelta(snapshot.sizeDelta)]
  if (snapshot.root === UNREAD_ROOT) return `${style.bold(nameOf(snapshot))}  kept by ${snapshot.backend}`
  const isFirst = snapshot.parent === undefined
  parts.push(
    isFirst ? `${plural('file', snapshot.files)}, ${formatBytes(snapshot.bytes)}` : countsText(snapshot.counts),
  )
  return join(parts.join('  '), ' ', warningsOf(snapshot, style)).trimEnd()
}

/** What a snapshot left out, with the reason of each; '' when nothing. */
export function skippedText(skipped: Skipped[], total: number, style: Style): string {
  if (total === 0) return ''
  const lines = [`${style.red('PARTIAL')}: ${plural('path', total)} not captured`]
  for (const { path, reason } of skipped.slice(0, listedSkipped))
    lines.push(`  ${style.path(path)} (${reasonWords(reason)})`)
  if (total > listedSkipped) lines.push(`  … and ${formatCount(total - Math.min(listedSkipped, skipped.length))} more`)
  return `${lines.join('\n')}\n`
}

/** Of what is written elsewhere: what makes it incomplete, and what never belongs to a snapshot of the directory. */
export function missingText(missing: Skipped[], style: Style): string {
  const partial = missing.filter(isPartial)
  const mounts = missing.filter(each => !isPartial(each)).map(({ path }) => style.path(path))
  const more = mounts.length > listedSkipped ? ` and ${formatCount(mounts.length - listedSkipped)} more` : ''
  const others =
    mounts.length > 0
      ? `Not in it (${reasonWords('mount')}): ${mounts.slice(0, listedSkipped).join(', ')}${more}\n`
      : ''
  return skippedText(partial, partial.length, style) + others
}

export const isPartial = ({ reason }: Skipped): boolean => reason !== 'mount'

/** "2026-01-31 14:05:09 +01:00": local time that can be read and sorted. */
export function localTime(ms: number): string {
  const two = (value: number) => String(value).padStart(2, '0')
  const date = new Date(ms)
  const offset = -date.getTimezoneOffset()
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  const zone = `${offset < 0 ? '-' : '+'}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`
  return `${day} ${clock} ${zone}`
}
