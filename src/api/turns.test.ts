import { expect, test } from 'vitest'
import { type Turn, Turns } from './turns.ts'

/** Who has begun, in order, with their turns. */
function queue(turns: Turns, count: number) {
  const begun: number[] = []
  const taken: Turn[] = []
  const all = Array.from({ length: count }, async (_, i) => {
    taken[i] = await turns.take()
    begun.push(i)
  })
  return { begun, until: (i: number) => all[i], end: (i: number) => turns.give(taken[i]!) }
}

test('as many at a time as are few; each that ends lets the next one begin', async () => {
  const turns = new Turns(2, 5, 600_000)
  const { begun, until, end } = queue(turns, 4)
  await until(1)
  expect(begun).toEqual([0, 1])
  end(0)
  await until(2)
  expect(begun).toEqual([0, 1, 2])
  end(1)
  await until(3)
  for (const i of [2, 3]) end(i)
  const again = queue(turns, 2)
  await again.until(1)
  expect(again.begun).toEqual([0, 1])
})

test('where none ends, more begin one after the other, up to the most', async () => {
  const turns = new Turns(2, 4, 5)
  const { begun, until, end } = queue(turns, 6)
  await until(3)
  expect(begun).toEqual([0, 1, 2, 3])
  end(0)
  await until(4)
  end(1)
  await until(5)
  expect(begun).toEqual([0, 1, 2, 3, 4, 5])
})

test('who comes while all are at something long is not made to wait again and again', async () => {
  const PATIENCE_MS = 300
  const turns = new Turns(2, 4, PATIENCE_MS)
  const long = queue(turns, 3)
  await long.until(2)
  const since = performance.now()
  for (let i = 0; i < 20; i++) turns.give(await turns.take())
  expect(performance.now() - since).toBeLessThan(PATIENCE_MS)
})
