import { describe, expect, it, test } from 'vitest'
import {
  formatAge,
  formatBytes,
  formatCount,
  formatDelta,
  formatDuration,
  formatLimit,
  formatRate,
  parseBytes,
  plural,
} from './format.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

test.each([
  [0, '0 B'],
  [812, '812 B'],
  [999, '999 B'],
  [1000, '1 KB'],
  [1400, '1.4 KB'],
  [9_960, '10 KB'],
  [12_345, '12 KB'],
  [999_499, '999 KB'],
  [999_600, '1 MB'],
  [1_400_000, '1.4 MB'],
  [633_000_000, '633 MB'],
  [2_100_000_000, '2.1 GB'],
  [5 * 1024 ** 3, '5.4 GB'],
  [Number.MAX_SAFE_INTEGER, '9 PB'],
  [Number.POSITIVE_INFINITY, 'unlimited'],
  [-3_000, '-3 KB'],
])('formatBytes(%d) is %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text))

test.each([
  '1 GiB',
  '5 GiB',
  '1.5 GiB',
  '1280 GiB',
  '4000000 GiB',
  '512 KiB',
  '1 KB',
  '512 B',
  '0 B',
  '200 GB',
  '1.5 MB',
  '1048 KB',
  'unlimited',
])('formatLimit shows %s as it was written', text => expect(formatLimit(parseBytes(text))).toBe(text))

it('formatLimit rounds what nobody would have written so', () => {
  expect(formatLimit(parseBytes('0.3 GiB'))).toBe('322 MB')
  expect(formatLimit(1_073_741_825)).toBe('1.1 GB')
})

test.each([
  [12_000, '+12 KB'],
  [-3_000, '-3 KB'],
  [0, '0 B'],
  [-0, '0 B'],
])('formatDelta(%d) is %s', (bytes, text) => expect(formatDelta(bytes)).toBe(text))

test.each([
  [0, 0],
  [1_048_576, 1_048_576],
  [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ['0', 0],
  ['123', 123],
  ['1_000', 1000],
  ['812 B', 812],
  ['512k', 512_000],
  ['512K', 512_000],
  ['1gb', 1e9],
  [' 1.5 MB ', 1_500_000],
  ['.5 KiB', 512],
  ['5 GiB', 5 * 1024 ** 3],
  ['5Gi', 5 * 1024 ** 3],
  ['2 TiB', 2 * 1024 ** 4],
  ['unlimited', Number.POSITIVE_INFINITY],
  ['Unlimited', Number.POSITIVE_INFINITY],
])('parseBytes(%j) is %d', (input, bytes) => expect(parseBytes(input)).toBe(bytes))

test.each([
  ['', /must be a size/],
  ['lots', /must be a size/],
  ['5 GGB', /must be a size/],
  ['1,5 GB', /must be a size/],
  ['5 constructor', /must be a size/],
  ['1 GB 2', /must be a size/],
  ['infinity', /must be a size/],
  [Number.NaN, /must be a size/],
  ['-1 GB', /negative/],
  [-1, /negative/],
  [Number.NEGATIVE_INFINITY, /negative/],
  [1.5, /whole number/],
  ['99999 PB', /larger than any disk/],
  [`${'9'.repeat(400)} PB`, /larger than any disk/],
])('parseBytes(%j) is refused', (input, message) => expect(() => parseBytes(input)).toThrow(message))

test.each([
  [0, 'just now'],
  [1_999, 'just now'],
  [-1_999, 'just now'],
  [2_000, '2 seconds ago'],
  [12_900, '12 seconds ago'],
  [60 * second, '1 minute ago'],
  [2 * hour + 59 * minute, '2 hours ago'],
  [3 * day, '3 days ago'],
  [29 * day, '29 days ago'],
  [31 * day, '1 month ago'],
  [364 * day, '12 months ago'],
  [800 * day, '2 years ago'],
  [-3 * minute, 'in 3 minutes'],
])('formatAge(%d) is %s', (ms, text) => expect(formatAge(ms)).toBe(text))

test.each([
  [0, '0 ms'],
  [850, '850 ms'],
  [999.6, '1.0 s'],
  [12_345, '12.3 s'],
  [59_949, '59.9 s'],
  [59_960, '1 m 00 s'],
  [125_000, '2 m 05 s'],
  [59 * minute + 59_600, '1 h 00 m'],
  [62 * minute, '1 h 02 m'],
  [27 * hour, '27 h 00 m'],
])('formatDuration(%d) is %s', (ms, text) => expect(formatDuration(ms)).toBe(text))

describe('counts and rates', () => {
  it('groups thousands', () => {
    expect(formatCount(0)).toBe('0')
    expect(formatCount(999)).toBe('999')
    expect(formatCount(1234)).toBe('1,234')
    expect(formatCount(-1234567)).toBe('-1,234,567')
    expect(formatCount(Number.POSITIVE_INFINITY)).toBe('unlimited')
  })
  it('pairs a count with its noun', () => {
    expect(plural('file', 1)).toBe('1 file')
    expect(plural('file', 0)).toBe('0 files')
    expect(plural('file', 80_000)).toBe('80,000 files')
    expect(plural('directory', 2)).toBe('2 directories')
    expect(plural('day', 2)).toBe('2 days')
    expect(plural('branch', 2)).toBe('2 branches')
  })
  it('gives throughput', () => {
    expect(formatRate(633_000_000, 3_000)).toBe('211 MB/s')
    expect(formatRate(10, 0)).toBe('0 B/s')
  })
})
