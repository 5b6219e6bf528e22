/** Random trees and random mischief, as lists of operations over few names, so that they meet each other often. */
import fc from 'fast-check'
import { isRoot } from './machine.ts'
import type { TreeOp } from './tree-ops.ts'

const MIB = 1024 * 1024
const latin1 = (text: string) => Buffer.from(text).toString('latin1')

/** Names that have broken other tools: bytes, not text. */
export const oddNames = [
  'new\nline',
  '-rf',
  'a..b',
  'n'.repeat(255),
  '\xff\xfe not utf-8 \x80',
  latin1('emoji 🦊'),
  'trailing  ',
  ' leading',
  'back\\slash',
  '$(touch x)"\'`*?',
  '\x01\x1b[31m',
  latin1('e\u0301 é'),
]

const name = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'c', 'd') },
  { weight: 1, arbitrary: fc.constantFrom(...oddNames) },
)
const path = fc
  .oneof(
    { weight: 2, arbitrary: fc.array(name, { minLength: 1, maxLength: 1 }) },
    { weight: 3, arbitrary: fc.array(name, { minLength: 2, maxLength: 3 }) },
  )
  .map(parts => parts.join('/'))

const size = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(0, 1, 17, 4095, 4096, 5000, 70_000) },
  { weight: 1, arbitrary: fc.constantFrom(MIB - 1, MIB, MIB + 1, 3 * MIB + 7) },
)
const seed = fc.nat(50)
/** Only root can read a file without permissions, so that it is captured. */
const fileMode = fc.constantFrom(0o644, 0o600, 0o444, 0o755, 0o4755, 0o2711, 0o1666, ...(isRoot ? [0o000] : []))
const dirMode = fc.constantFrom(0o755, 0o700, 0o555, 0o2775, 0o1777)
const target = fc.oneof(
  path,
  fc.constantFrom('.', '..', '../..', 'missing', '/', '/etc/passwd', '../../../escape', '\xff\xfe'),
)

const makers = {
  file: fc.record({ op: fc.constant('file' as const), path, size, seed, mode: fileMode }),
  sparse: fc.record({ op: fc.constant('sparse' as const), path, size: fc.constantFrom(200_000, MIB, 5 * MIB), seed }),
  dir: fc.record({ op: fc.constant('dir' as const), path, mode: dirMode }),
  link: fc.record({ op: fc.constant('link' as const), path, target }),
  fifo: fc.record({ op: fc.constant('fifo' as const), path }),
}
const xattr = fc.record({
  op: fc.constant('xattr' as const),
  path,
  name: fc.constantFrom('one', 'two'),
  value: fc.constantFrom('', 'v', '0xff00'),
})
const hard = fc.record({ op: fc.constant('hard' as const), path, from: path })
const changers = [
  fc.record({ op: fc.constant('chmod' as const), path, mode: fc.oneof(fileMode, dirMode) }),
  fc.record({ op: fc.constant('append' as const), path, seed }),
  fc.record({ op: fc.constant('disguise' as const), path, seed: fc.integer({ min: 100, max: 200 }) }),
  fc.record({
    op: fc.constant('touch' as const),
    path,
    seconds: fc.constantFrom(0, 1, 1_500_000_000, 4_000_000_000),
    nanoseconds: fc.nat(999_999_999),
  }),
  fc.record({ op: fc.constant('rename' as const), path, to: path }),
  fc.record({ op: fc.constant('remove' as const), path }),
]
/** What was there goes, and something of another kind takes its place. */
const swap = fc.tuple(path, fc.oneof(...Object.values(makers))).map(([at, made]): TreeOp[] => [
  { op: 'remove', path: at },
  { ...made, path: at },
])

const alone = (op: fc.Arbitrary<TreeOp>) => op.map(one => [one])
const weighted = (weight: number, arbitrary: fc.Arbitrary<TreeOp[]>) => ({ weight, arbitrary })

export interface Mix {
  hardLinks: boolean
}

/** Directories first, so that most of what follows has a place. */
export function buildOps(mix: Mix = { hardLinks: true }): fc.Arbitrary<TreeOp[]> {
  const anything = fc.oneof(
    weighted(8, alone(makers.file)),
    weighted(1, alone(makers.sparse)),
    weighted(3, alone(makers.link)),
    weighted(1, alone(makers.fifo)),
    weighted(2, alone(xattr)),
    weighted(mix.hardLinks ? 5 : 0, alone(hard)),
  )
  return fc
    .tuple(fc.array(makers.dir, { minLength: 3, maxLength: 8 }), fc.array(anything, { minLength: 4, maxLength: 25 }))
    .map(([dirs, rest]) => [...dirs.sort((a, b) => a.path.length - b.path.length), ...rest.flat()])
}

export function changeOps(mix: Mix = { hardLinks: true }): fc.Arbitrary<TreeOp[]> {
  const anything = fc.oneof(
    weighted(10, alone(fc.oneof(...changers))),
    weighted(4, swap),
    weighted(4, alone(fc.oneof(...Object.values(makers)))),
    weighted(2, alone(xattr)),
    weighted(mix.hardLinks ? 3 : 0, alone(hard)),
  )
  return fc.array(anything, { minLength: 1, maxLength: 20 }).map(ops => ops.flat())
}
