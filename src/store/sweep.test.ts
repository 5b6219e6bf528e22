import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { blankEntry } from '../model/entry.ts'
import { hashBytes } from '../model/id.ts'
import { checkIndex } from './check-index.ts'
import { knownDamage } from './known-damage.ts'
import { OBJECT, TREE_BLOCK_BYTES } from './pack-format.ts'
import { reachableFrom } from './reachable.ts'
import { encodeRecipe } from './recipe.ts'
import { Store } from './store.ts'
import { sweep } from './sweep.ts'
import { encodeTree } from './tree-codec.ts'

const SECRET = Buffer.from('bytes that must be gone')

let directory: string
let store: Store
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-sweep-'))
  store = Store.open(directory)
})
afterEach(() => {
  store.close()
  rmSync(directory, { recursive: true })
})

const packs = () => readdirSync(store.packDirectory).map(name => join(store.packDirectory, name))
const holders = () => packs().filter(file => readFileSync(file).includes(SECRET))

async function put(...contents: Buffer[]): Promise<string[]> {
  const writer = await store.writer()
  const ids = contents.map(content => writer.put(content))
  writer.commit()
  writer.close()
  return ids
}

test('what is dead goes, what is alive stays readable', async () => {
  const [dead, alive] = (await put(SECRET, Buffer.from('alive'))) as [string, string]
  expect(sweep(store, new Set([alive]), true)).toMatchObject({ removedObjects: 1 })
  expect([store.has(dead), store.read(alive).toString(), holders()]).toEqual([false, 'alive', []])
})

test('a few dead bytes among many alive ones are left to a later collection, but not to a purge', async () => {
  const [, alive] = (await put(SECRET, Buffer.alloc(100_000, 'alive'))) as [string, string]
  sweep(store, new Set([alive]), false)
  expect(holders()).toHaveLength(1)
  sweep(store, new Set([alive]), true)
  expect(holders()).toEqual([])
})

test('trees are packed anew into blocks as small as they were in', async () => {
  const random = (seed: number) => Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * seed * 7919) & 0xff))
  const ids = await put(...Array.from({ length: 200 }, (_, i) => random(i + 1)))
  const alive = ids.filter((_, i) => i % 2 === 0)
  sweep(store, new Set(alive), true)
  const sizes = alive
    .map(id => store.locate(id))
    .map(({ pack, block }) => store.packs.blockHeader(pack, block).rawBytes)
  expect(Math.max(...sizes)).toBeLessThan(TREE_BLOCK_BYTES + 4000)
})

test('the tail of a writer that died goes, although everything committed is alive', async () => {
  const [alive] = (await put(Buffer.from('alive'))) as [string]
  appendFileSync(packs()[0]!, SECRET)
  sweep(store, new Set([alive]), false)
  expect([holders(), store.read(alive).toString()]).toEqual([[], 'alive'])
})

test('a row that lies in another pack, where its bytes are not, stops a collection before it deletes any', async () => {
  const writers = [await store.writer(), await store.writer()] as const
  const [first, second] = writers.map((writer, i) => writer.put(Buffer.alloc(1000, `content ${i}`))) as [string, string]
  const both = Buffer.alloc(1000, 'in both')
  for (const writer of writers) writer.put(both)
  for (const writer of writers) writer.commit()
  for (const writer of writers) writer.close()
  checkIndex(store)
  const other = store.locate(second)
  store.index.add(first, { ...other, offset: store.locate(first).offset })
  expect(() => checkIndex(store)).toThrow(/the packs hold what it does not find/)
  store.index.add(first, other)
  expect(() => checkIndex(store)).toThrow(/the packs hold what it does not find/)
})

test('what is alive and found nowhere else is not deleted with a pack that no row names', async () => {
  const [lost] = (await put(Buffer.from('lost'))) as [string]
  store.index.database.exec('DELETE FROM objects; DELETE FROM packs')
  expect(() => sweep(store, new Set([lost]), false)).toThrow(/the packs hold what it does not find/)
  expect(packs()).toHaveLength(1)
  sweep(store, new Set(), false)
  expect(packs()).toEqual([])
})

test('a pack that was never committed goes', async () => {
  const writer = await store.writer()
  writer.put(Buffer.concat([SECRET, Buffer.alloc(600_000)]))
  writer.close()
  expect(packs()).toHaveLength(1)
  sweep(store, new Set(), false)
  expect(packs()).toEqual([])
})

test('the second copy of a content that two writers stored at once goes too', async () => {
  const writers = [await store.writer(), await store.writer()] as const
  const [dead] = writers.map(writer => writer.put(SECRET)) as [string, string]
  const alive = writers[1].put(Buffer.from('alive'))
  for (const writer of writers) writer.commit()
  for (const writer of writers) writer.close()
  expect(holders()).toHaveLength(2)
  sweep(store, new Set([alive]), true)
  expect([store.has(dead), store.read(alive).toString(), holders()]).toEqual([false, 'alive', []])
})

/** The last block. */
function damage(file: string): Buffer {
  const bytes = readFileSync(file)
  bytes[bytes.length - 1]! ^= 1
  writeFileSync(file, bytes)
  store.refresh()
  return bytes
}

test.each([false, true])(
  'damage that a collection meets is noted, and the pack stays (everything: %s)',
  async everything => {
    const [, alive] = (await put(SECRET, Buffer.from('alive'))) as [string, string]
    const [file] = packs()
    const bytes = damage(file!)
    const why = /^Cannot free all that is not needed: pack \w+\.pack is/
    const collect = () => sweep(store, new Set([alive]), everything)
    if (everything) expect(collect).toThrow(why)
    else expect(collect().damaged.map(({ message }) => message)).toEqual([expect.stringMatching(why)])
    expect(knownDamage(store.index)).toContain(alive)
    expect(readFileSync(file!).equals(bytes)).toBe(true)
  },
)

test('so is that of a recipe, which says what is needed', async () => {
  const content = hashBytes(SECRET)
  const [tree] = (await put(encodeTree([{ ...blankEntry('a', 'file'), content }]))) as [string]
  const writer = await store.writer()
  writer.putAs(content, OBJECT.recipe, encodeRecipe([]))
  writer.commit()
  writer.close()
  damage(join(store.packDirectory, store.index.pack(store.locate(content).pack)!.name))
  expect(() => reachableFrom(store, [tree])).toThrow(/is damaged/)
  expect([...knownDamage(store.index)]).toEqual([content])
})
