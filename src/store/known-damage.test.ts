import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { blankEntry } from '../model/entry.ts'
import { checkIndex } from './check-index.ts'
import { knownDamage, renewKnownDamage } from './known-damage.ts'
import { readContent } from './read-content.ts'
import { Store } from './store.ts'

let directory: string
let store: Store
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-damage-'))
  store = Store.open(directory)
})
afterEach(() => {
  store.close()
  rmSync(directory, { recursive: true })
})

const known = () => [...knownDamage(store.index)]

async function put(...contents: string[]): Promise<string[]> {
  const writer = await store.writer()
  const ids = contents.map(content => writer.put(Buffer.from(content)))
  writer.commit()
  writer.close()
  store.refresh()
  return ids
}

/** One bit of the block that it lies in. */
function damage(id: string): void {
  const { pack, block } = store.locate(id)
  const file = join(store.packDirectory, store.index.pack(pack)!.name)
  const bytes = readFileSync(file)
  bytes[block + store.packs.blockHeader(pack, block).totalBytes - 1]! ^= 1
  writeFileSync(file, bytes)
  store.refresh()
}

test('what a reader finds damaged is known from then on, with all that lies in the same block', async () => {
  const ids = await put('one', 'two')
  const [other] = await put('other')
  damage(ids[0]!)
  expect([store.hasKnownDamage(), known()]).toEqual([false, []])
  const entry = { ...blankEntry('a', 'file'), content: ids[0]!, size: 3 }
  expect(() => readContent(store, entry)).toThrow(/is damaged/)
  expect(known().sort()).toEqual(ids.toSorted())
  expect(store.hasKnownDamage()).toBe(true)
  store.close()
  store = Store.open(directory)
  expect(known().sort()).toEqual(ids.toSorted())
  expect(store.read(other!).toString()).toBe('other')
})

test('it is stored again, and what lies elsewhere is not damaged any more', async () => {
  const [id] = (await put('content')) as [string]
  damage(id)
  expect(() => store.read(id)).toThrow(/is damaged/)
  await put('content')
  expect([store.read(id).toString(), known()]).toEqual(['content', []])
  const place = store.locate(id)
  await put('content')
  expect(store.locate(id)).toEqual(place)
})

test('a note of what is sound costs one more copy, and is gone with it', async () => {
  const [id] = (await put('content')) as [string]
  const place = store.locate(id)
  renewKnownDamage(store.index, [id])
  expect([known(), store.read(id).toString()]).toEqual([[id], 'content'])
  await put('content')
  expect(known()).toEqual([])
  expect(store.locate(id)).not.toEqual(place)
  renewKnownDamage(store.index, [id])
  renewKnownDamage(store.index, [])
  expect(known()).toEqual([])
})

test('of what was stored twice, the sound one is not collected because the index has the damaged one', async () => {
  const writers = [await store.writer(), await store.writer()] as const
  const [id] = writers.map(writer => writer.put(Buffer.alloc(1000, 'in both'))) as [string, string]
  for (const writer of writers) writer.commit()
  for (const writer of writers) writer.close()
  checkIndex(store)
  damage(id)
  expect(() => store.read(id)).toThrow(/is damaged/)
  expect(() => checkIndex(store)).toThrow(/the packs hold what it does not find/)
})
