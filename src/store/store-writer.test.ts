/** Many objects are made durable beside the work; whatever happens to that, a commit has them all or says why not. */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Id } from '../model/entry.ts'
import { onFailpoint } from './failpoint.ts'
import { Store } from './store.ts'
import type { StoreWriter } from './store-writer.ts'

/** More than are kept waiting. */
const MANY = 22_000
let directory: string
let store: Store
let stopListening = () => {}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'store-writer-'))
  store = Store.open(directory)
})
afterEach(() => {
  stopListening()
  stopListening = () => {}
  store.index.close()
  rmSync(directory, { recursive: true })
})

/** Puts objects until enough of them wait, and a block more. */
function putMany(writer: StoreWriter, count = MANY): Id[] {
  return Array.from({ length: count }, (_, i) => writer.put(Buffer.from(`${i} `.padEnd(200, 'object'))))
}

test('what was appended gets into the index while the work goes on', async () => {
  const writer = await store.writer()
  const indexed = Promise.withResolvers<void>()
  stopListening = onFailpoint('store:before-index', indexed.resolve)
  const ids = putMany(writer)
  expect(store.has(ids[0]!)).toBe(false)
  await indexed.promise
  // In slices, between which others have their turn.
  expect(store.index.objectCount()).toBeLessThan(ids.length / 2)
  while (!store.has(ids[0]!)) await setImmediate()
  expect(store.has(ids.at(-1)!)).toBe(false)
  writer.commit()
  for (const id of ids) expect(store.read(id).length).toBe(200)
  writer.close()
})

test('a commit that is near begins with what there is much of, not with a little', async () => {
  const writer = await store.writer()
  let syncs = 0
  stopListening = onFailpoint('store:before-sync', () => void syncs++)
  const few = writer.put(Buffer.alloc(600_000, 'few'))
  writer.prepareCommit()
  expect(syncs).toBe(0)
  stopListening()
  const indexed = Promise.withResolvers<void>()
  stopListening = onFailpoint('store:before-index', indexed.resolve)
  const ids = putMany(writer, 5000)
  writer.prepareCommit()
  await indexed.promise
  while (![few, ids[0]!].every(id => store.has(id))) await setImmediate()
  expect(store.has(ids.at(-1)!)).toBe(false)
  writer.commit()
  expect(ids.every(id => store.has(id))).toBe(true)
  writer.close()
})

test('a commit does not wait for it, and nothing is indexed twice or too early', async () => {
  const writer = await store.writer()
  let times = 0
  stopListening = onFailpoint('store:before-index', () => void times++)
  const ids = putMany(writer)
  writer.commit()
  expect(ids.every(id => store.has(id))).toBe(true)
  // The same as the one that goes on beside, behind it.
  const pack = await open(join(store.packDirectory, readdirSync(store.packDirectory)[0]!))
  await pack.datasync()
  await pack.close()
  expect(times).toBe(1)
  writer.close()
})

test('a failure beside the work is told by the commit, which then has nothing', async () => {
  const writer = await store.writer()
  const failed = Promise.withResolvers<void>()
  stopListening = onFailpoint('store:before-index', () => {
    failed.resolve()
    throw Object.assign(new Error('EIO: injected'), { code: 'EIO' })
  })
  const ids = putMany(writer)
  await failed.promise
  stopListening()
  // Never a second try: after a failed sync the system forgets that the bytes were not written.
  await setImmediate()
  expect(() => writer.commit()).toThrow('EIO')
  expect(store.has(ids[0]!)).toBe(false)
  writer.close()
  expect(store.index.packs().map(({ bytes }) => bytes)).toEqual([0])
})
