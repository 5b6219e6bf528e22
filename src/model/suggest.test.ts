import { expect, it, test } from 'vitest'
import { nearest } from './suggest.ts'

const verbs = ['run', 'snapshot', 'snapshots', 'log', 'show', 'status', 'diff', 'rollback', 'undo', 'redo', 'gc', 'ui']

test.each([
  ['rollbak', 'rollback'],
  ['rolback', 'rollback'],
  ['rollabck', 'rollback'],
  ['ROLLBACK', 'rollback'],
  ['roll', 'rollback'],
  ['snap', 'snapshot'],
  ['snapshosts', 'snapshots'],
  ['stat', 'status'],
  ['logs', 'log'],
  ['lgo', 'log'],
  ['dif', 'diff'],
  ['rnu', 'run'],
  ['gcc', 'gc'],
])('%s suggests %s', (typed, meant) => expect(nearest(typed, verbs)).toBe(meant))

test.each(['', 'frobnicate', 'xyz', 'x', 'qq', 'r'.repeat(10_000)])('%j suggests nothing', typed => {
  expect(nearest(typed, verbs)).toBeUndefined()
})

it('reads other ways of joining words', () => {
  expect(nearest('maxFileBytes', ['max_file_bytes'])).toBe('max_file_bytes')
  expect(nearest('max-file-byte', ['max_file_bytes'])).toBe('max_file_bytes')
})

it('prefers the earlier of two that are equally near, and accepts no candidates', () => {
  expect(nearest('cat', ['bat', 'hat'])).toBe('bat')
  expect(nearest('cat', [])).toBeUndefined()
})
