import { expect, test } from 'vitest'
import { isTime, keptTime, timeFromText, timeText } from './time-text.ts'

// The first of this file: nothing is remembered yet.
test('the last second before 1970 is a time like any other, also the first that is told', () => {
  expect(timeText(-1n)).toBe('1969-12-31T23:59:59.999999999Z')
})

test('what cannot be kept becomes the nearest time', () => {
  for (const ns of [2n ** 63n - 1n, -(2n ** 63n), 0n, -1n, 9_223_372_036n * 10n ** 9n])
    expect([timeFromText(timeText(ns)), isTime(timeText(ns))]).toEqual([ns, true])
  expect(keptTime(2n ** 64n)).toBe(2n ** 63n - 1n)
  expect(keptTime(-(2n ** 64n))).toBe(-(2n ** 63n))
})

test('what has another form is no time', () => {
  for (const text of ['', 'Z', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00.\ufffd88509079Z'])
    expect(isTime(text)).toBe(false)
})
