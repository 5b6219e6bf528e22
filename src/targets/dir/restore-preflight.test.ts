import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { blankEntry } from '../../model/entry.ts'
import { knownDamage } from '../../store/known-damage.ts'
import { Store } from '../../store/store.ts'
import type { PlanAction } from './restore-plan.ts'
import { preflight } from './restore-preflight.ts'

const FILES = 100

let directory: string
let store: Store
let root: number
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-preflight-'))
  store = Store.open(directory)
  root = openSync(directory, 'r')
})
afterEach(() => {
  closeSync(root)
  store.close()
  rmSync(directory, { recursive: true })
})

test('what a block has lost is noted at once, and read no more often than it takes to tell', async () => {
  const writer = await store.writer()
  const ids = Array.from({ length: FILES }, (_, i) => writer.put(Buffer.from(`content ${i}`)))
  writer.commit()
  writer.close()
  store.refresh()
  const { pack, block } = store.locate(ids[0]!)
  const file = join(store.packDirectory, store.index.pack(pack)!.name)
  const bytes = readFileSync(file)
  bytes[block + store.packs.blockHeader(pack, block).totalBytes - 1]! ^= 1
  writeFileSync(file, bytes)
  const actions = ids.map((content, i): PlanAction => {
    const path = `f${i}`
    const entry = { ...blankEntry(path, 'file'), content, size: 10 }
    return { action: 'create', path, entry }
  })
  const reads = vi.spyOn(store.packs, 'packedBlock')
  const writes = vi.spyOn(store.index, 'transaction')
  const refuse = () => expect(() => preflight(store, root, actions)).toThrow(/has lost the content of f0, .* 95 more/)
  refuse()
  expect([reads.mock.calls.length, writes.mock.calls.length]).toEqual([2, 1])
  expect([...knownDamage(store.index)].sort()).toEqual(ids.toSorted())
  // Once it is known, only the look itself.
  refuse()
  expect([reads.mock.calls.length, writes.mock.calls.length]).toEqual([3, 1])
})
