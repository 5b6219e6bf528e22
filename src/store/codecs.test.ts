/** Trees and recipes: deterministic, strict, and never a crash whatever the bytes are (X4). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SavepointError } from '../errors/errors.ts'
import { blankEntry, type Entry, type EntryKind, type KnownKind, unknownReasons } from '../model/entry.ts'
import { hashBytes, ID_BYTES } from '../model/id.ts'
import { ByteReader } from './byte-reader.ts'
import { ByteWriter } from './byte-writer.ts'
import { decodeRecipe, encodeRecipe, type RecipeItem, recipeSize } from './recipe.ts'
import { decodeTree, encodeTree, isSafeName } from './tree-codec.ts'
import { pairByName } from './tree-diff.ts'
import { differingPairs, type Pair } from './tree-records.ts'

const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')
const id = fc.uint8Array({ minLength: ID_BYTES, maxLength: ID_BYTES }).map(latin1)
const name = fc.uint8Array({ minLength: 1, maxLength: 40 }).map(latin1).filter(isSafeName)
const small = fc.nat({ max: 0xffff_ffff })

const entry: fc.Arbitrary<Entry> = fc
  .record({
    name,
    kind: fc.constantFrom<EntryKind>('file', 'dir', 'link', 'fifo', 'char', 'block', 'unknown'),
    mode: fc.nat({ max: 0o7777 }),
    uid: small,
    gid: small,
    mtimeNs: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    size: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    content: id,
    target: fc.uint8Array({ maxLength: 60 }).map(latin1),
    linkGroup: fc.oneof(fc.constant(0n), fc.bigInt({ min: 1n, max: 2n ** 64n - 1n })),
    xattrs: fc.option(
      fc.uint8Array({ maxLength: 50 }).map(bytes => Buffer.from(bytes)),
      { nil: undefined },
    ),
    sparse: fc.boolean(),
    rdevMajor: small,
    rdevMinor: small,
    reason: fc.constantFrom(...unknownReasons),
    found: fc.option(fc.constantFrom<KnownKind>('file', 'dir', 'link', 'fifo', 'char', 'block'), { nil: undefined }),
    limit: fc.maxSafeNat(),
  })
  .map(onlyWhatCounts)

/** An entry as a capture makes it: fields that its kind does not have are blank. */
function onlyWhatCounts(full: Entry): Entry {
  const { kind, mode, uid, gid, xattrs, linkGroup, sparse } = full
  const blank = blankEntry(full.name, kind)
  if (kind === 'unknown') {
    const { reason, found, limit } = full
    return { ...blank, reason, ...(found && { found }), ...(found && reason === 'too-large' && { limit }) }
  }
  const common = { ...blank, mode, uid, gid, xattrs, linkGroup, sparse }
  if (kind === 'dir') return { ...common, content: full.content }
  const dated = { ...common, mtimeNs: full.mtimeNs }
  if (kind === 'file') return { ...dated, size: full.size, content: full.content }
  if (kind === 'link') return { ...dated, target: full.target, size: full.target.length }
  if (kind === 'fifo') return dated
  return { ...dated, rdevMajor: full.rdevMajor, rdevMinor: full.rdevMinor }
}

const tree = fc
  .uniqueArray(entry, { selector: one => one.name, maxLength: 12 })
  .map(entries => entries.sort((a, b) => (a.name < b.name ? -1 : 1)))

/** Decodes, or says undefined when it is refused as it should be. Anything else that is thrown fails the test. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof SavepointError && error.code === 'store.damaged') return undefined
    throw error
  }
}

describe('a tree', () => {
  test('comes back as it was', () => {
    fc.assert(
      fc.property(tree, entries => {
        expect(decodeTree(encodeTree(entries))).toEqual(entries)
      }),
    )
  })

  test('that decodes at all has exactly one encoding, whatever was done to its bytes', () => {
    fc.assert(
      fc.property(tree, fc.nat(), fc.nat({ max: 255 }), (entries, at, value) => {
        const bytes = encodeTree(entries)
        bytes[at % bytes.length] = value
        const decoded = attempt(() => decodeTree(bytes))
        if (decoded) expect(encodeTree(decoded).equals(bytes)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  test('of random, cut off or extended bytes is refused', () => {
    const header = Buffer.from([0x54, 1])
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), tree, fc.nat(), (noise, entries, at) => {
        attempt(() => decodeTree(Buffer.from(noise)))
        attempt(() => decodeTree(Buffer.concat([header, noise])))
        const bytes = encodeTree(entries)
        expect(attempt(() => decodeTree(bytes.subarray(0, at % bytes.length)))).toBeUndefined()
        expect(attempt(() => decodeTree(Buffer.concat([bytes, Buffer.from([0])])))).toBeUndefined()
      }),
      { numRuns: 1000 },
    )
  })

  test('beside another one shows what differs, as if both had been decoded', () => {
    const isSame = ([a, b]: Pair) => a && b && encodeTree([a]).equals(encodeTree([b]))
    const fate = fc.constantFrom('stays', 'stays', 'stays', 'goes', 'comes', 'changes')
    const step = fc.record({ one: entry, other: entry, fate })
    fc.assert(
      fc.property(fc.uniqueArray(step, { selector: ({ one }) => one.name, maxLength: 20 }), steps => {
        steps.sort((a, b) => (a.one.name < b.one.name ? -1 : 1))
        const before = steps.flatMap(({ one, fate }) => (fate === 'comes' ? [] : [one]))
        const after = steps.flatMap(({ one, other, fate }) =>
          fate === 'goes' ? [] : [fate === 'changes' ? { ...other, name: one.name } : one],
        )
        const found = [...differingPairs(encodeTree(before), encodeTree(after))]
        expect(found).toEqual([...pairByName(before, after)].filter(pair => !isSame(pair)))
      }),
      { numRuns: 1000 },
    )
  })

  test('beside another one is refused when its bytes are cut off or extended', () => {
    fc.assert(
      fc.property(tree, tree, fc.nat(), (entries, others, at) => {
        const [bytes, other] = [encodeTree(entries), encodeTree(others)]
        const beside = (damaged: Buffer) => attempt(() => [...differingPairs(damaged, other)])
        expect(beside(bytes.subarray(0, at % bytes.length))).toBeUndefined()
        expect(beside(Buffer.concat([bytes, Buffer.from([0])]))).toBeUndefined()
      }),
      { numRuns: 1000 },
    )
  })

  test('with a name that could leave the target is refused', () => {
    const named = (bad: string) => attempt(() => decodeTree(encodeTree([blankEntry(bad, 'fifo')])))
    expect(named('x'.repeat(255))).toHaveLength(1)
    for (const bad of ['', '.', '..', 'a/b', '/etc', 'a\0', 'x'.repeat(256)]) expect(named(bad)).toBeUndefined()
  })

  test('with names out of order or twice is refused', () => {
    const two = (a: string, b: string) =>
      attempt(() => decodeTree(encodeTree([blankEntry(a, 'fifo'), blankEntry(b, 'fifo')])))
    expect(two('a', 'b')).toHaveLength(2)
    expect(two('b', 'a')).toBeUndefined()
    expect(two('a', 'a')).toBeUndefined()
  })

  test('with an impossible mode, version, kind or number of entries is refused', () => {
    const bytes = encodeTree([{ ...blankEntry('a', 'fifo'), mode: 0o7777 }])
    const forge = (at: number, value: number) => {
      const copy = Buffer.from(bytes)
      copy[at] = value
      return attempt(() => decodeTree(copy))
    }
    expect(forge(0, bytes[0]!)).toHaveLength(1)
    for (const [at, value] of [
      [0, 0x55],
      [1, 2],
      [2, 2],
      [3, 99],
      [4, 8],
    ] as const)
      expect(forge(at, value)).toBeUndefined()
    expect(attempt(() => decodeTree(encodeTree([{ ...blankEntry('a', 'fifo'), mode: 0o10000 }])))).toBeUndefined()
  })
})

describe('a recipe', () => {
  const item: fc.Arbitrary<RecipeItem> = fc.oneof(
    fc.record({ chunk: id, length: fc.nat() }),
    fc.record({ hole: fc.nat({ max: 2 ** 40 }) }),
  )

  test('comes back as it was, and knows its size', () => {
    fc.assert(
      fc.property(fc.array(item), items => {
        expect(decodeRecipe(encodeRecipe(items))).toEqual(items)
        expect(recipeSize(items)).toBe(items.reduce((sum, one) => sum + ('hole' in one ? one.hole : one.length), 0))
      }),
    )
  })

  test('of damaged bytes is refused or is another recipe, never a crash', () => {
    fc.assert(
      fc.property(fc.array(item, { minLength: 1 }), fc.nat(), fc.nat({ max: 255 }), (items, at, value) => {
        const bytes = encodeRecipe(items)
        expect(attempt(() => decodeRecipe(bytes.subarray(0, at % bytes.length)))).toBeUndefined()
        bytes[at % bytes.length] = value
        const decoded = attempt(() => decodeRecipe(bytes))
        if (decoded) expect(encodeRecipe(decoded).equals(bytes)).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  test('is not mistaken for a tree, nor a tree for a recipe', () => {
    expect(attempt(() => decodeTree(encodeRecipe([{ hole: 5 }])))).toBeUndefined()
    expect(attempt(() => decodeRecipe(encodeTree([])))).toBeUndefined()
    expect(hashBytes(encodeTree([]))).not.toBe(hashBytes(encodeRecipe([])))
  })
})

describe('a number', () => {
  const read = (bytes: number[]) => attempt(() => new ByteReader(Buffer.from(bytes), 'a number').varint())

  test('comes back as it was', () => {
    fc.assert(
      fc.property(fc.nat({ max: Number.MAX_SAFE_INTEGER }), value => {
        const out = new ByteWriter(1)
        out.varint(value)
        expect(new ByteReader(out.finish(), 'a number').varint()).toBe(value)
      }),
    )
  })

  test('that is too large, too long or not in its shortest form is refused', () => {
    expect(read([0x80, 0x00])).toBeUndefined()
    expect(read([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])).toBeUndefined()
    expect(read([...new Array(200).fill(0x80), 0x01])).toBeUndefined()
    expect(read([])).toBeUndefined()
  })
})
