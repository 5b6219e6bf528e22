import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodePax, decodePaxTime, encodePax, encodePaxTime } from './archive-pax.ts'

describe('records', () => {
  it('count their own length', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.stringMatching(/^[a-z.]{1,9}$/), fc.string({ unit: 'binary-ascii', maxLength: 1200 }))),
        records => {
          expect(decodePax(encodePax(records as [string, string][]))).toEqual(records)
        },
      ),
    )
    expect([93, 94].map(length => encodePax([['a', 'x'.repeat(length)]]).length)).toEqual([99, 101])
  })

  it('say times exactly', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        time => decodePaxTime(encodePaxTime(time)) === time,
      ),
    )
    expect([encodePaxTime(-1_500_000_000n), encodePaxTime(1n), encodePaxTime(0n)]).toEqual(['-1.5', '0.000000001', '0'])
  })
})
