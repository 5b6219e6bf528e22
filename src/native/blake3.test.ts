/** Our BLAKE3 against the reference implementation, in each shape that the compiler gives it for some processor. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { blake3 } from '@napi-rs/blake-hash'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { type Addon, addon } from './addon.ts'

const packageRoot = fileURLToPath(new URL('../..', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'savepoint-blake3-'))
afterAll(() => rmSync(scratch, { recursive: true }))

function buildFor(name: string, flags: string): Addon {
  const file = join(scratch, `${name}.node`)
  const env = { ...process.env, CFLAGS: `-DSAVEPOINT_ONE_PROCESSOR ${flags}` }
  execFileSync('sh', [join(packageRoot, 'scripts/build-addon.sh'), file], { env })
  return createRequire(import.meta.url)(file) as Addon
}

const builds: [string, Addon][] = [
  ['as built', addon],
  ['for any processor', buildFor('any', '')],
]
if (process.arch === 'x64') builds.push(['for AVX2', buildFor('avx2', '-mavx2')])

const input = Buffer.alloc(
  300_000,
  Uint8Array.from({ length: 251 }, (_, i) => i),
)
const reference = (bytes: Uint8Array) => (blake3(bytes) as Buffer).toString('latin1')
const hex = (id: string) => Buffer.from(id, 'latin1').toString('hex')

/** Around every boundary of blocks, chunks, lanes and subtrees. */
const lengths = [0, 64, 1024, 2048, 3072, 4096, 8192, 9216, 16_384, 17_408, 31_744, 65_536, 102_400, 299_000].flatMap(
  length => [length - 1, length, length + 1].filter(near => near >= 0),
)

describe.each(builds)('%s', (_, build) => {
  test('the published hash of nothing and of three letters', () => {
    expect(hex(build.hash(Buffer.alloc(0)))).toBe('af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262')
    expect(hex(build.hash(Buffer.from('abc')))).toBe('6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85')
  })

  test.each(lengths)('%i bytes, also from an odd address', length => {
    for (const start of [0, 3]) {
      const bytes = input.subarray(start, start + length)
      expect(build.hash(bytes)).toBe(reference(bytes))
    }
  })

  test('in pieces of any length, with digests in between', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 40_000 })), {
      maxLength: 12,
    })
    fc.assert(
      fc.property(sizes, pieces => {
        const state = build.hasherNew()
        let at = 0
        for (const size of pieces) {
          build.hasherUpdate(state, input.subarray(at, at + size))
          at = Math.min(at + size, input.length)
          expect(build.hasherDigest(state)).toBe(reference(input.subarray(0, at)))
        }
      }),
    )
  })
})

test('a state that is none is refused', () => {
  const damaged = addon.hasherNew()
  damaged.fill(0xff, 0, 8)
  for (const state of [Buffer.alloc(5), damaged])
    expect(() => addon.hasherDigest(state)).toThrow(/expected a state of hasherNew/)
})
