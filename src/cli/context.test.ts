import { expect, test } from 'vitest'
import { createContext } from './context.ts'

test('ages are told from the moment at which they are shown: what was done meanwhile is not in the future', () => {
  const context = createContext({ json: false, quiet: true, color: false, pager: false }, false)
  const start = Date.now()
  let doneMeanwhile = start
  while (doneMeanwhile === start) doneMeanwhile = Date.now()
  expect(context.now - doneMeanwhile).toBeGreaterThanOrEqual(0)
})
