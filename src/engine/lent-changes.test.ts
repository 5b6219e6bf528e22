import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { blankEntry, type Entry } from '../model/entry.ts'
import { hashBytes } from '../model/id.ts'
import { Store } from '../store/store.ts'
import { EMPTY_TREE, encodeTree } from '../store/tree-codec.ts'
import { Hidden } from '../targets/dir/hidden.ts'
import type { PlanAction, RestorePlan } from '../targets/dir/restore-plan.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'
import { nameChangedSince } from './lent-changes.ts'

const PATHS = 20_000
/** It takes 65 ms; with a look at all actions for each path it took 3300. */
const LIMIT_MS = 1000

const name = (prefix: string, i: number) => `${prefix}${String(i).padStart(6, '0')}`
const fileOf = (path: string): Entry => ({ ...blankEntry(path, 'file'), content: hashBytes(Buffer.from(path)) })

test('what the plan brings back, also with a directory, is not named; among many paths it is found quickly', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'savepoint-lent-'))
  const store = Store.open(directory)
  try {
    const writer = await store.writer()
    const files = Array.from({ length: PATHS }, (_, i) => fileOf(name('f', i)))
    const below = writer.put(encodeTree(files))
    const made = { ...blankEntry('made', 'dir'), content: below }
    const madeNot = { ...blankEntry('made-not', 'dir'), content: writer.put(encodeTree([fileOf('x')])) }
    const lent = writer.put(encodeTree([...files, made, madeNot]))
    writer.commit()
    writer.close()
    const plan: RestorePlan = {
      actions: [...files.slice(1), made].map((entry): PlanAction => ({ action: 'create', path: entry.name, entry })),
      ...{ leftAlone: [], keptDirs: [], hidden: new Hidden(), uncaptured: [] },
    }
    const start = performance.now()
    nameChangedSince(
      { store } as Context,
      lent,
      {} as Parameters<typeof nameChangedSince>[2],
      { tree: EMPTY_TREE } as Live,
      plan,
    )
    const took = performance.now() - start
    expect(plan.leftAlone).toEqual(['f000000', 'made-not/x'].map(path => ({ path, why: 'edited' })))
    expect(took).toBeLessThan(LIMIT_MS)
  } finally {
    store.close()
    rmSync(directory, { recursive: true })
  }
})
