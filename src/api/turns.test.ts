import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

/** Who has begun, in order. */
function queue(turns: Turns, count: number) {
  const begun: number[] = []
  const all = Array.from({ length: count }, (_, i) => turns.take().then(() => begun.push(i)))
  return { begun, until: (i: number) => all[i] }
}

test('as many at a time as are few; each that ends lets the next one begin', async () => {
  const turns = new Turns(2, 5, 600_000)
  const { begun, until } = queue(turns, 4)
  await until(1)
  expect(begun).toEqual([0, 1])
  turns.give()
  await until(2)
  expect(begun).toEqual([0, 1, 2])
  turns.give()
  await until(3)
  for (let i = 0; i < 2; i++) turns.give()
  const again = queue(turns, 2)
  await again.until(1)
  expect(again.begun).toEqual([0, 1])
})

test('where none ends, more begin one after the other, up to the most', async () => {
  const turns = new Turns(2, 4, 5)
  const { begun, until } = queue(turns, 6)
  await until(3)
  expect(begun).toEqual([0, 1, 2, 3])
  turns.give()
  await until(4)
  turns.give()
  await until(5)
  expect(begun).toEqual([0, 1, 2, 3, 4, 5])
})
