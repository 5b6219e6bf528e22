import { expect, test } from 'vitest'
import { leftOutText, lostText } from './only-there.ts'

const paths = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ path: `p${i}`, reason: 'too-large' as const }))

test('names the first of many', () => {
  expect(leftOutText(paths(2), 2)).toBe('p0 (too-large), p1 (too-large)')
  expect(leftOutText(paths(7), 1200)).toMatch(/^p0 .*, p4 \(too-large\) and 1195 more$/)
})

test('the same of several snapshots is said once, and nothing of those that lose nothing', () => {
  const losing = (snapshot: string, count: number) => ({ snapshot, lost: paths(count), lostCount: count })
  expect(lostText([losing('a', 0)])).toBe('')
  expect(lostText([losing('a', 1), losing('b', 2), losing('c', 1), losing('d', 0)])).toBe(
    'p0 (too-large) of a, c; p0 (too-large), p1 (too-large) of b',
  )
  expect(lostText(['a', 'b', 'c', 'd', 'e'].map(each => losing(each, 1)))).toBe('p0 (too-large) of a, b, c and 2 more')
  const each = Array.from({ length: 7 }, (_, i) => ({
    snapshot: `s${i}`,
    lost: paths(9).slice(i, i + 1),
    lostCount: 1,
  }))
  expect(lostText(each)).toMatch(/; p4 \(too-large\) of s4; more of 2 snapshots$/)
})
