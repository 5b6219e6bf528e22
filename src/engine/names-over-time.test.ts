import { expect, test } from 'vitest'
import { NamesOverTime, type Renaming } from './names-over-time.ts'

const ME = 'me'
const move = (path: string | undefined, to: string | undefined, by = ME): Omit<Renaming, 'at'> => ({
  op: 'rename',
  path,
  to,
  directory: true,
  by,
})
const after = (...steps: Omit<Renaming, 'at'>[]): NamesOverTime => {
  const names = new NamesOverTime()
  steps.forEach((step, i) => void names.note({ ...step, at: i + 1 }))
  return names
}
const namesOf = (names: NamesOverTime, path: string) => names.namesOf(path).map(({ name }) => name)

test('what was in a directory has its name in the beginning, whatever it was moved by', () => {
  const names = after(move('a', 'b'), move('b/sub', 'c'), move('b', 'd'), move('c', 'd/again'))
  expect(names.firstOf('d/x')).toBe('a/x')
  expect(names.firstOf('d/again/x')).toBe('a/sub/x')
  expect(namesOf(names, 'd/again/x')).toEqual(['c/x', 'b/sub/x', 'a/sub/x'])
  expect(names.firstOf('other/x')).toBe('other/x')
})

test('a directory that was moved into one that moves later has the names since then', () => {
  const names = after(move('a', 'b'), move('d', 'b/d'), move('b', 'c'))
  expect(namesOf(names, 'c/d/x')).toEqual(['b/d/x', 'd/x'])
  expect(namesOf(names, 'c/x')).toEqual(['b/x', 'a/x'])
})

test('what comes later to where something was is another', () => {
  const names = after(move('a', 'b'))
  expect([names.firstOf('a/x'), names.firstOf('a')]).toEqual([undefined, undefined])
  expect(namesOf(after(move('a', 'b'), move('a', 'c')), 'c/x')).toEqual(['a/x'])
  expect(after(move('a', 'b'), move('a', 'c')).firstOf('c/x')).toBeUndefined()
})

test('who has moved what was there, until it is home again', () => {
  const names = after(move('a', 'b'), move('c', 'a', 'other'))
  expect([names.hasMoved(ME, 'a/x'), names.hasMoved('other', 'a/x'), names.hasMoved('other', 'c/x')]).toEqual([
    true,
    false,
    true,
  ])
  expect([names.hasMoved(ME, 'a/x', 1), names.hasMoved(ME, 'a/x', 2)]).toEqual([true, false])
  const home = after(move('a', 'b'), move('b', 'a'))
  expect([home.hasMoved(ME, 'a/x'), home.firstOf('a/x'), home.firstOf('b/x')]).toEqual([false, 'a/x', undefined])
})

test('where it is now', () => {
  const names = after(move('a', 'b'), move('b/sub', 'c'), move('b/out', undefined), move('z', 'a'))
  const now = ['a/x', 'a/sub/x', 'a/out/x', 'z/x', 'y'].map(path => names.nowOf(path))
  expect(now).toEqual(['b/x', 'c/x', undefined, 'a/x', 'y'])
})

test('a name that it has again, and gives up again, is still its first', () => {
  const names = after(move('a', 'b'), move('b', 'a'), move('a', 'd'))
  expect([names.firstOf('d/x'), names.hasMoved(ME, 'a/x'), names.nowOf('a/x')]).toEqual(['a/x', true, 'd/x'])
})

test('directories that change places', () => {
  const exchange = { ...move('a', 'b'), op: 'exchange' }
  const names = after(exchange)
  expect([names.firstOf('a/x'), names.firstOf('b/x')]).toEqual(['b/x', 'a/x'])
  const twice = after(exchange, exchange)
  expect([twice.firstOf('a/x'), twice.hasMoved(ME, 'b/x')]).toEqual(['a/x', false])
  const byHand = after(move('a', 't'), move('b', 'a'), move('t', 'b'))
  expect([byHand.firstOf('a/x'), byHand.firstOf('b/x')]).toEqual(['b/x', 'a/x'])
})

test('one that changes places with one outside', () => {
  for (const ends of [move('a', undefined), move(undefined, 'a')]) {
    const names = after({ ...ends, op: 'exchange' })
    expect([names.firstOf('a/x'), names.nowOf('a/x'), names.broughtBy('a/x')?.by]).toEqual([undefined, undefined, ME])
  }
  const names = after(move('b', 'a'))
  names.note({ ...move('a', undefined), op: 'exchange', at: 2 })()
  expect([names.firstOf('a/x'), names.broughtBy('a/x')]).toEqual(['b/x', undefined])
})

test('what comes from outside, and what leaves', () => {
  const names = after(move(undefined, 'a'), move('a', 'b'), move('c', undefined))
  expect(names.broughtBy('b/x')).toEqual({ by: ME, at: 1 })
  expect([names.broughtBy('a/x'), names.firstOf('b/x'), names.hasMoved(ME, 'c/x')]).toEqual([
    undefined,
    undefined,
    true,
  ])
})

test('a file that is deleted gives its past up; a directory only goes when nothing is in it', () => {
  const remove = (directory: boolean): Omit<Renaming, 'at'> => ({ ...move('b', undefined), op: 'delete', directory })
  expect(after(move('a', 'b'), remove(false)).firstOf('b')).toBeUndefined()
  expect(after(move('a', 'b'), remove(true)).firstOf('b/x')).toBe('a/x')
})

test('a renaming that did not happen is taken back', () => {
  const names = after(move('z', 'b'), move('y', 'a/y'))
  const takeBack = names.note({ ...move('a', 'b'), at: 3 })
  expect(names.firstOf('b/y/x')).toBe('y/x')
  takeBack()
  expect(['a/x', 'a/y/x', 'b/x'].map(path => names.firstOf(path))).toEqual(['a/x', 'y/x', 'z/x'])
})

test('thousands of renamings take no time to speak of', () => {
  const names = after(...Array.from({ length: 20_000 }, (_, i) => move(`d${i % 100}`, `d${(i + 1) % 100}`)))
  expect(names.firstOf('d0/x')).toBe('d0/x')
  expect(namesOf(names, 'd0/x')).toHaveLength(101)
})
