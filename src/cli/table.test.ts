import { expect, it } from 'vitest'
import { createStyle } from './style.ts'
import { renderTable } from './table.ts'

const plain = createStyle(false)

it('pads by what a terminal shows and leaves no spaces at the end', () => {
  const rows = [
    ['日本', '5 B', 'x'],
    ['e\u0301', '12 KB', ''],
  ]
  expect(renderTable([{ title: 'ID' }, { title: 'SIZE', align: 'right' }, { title: 'LABEL' }], rows, plain)).toBe(
    ['ID     SIZE  LABEL', '日本    5 B  x', 'e\u0301     12 KB', ''].join('\n'),
  )
})

it('does not count colours', () => {
  const style = createStyle(true)
  const text = renderTable(
    [{ title: 'A' }, { title: 'B' }],
    [
      [style.red('xx'), 'y'],
      ['x', 'y'],
    ],
    plain,
  )
  expect(text).toBe('A   B\n\x1b[31mxx\x1b[m  y\nx   y\n')
})

it('is a heading alone without rows', () => expect(renderTable([{ title: 'A' }], [], plain)).toBe('A\n'))
