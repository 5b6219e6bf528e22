import { expect, it } from 'vitest'
import type { RestoreResult } from '../../index.ts'
import { makeRestore } from '../fixture-result.ts'
import { createStyle } from '../style.ts'
import { fitting } from './fitting.ts'
import { notDoneText, restoreText } from './restore.ts'

const plain = createStyle(false)
const long = (i: number) => `${'d/'.repeat(100)}${i}`
const paths = Array.from({ length: 18 }, (_, i) => long(i))
const LINE_CHARS = 2000
const lengths = (text: string) => text.split('\n').map(line => line.length)

it('a list is cut after twenty, or where a line has no more room, and never to none', () => {
  const listed = (all: string[]) => fitting(all, each => each).length
  expect([0, 20, 21].map(count => listed(Array(count).fill('a')))).toEqual([0, 20, 20])
  expect([listed(paths), listed(['x'.repeat(5000), 'y']), listed(['y', 'x'.repeat(5000)])]).toEqual([7, 1, 1])
})

it('what was left alone: a command with many long paths is cut, or has none of them', () => {
  const leftAlone: RestoreResult['leftAlone'] = paths.map(path => ({ path, why: 'edited' }))
  const moved = { reason: 'excluded', count: 0, kept: undefined } as const
  const unprotected = { count: 18, paths: paths.map(path => ({ ...moved, path, to: `e/${path}` })) }
  const text = notDoneText(makeRestore({ leftAlone, unprotected } as Partial<RestoreResult>), plain)
  expect(Math.max(...lengths(text))).toBeLessThan(LINE_CHARS)
  expect(text).toMatch(/^To take back their changes, too: savepoint rollback snap_\w+$/m)
  expect(text).toMatch(/^To put them back: mv -n .* … and 15 more \(see --json\)$/m)
})

it('what stays is named as far as there is room', () => {
  const words = { done: 'Rolled back to', would: '', undo: '' }
  const text = restoreText(makeRestore({ keptDirs: paths }), words, plain)
  expect(text).toMatch(/^Kept, because something else lives in them: .* and 11 more$/m)
})
