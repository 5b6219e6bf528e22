import type { Style } from './style.ts'
import { displayWidth, padTo } from './text.ts'

export interface Column {
  title: string
  /** The side that cells are flush with. */
  align?: 'left' | 'right'
}

const gap = '  '

/** Lines with a heading, each ending in a line feed; the last column is not padded. Cells may carry colours. */
export function renderTable(columns: Column[], rows: string[][], style: Style): string {
  const widths = columns.map(({ title }, i) =>
    rows.reduce((most, row) => Math.max(most, displayWidth(row[i] ?? '')), title.length),
  )
  const lay = (cells: string[]) =>
    columns
      .map(({ align }, i) => {
        const cell = cells[i] ?? ''
        if (align === 'right') return padTo(cell, widths[i]!, 'right')
        return i === columns.length - 1 ? cell : padTo(cell, widths[i]!)
      })
      .join(gap)
      .trimEnd()
  const heading = style.bold(lay(columns.map(({ title }) => title)))
  return `${[heading, ...rows.map(lay)].join('\n')}\n`
}
