import { expect, test } from 'vitest'
import { LetGo } from './let-go.ts'

/** No thread has this number. */
const GONE = 2 ** 30
const shown = [{ place: '/nowhere', below: '' }]
const nothing = { files: [], unseen: 0, unseenSince: undefined }

function lookUntilAll(letGo: LetGo): number {
  for (let looks = 1; looks < 100; looks++) {
    letGo.settle(letGo.done(5000, 0), nothing, shown, 5000)
    if (letGo.count === 0) return looks
  }
  return Infinity
}

test('what is touched after thousands of others is let go, too, and no look is about all of them', () => {
  const letGo = new LetGo()
  for (let i = 0; i < 45_000; i++) letGo.note(`cache/${i}`, { at: 1000, thread: GONE })
  letGo.note('f', { at: 1000, thread: GONE })
  expect([letGo.done(5000, 0).size, lookUntilAll(letGo), letGo.of('f')]).toEqual([20_000, 3, 5000])
})

test('what was touched before a process came that cannot be looked at may be held by that', () => {
  const letGo = new LetGo()
  letGo.note('before', { at: 1000, thread: GONE })
  letGo.note('after', { at: 3000, thread: GONE })
  letGo.settle(letGo.done(5000, 0), { files: [], unseen: 1, unseenSince: 2000 }, shown, 5000)
  expect([letGo.of('before'), letGo.of('after')]).toEqual([undefined, 5000])
})

test('what was let go stays so while hundreds of thousands of others are', () => {
  const letGo = new LetGo()
  letGo.note('f', { at: 1000, thread: GONE })
  lookUntilAll(letGo)
  for (let i = 0; i < 150_000; i += 50_000) {
    for (let j = i; j < i + 50_000; j++) letGo.note(`cache/${j}`, { at: 1000, thread: GONE })
    lookUntilAll(letGo)
  }
  expect([letGo.of('f'), letGo.of('cache/0'), letGo.of('other')]).toEqual([5000, 5000, undefined])
})

test('what is removed does not wait', () => {
  const letGo = new LetGo()
  letGo.note('f', { at: 1000, thread: GONE })
  letGo.noteRemoved('f')
  expect([letGo.count, letGo.of('f')]).toEqual([0, undefined])
})
