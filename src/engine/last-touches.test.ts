import { expect, test } from 'vitest'
import { LastTouches, type Touch } from './last-touches.ts'

const touch = (op: Touch['op'], at: number, changed?: number, more: Partial<Touch> = {}): Touch => ({
  op,
  at,
  pid: 7,
  thread: 7,
  path: 'f',
  to: undefined,
  directory: false,
  existed: true,
  changed,
  replaced: undefined,
  ...more,
})

const mixedAfter = (...steps: (Touch | { pid: number; endedAt: number })[]): string[] => {
  const touches = new LastTouches()
  for (const step of steps) {
    if ('endedAt' in step) touches.noteEnd(step.pid, step.endedAt)
    else touches.note(step)
  }
  return ['d/f', 'e', 'f'].filter(path => touches.isMixed(path))
}

test.each<[string, string[], Parameters<typeof mixedAfter>]>([
  ['changed by its own write', [], [touch('write', 1000), touch('write', 9000, 1900)]],
  ['changed long after its write', ['f'], [touch('write', 1000), touch('write', 9000, 2100)]],
  ['changed before it was touched', ['f'], [touch('write', 9000, 2100)]],
  ['not changed since the beginning', [], [touch('write', 9000)]],
  ['written until its writer ended', [], [touch('write', 1000), { pid: 7, endedAt: 5000 }, touch('write', 9000, 4000)]],
  ['changed after its writer', ['f'], [touch('write', 1000), { pid: 7, endedAt: 3000 }, touch('write', 9000, 4000)]],
  [
    'of an earlier process of that number',
    ['f'],
    [{ pid: 7, endedAt: 900 }, touch('write', 1000), touch('write', 9000, 4000)],
  ],
  ['given its mode after long writing', [], [touch('write', 1000), touch('attributes', 9000, 8900)]],
  ['given a mode after an edit', ['f'], [touch('write', 1000), touch('attributes', 9000, 4000)]],
  ['of others, renamed at once', ['e', 'f'], [touch('rename', 9000, 8900, { to: 'e' })]],
  [
    'edited, then replaced',
    ['f'],
    [touch('write', 1000), touch('rename', 9000, 8900, { path: 'new', to: 'f', replaced: 4000 })],
  ],
  ['open since before the command', [], [touch('inherited', 1000), touch('write', 9000, 8000)]],
  [
    'written before its directory was moved',
    [],
    [
      touch('write', 1000, undefined, { path: 'c/f' }),
      touch('rename', 5000, undefined, { path: 'c', to: 'd' }),
      touch('write', 9000, 4000, { path: 'd/f' }),
    ],
  ],
])('a file %s', (_what, mixed, steps) => {
  expect(mixedAfter(...steps)).toEqual(mixed)
})

test('what waited for us was perhaps carried out only when nothing waited any more', () => {
  const touches = new LastTouches()
  touches.safeAt = Infinity
  touches.note(touch('write', 1000))
  touches.note(touch('write', 4000, 3500))
  touches.safeAt = 6000
  touches.note(touch('write', 9000, 5900))
  expect(touches.isMixed('f')).toBe(false)
  touches.note(touch('write', 20_000, 15_000))
  expect(touches.isMixed('f')).toBe(true)
})

test('what is edited after the run has put it in the place of another is removed by that name', () => {
  const touches = new LastTouches()
  touches.note(touch('rename', 1000, undefined, { path: 'new', to: 'f' }))
  touches.note(touch('delete', 9000, 4000))
  expect([...touches.removedPaths]).toEqual([['f', 'new']])
})

test('what its writer still has open is its own', () => {
  const touches = new LastTouches((pid, path) => (pid === 7 && path === 'f' ? 1 : 0))
  touches.note(touch('write', 1000))
  touches.note(touch('write', 1000, undefined, { path: 'e' }))
  touches.note(touch('delete', 9000, 4000, { pid: 8 }))
  touches.note(touch('delete', 9000, 4000, { pid: 8, path: 'e' }))
  expect([...touches.removedPaths.keys()]).toEqual(['e'])
})

test('what its writer has open only because it opens it again may be another edit', () => {
  const touches = new LastTouches(() => 1)
  touches.note(touch('write', 1000))
  touches.note(touch('write', 9000, 4000))
  expect(touches.isMixed('f')).toBe(true)
})

test('what was in no snapshot is not found where the run has touched it before, or brought it', () => {
  const touches = new LastTouches()
  touches.note(touch('write', 1000))
  touches.note(touch('rename', 1000, undefined, { path: undefined, to: 'd', directory: true }))
  touches.noteFound('f', 5_000_000_000n)
  touches.noteFound('d/old', 500_000_000n)
  touches.noteFound('d/put', 5_000_000_000n)
  touches.noteFound('e', 500_000_000n)
  expect([...touches.foundUnsaved.keys()]).toEqual(['d/put', 'e'])
})

test('what was touched long ago is known also after hundreds of thousands of other files', () => {
  const touches = new LastTouches()
  touches.note(touch('write', 1000))
  touches.note(touch('rename', 1000, undefined, { path: 'c', to: 'd' }))
  for (let i = 0; i < 300_000; i++) {
    touches.note(touch('write', 2000, undefined, { path: `cache/${i}`, existed: false }))
    touches.note(touch('delete', 2000, undefined, { path: `cache/${i}` }))
  }
  expect([touches.isFull, touches.of('f'), touches.of('d/x'), touches.of('cache/0'), touches.of('other')]).toEqual([
    false,
    1000,
    1000,
    2000,
    undefined,
  ])
  touches.note(touch('write', 9000, 1900))
  expect(touches.isMixed('f')).toBe(false)
  touches.note(touch('write', 9000, 4000, { path: 'cache/1' }))
  expect(touches.isMixed('cache/1')).toBe(true)
})

test('a few files that are renamed again and again can be remembered', () => {
  const touches = new LastTouches()
  touches.note(touch('write', 1000))
  for (let i = 0; i < 250_000; i++)
    touches.note(touch('rename', 2000, undefined, { path: `a${i % 50}`, to: `b${i % 50}` }))
  expect([touches.isFull, touches.of('f')]).toEqual([false, 1000])
})

test('who touches more than can be remembered is known to have', () => {
  const touches = new LastTouches()
  for (let i = 0; i < 100_001; i++) touches.note(touch('rename', 1000, undefined, { path: `a${i}`, to: `b${i}` }))
  expect(touches.isFull).toBe(true)
})
