import type { Raw } from '../model/raw-path.ts'
import { type ContentChange, isBinary, type Side, sameContent, sideOf } from './content-change.ts'
import { diffLines } from './line-diff.ts'
import { quoteName } from './quote.ts'

/** What one change adds and removes. */
export interface FileStat {
  path: Raw
  from?: Raw
  insertions: number
  deletions: number
  /** Set when lines were not counted: the content is binary, or was not available. */
  uncounted?: { why: 'binary' | 'unavailable'; beforeBytes: number; afterBytes: number }
}

export interface StatOptions {
  /** Columns; git's 80 when it does not know the terminal. */
  width?: number
  colour?: boolean
}

/** Counts one change; undefined when neither side is a file or a link. */
export function statOf(change: ContentChange): FileStat | undefined {
  const before = sideOf(change.before, change.beforeContent)
  const after = sideOf(change.after, change.afterContent)
  if (!before && !after) return undefined
  const named = change.from === undefined ? { path: change.path } : { path: change.path, from: change.from }
  if (sameContent(change)) return { ...named, insertions: 0, deletions: 0 }
  const oldContent = contentOf(before)
  const newContent = contentOf(after)
  const why = !oldContent || !newContent ? 'unavailable' : isBinary(oldContent) || isBinary(newContent) ? 'binary' : ''
  if (why !== '') {
    const sizes = { beforeBytes: before?.sizeBytes ?? 0, afterBytes: after?.sizeBytes ?? 0 }
    return { ...named, insertions: 0, deletions: 0, uncounted: { why, ...sizes } }
  }
  const stat: FileStat = { ...named, insertions: 0, deletions: 0 }
  for (const hunk of diffLines(oldContent!, newContent!).hunks) {
    stat.deletions += hunk.beforeEnd - hunk.beforeStart
    stat.insertions += hunk.afterEnd - hunk.afterStart
  }
  return stat
}

const contentOf = (side: Side | undefined) => (side ? side.content : Buffer.alloc(0))

/** The lines of `--stat` with the summary as the last one, each ending in a line feed; ASCII. '' for no changes. */
export function formatStat(stats: FileStat[], options: StatOptions = {}): string {
  if (stats.length === 0) return ''
  const names = stats.map(nameText)
  const layout = layOut(stats, names, options.width ?? defaultWidth)
  const paint = options.colour
    ? { plus: (text: string) => `\x1b[32m${text}\x1b[m`, minus: (text: string) => `\x1b[31m${text}\x1b[m` }
    : { plus: (text: string) => text, minus: (text: string) => text }
  const lines = stats.map((stat, i) => {
    const name = shorten(names[i]!, layout.nameWidth).padEnd(layout.nameWidth)
    return ` ${name} | ${amountText(stat, layout, paint)}\n`
  })
  return `${lines.join('')} ${formatStatSummary(stats)}\n`
}

/** "3 files changed, 10 insertions(+), 2 deletions(-)" */
export function formatStatSummary(stats: FileStat[]): string {
  const insertions = stats.reduce((sum, stat) => sum + stat.insertions, 0)
  const deletions = stats.reduce((sum, stat) => sum + stat.deletions, 0)
  const parts = [`${stats.length} file${stats.length === 1 ? '' : 's'} changed`]
  if (stats.length === 0) return parts[0]!
  if (insertions > 0 || deletions === 0) parts.push(`${insertions} insertion${insertions === 1 ? '' : 's'}(+)`)
  if (deletions > 0 || insertions === 0) parts.push(`${deletions} deletion${deletions === 1 ? '' : 's'}(-)`)
  return parts.join(', ')
}

const defaultWidth = 80
const minNameWidth = 16
const minGraphWidth = 6
/** The space before a name, " | " and the spaces around the count. */
const fixedWidth = 6

interface Layout {
  nameWidth: number
  numberWidth: number
  graphWidth: number
  maxChange: number
}

/** Shares the width as git does: the graph gets at most 3/8 of it while the names need the rest. */
function layOut(stats: FileStat[], names: string[], wanted: number): Layout {
  const uncounted = stats.filter(stat => stat.uncounted)
  const maxChange = stats.reduce((most, stat) => Math.max(most, stat.insertions + stat.deletions), 0)
  const numberWidth = Math.max(String(maxChange).length, uncounted.length > 0 ? 'Bin'.length : 0)
  const width = Math.max(wanted, minNameWidth + minGraphWidth + numberWidth)
  // "Bin 10 -> 20 bytes" spans count and graph.
  const sizesWidth = uncounted.reduce((most, stat) => Math.max(most, `Bin ${sizesText(stat)}`.length), 0)
  let nameWidth = names.reduce((most, name) => Math.max(most, name.length), 0)
  let graphWidth = maxChange + 4 > sizesWidth ? maxChange : sizesWidth - 4
  if (nameWidth + numberWidth + fixedWidth + graphWidth > width) {
    const share = Math.floor((width * 3) / 8) - numberWidth - fixedWidth
    if (graphWidth > share) graphWidth = Math.max(share, minGraphWidth)
    const left = width - numberWidth - fixedWidth
    if (nameWidth > left - graphWidth) nameWidth = left - graphWidth
    else graphWidth = left - nameWidth
  }
  return { nameWidth, numberWidth, graphWidth, maxChange }
}

/** Keeps the end of the name, from a slash on if there is one. */
function shorten(name: string, width: number): string {
  if (name.length <= width) return name
  const tail = name.slice(name.length - Math.max(width - 3, 0))
  const slash = tail.indexOf('/')
  return `...${slash < 0 ? tail : tail.slice(slash)}`
}

function amountText(
  stat: FileStat,
  layout: Layout,
  paint: { plus(text: string): string; minus(text: string): string },
): string {
  if (stat.uncounted) {
    const word = stat.uncounted.why === 'binary' ? 'Bin' : 'n/a'
    const sizes = sizesText(stat)
    return `${word.padStart(layout.numberWidth)}${sizes === '' ? '' : ` ${sizes}`}`
  }
  const total = stat.insertions + stat.deletions
  const { plus, minus } = scale(stat, layout)
  const graph = (plus > 0 ? paint.plus('+'.repeat(plus)) : '') + (minus > 0 ? paint.minus('-'.repeat(minus)) : '')
  return `${String(total).padStart(layout.numberWidth)}${total > 0 ? ' ' : ''}${graph}`
}

function sizesText(stat: FileStat): string {
  const { beforeBytes = 0, afterBytes = 0 } = stat.uncounted ?? {}
  return beforeBytes === 0 && afterBytes === 0 ? '' : `${beforeBytes} -> ${afterBytes} bytes`
}

function scale(stat: FileStat, { graphWidth, maxChange }: Layout): { plus: number; minus: number } {
  const { insertions, deletions } = stat
  if (graphWidth > maxChange) return { plus: insertions, minus: deletions }
  const scaled = (count: number) => (count === 0 ? 0 : 1 + Math.floor((count * (graphWidth - 1)) / maxChange))
  let total = scaled(insertions + deletions)
  if (total < 2 && insertions > 0 && deletions > 0) total = 2
  if (insertions < deletions) return { plus: scaled(insertions), minus: total - scaled(insertions) }
  return { plus: total - scaled(deletions), minus: scaled(deletions) }
}

/** The quoted name; of a rename "dir/{old => new}/name". */
function nameText(stat: FileStat): string {
  const to = stat.path
  if (stat.from === undefined || stat.from === to) return quoteName(to)
  const from = stat.from
  if (quoteName(from) !== from || quoteName(to) !== to) return `${quoteName(from)} => ${quoteName(to)}`
  let prefix = 0
  for (let i = 0; i < from.length && i < to.length && from[i] === to[i]; i++) if (from[i] === '/') prefix = i + 1
  // The slash that ends the prefix may begin the suffix as well: "a/{ => b}/c".
  const floor = prefix > 0 ? prefix - 1 : 0
  let suffix = 0
  for (let i = 1; from.length - i >= floor && to.length - i >= floor && from.at(-i) === to.at(-i); i++) {
    if (from.at(-i) === '/') suffix = i
  }
  if (prefix + suffix === 0) return `${from} => ${to}`
  const oldMiddle = from.slice(prefix, Math.max(prefix, from.length - suffix))
  const newMiddle = to.slice(prefix, Math.max(prefix, to.length - suffix))
  return `${to.slice(0, prefix)}{${oldMiddle} => ${newMiddle}}${to.slice(to.length - suffix)}`
}
