/** N1-N4: names are never overwritten, nothing named goes by itself, everything that goes is on record and can come back. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Savepoint, Snapshot } from '../src/index.ts'
import { Workspace } from './support/workspace.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let workspace: Workspace
let savepoint: Savepoint
let nowMs: number

beforeEach(async () => {
  workspace = new Workspace()
  nowMs = Date.now()
  savepoint = await workspace.open({ now: () => nowMs })
})
afterEach(() => workspace.remove())

/** A snapshot of a state of its own. */
async function take(content: string, options: Parameters<Savepoint['snapshot']>[0] = {}): Promise<Snapshot> {
  workspace.write('file', content)
  return savepoint.snapshot(options)
}

const ids = () => savepoint.snapshots().map(snapshot => snapshot.id)
const contentOf = (ref: string) => savepoint.read(ref, 'file').toString()

test('N1, N4 prune drops only what a rule names, shows every decision, is on record, and can be undone', async () => {
  const manual = await take('m')
  const labelled = await take('l', { type: 'interval', label: 'keep me' })
  const tagged = await take('t', { type: 'interval' })
  savepoint.tag('v1', tagged.id)
  for (let i = 0; i < 15; i++) await take(`i${i}`, { type: 'interval' })
  await take('head', { type: 'idle' })
  const before = ids()
  const dry = await savepoint.prune({ dryRun: true })
  expect(ids()).toEqual(before)
  const { decisions, operation } = await savepoint.prune()
  expect(decisions.map(({ keep, rule }) => ({ keep, rule }))).toEqual(
    dry.decisions.map(({ keep, rule }) => ({ keep, rule })),
  )
  expect(decisions.every(({ rule }) => rule.length > 0)).toBe(true)
  expect(ids()).toHaveLength(before.length - 5)
  expect(ids()).toEqual(expect.arrayContaining([manual.id, labelled.id, tagged.id]))
  expect(operation).toMatchObject({ kind: 'prune', summary: expect.stringMatching(/5 snapshots.*ring of auto_max/) })
  expect(savepoint.operations().at(-1)!.id).toBe(operation!.id)
  // log shows the tree without gaps.
  const log = savepoint.log()
  expect(log.filter(node => node.shownParent === undefined)).toHaveLength(1)
  await savepoint.undo()
  expect(ids()).toEqual(before)
  await savepoint.redo()
  expect(ids()).toHaveLength(before.length - 5)
})

test('prune again, after an earlier one, still thins: what lost its neighbours is no leaf', async () => {
  await take('root')
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 12; i++) await take(`r${round} i${i}`, { type: 'interval' })
    await savepoint.prune()
    expect(savepoint.snapshots().filter(snapshot => snapshot.type === 'interval')).toHaveLength(10)
  }
})

describe('deleting', () => {
  test('is refused for HEAD and for what is tagged; nothing happens then', async () => {
    const first = await take('one')
    const second = await take('two')
    savepoint.tag('release', first.id)
    await expect(savepoint.delete([second.id])).rejects.toMatchObject({
      code: 'snapshot.pinned',
      message: expect.stringMatching(/HEAD/),
    })
    await expect(savepoint.delete([first.id])).rejects.toMatchObject({
      code: 'snapshot.pinned',
      hint: expect.stringMatching(/tag --delete release/),
    })
    await expect(savepoint.compact([first.id, second.id])).rejects.toMatchObject({ code: 'snapshot.pinned' })
    expect(ids()).toEqual([first.id, second.id])
    savepoint.deleteTag('release')
    await savepoint.delete([first.id])
    expect(ids()).toEqual([second.id])
  })

  test('of HEAD is done where the directory is gone, with undo and redo; gc forgets it then', async () => {
    const [first, second] = [await take('one'), await take('two')]
    rmSync(workspace.dir, { recursive: true })
    await savepoint.delete([second.id])
    expect([ids(), savepoint.head().id]).toEqual([[first.id], first.id])
    await savepoint.undo()
    expect([ids(), savepoint.head().id]).toEqual([[first.id, second.id], second.id])
    await savepoint.redo()
    expect(savepoint.head().id).toBe(first.id)
    await savepoint.delete([first.id])
    expect(ids()).toEqual([])
    expect(() => savepoint.head()).toThrow('no snapshot')
    nowMs += 8 * DAY_MS
    expect(await savepoint.gc()).toMatchObject({ forgottenSnapshots: 2 })
    expect((await savepoint.verify()).problems).toEqual([])
  })

  test('keeps it restorable for seven days; then gc frees it, and says that it cannot be undone', async () => {
    const first = await take('one', { label: 'first' })
    await take('two')
    await savepoint.delete(['first'])
    expect(() => savepoint.find('first')).toThrow(/Cannot find/)
    nowMs += 6.9 * DAY_MS
    expect((await savepoint.gc()).forgottenSnapshots).toBe(0)
    expect(contentOf(first.id)).toBe('one')
    await savepoint.undo()
    expect(contentOf('first')).toBe('one')
    await savepoint.delete(['first'])
    nowMs += 7.1 * DAY_MS
    const { forgottenSnapshots, removedObjects } = await savepoint.gc()
    expect([forgottenSnapshots, removedObjects > 0]).toEqual([1, true])
    expect(() => savepoint.read(first.id, 'file')).toThrow(/Cannot find snapshot/)
    await expect(savepoint.undo()).rejects.toMatchObject({ code: 'operation.none' })
    expect(savepoint.operations().map(operation => operation.kind)).toEqual(['delete', 'gc', 'undo', 'delete', 'gc'])
    expect((await savepoint.verify()).problems).toEqual([])
  })

  test('what an operation can still undo survives gc, even when its snapshot is deleted', async () => {
    await take('one', { label: 'one' })
    await take('two')
    workspace.write('file', 'live edit')
    const { safety } = await savepoint.rollback('one')
    await savepoint.delete([safety!.id])
    savepoint.operations()
    nowMs += 8 * DAY_MS
    await savepoint.gc()
    await savepoint.undo()
    expect(workspace.read('file')).toBe('live edit')
    expect(savepoint.head()).toBeDefined()
    await savepoint.snapshot({ label: 'goes on' })
    expect(savepoint.head().parent).toBeDefined()
  })

  test('a deleted snapshot that is HEAD after a rollback to it is not forgotten', async () => {
    const first = await take('one')
    await take('two')
    await savepoint.delete([first.id])
    await savepoint.rollback(first.id)
    nowMs += 8 * DAY_MS
    await savepoint.gc()
    expect(savepoint.head().id).toBe(first.id)
  })
})

describe('compacting', () => {
  test('what was compacted before is older than what was made from it: the newest state stays', async () => {
    for (const label of ['a', 's1', 's2', 's3']) {
      workspace.write('f', label)
      await savepoint.snapshot({ label })
    }
    await savepoint.compact(['s1', 's2'], { label: 'j' })
    const { snapshot } = await savepoint.compact(['j', 's3'], { label: 'k' })
    expect([savepoint.read(snapshot.id, 'f').toString(), savepoint.head().id]).toEqual(['s3', snapshot.id])
    expect((await savepoint.status()).changes).toEqual([])
    await savepoint.undo()
    expect(savepoint.head().label).toBe('s3')
  })

  test('N3 keeps the newest tree and resurrects nothing', async () => {
    workspace.write('gone', 'deleted in between')
    await take('one', { label: 'a' })
    rmSync(workspace.at('gone'))
    await take('two', { label: 'b' })
    await take('three', { label: 'c' })
    const { snapshot } = await savepoint.compact(['a', 'b'], { label: 'ab' })
    expect(contentOf('ab')).toBe('two')
    expect(() => savepoint.read('ab', 'gone')).toThrow()
    await savepoint.rollback('ab')
    expect([workspace.read('file'), workspace.read('gone')]).toEqual(['two', undefined])
    await savepoint.undo()
    await savepoint.undo()
    expect(savepoint.snapshots().map(one => one.label)).toEqual(['a', 'b', 'c'])
    expect(savepoint.read('a', 'gone').toString()).toBe('deleted in between')
    expect(ids()).not.toContain(snapshot.id)
  })

  test('moves HEAD, tags and children along, both ways', async () => {
    const [a, b] = [await take('one'), await take('two')]
    savepoint.tag('t', b.id)
    const { snapshot } = await savepoint.compact([a.id, b.id])
    expect([savepoint.head().id, savepoint.tags().get('t')]).toEqual([snapshot.id, snapshot.id])
    const child = await take('three')
    expect(child.parent).toBe(snapshot.id)
    await savepoint.undo()
    expect([savepoint.tags().get('t'), savepoint.find(child.id).parent]).toEqual([b.id, b.id])
    expect(savepoint.head().id).toBe(child.id)
  })

  test('undone long ago cannot be redone after gc: nothing points to what is gone', async () => {
    await take('one', { label: 'a' })
    await take('two', { label: 'b' })
    await savepoint.compact(['a', 'b'])
    await savepoint.undo()
    nowMs += 8 * DAY_MS
    await savepoint.gc()
    await expect(savepoint.redo()).rejects.toMatchObject({ code: 'operation.none' })
    expect([contentOf('a'), contentOf('b'), savepoint.head().label]).toEqual(['one', 'two', 'b'])
  })
})

test('tags: moving, deleting and undoing; after gc a tag never names what is gone', async () => {
  const [a, b] = [await take('one'), await take('two')]
  savepoint.tag('t', a.id)
  savepoint.tag('t', b.id)
  await savepoint.undo()
  expect(savepoint.tags().get('t')).toBe(a.id)
  await savepoint.redo()
  await savepoint.delete([a.id])
  nowMs += 8 * DAY_MS
  await savepoint.gc()
  await savepoint.undo().catch(error => expect(error.code).toBe('operation.none'))
  for (const id of savepoint.tags().values()) expect(savepoint.find(id)).toBeDefined()
})

test('manual_max refuses one more with a hint, and drops none', async () => {
  writeFileSync(join(workspace.home, 'config.yaml'), 'snapshots:\n  retention:\n    manual_max: 2\n')
  savepoint = await workspace.open()
  const first = await take('one')
  await take('two', { label: 'named' })
  await expect(take('three')).rejects.toMatchObject({ code: 'pool.full', hint: expect.stringContaining(first.id) })
  expect(ids()).toHaveLength(2)
  await take('auto', { type: 'interval' })
  await savepoint.delete([first.id])
  await take('three')
})

test('N4 operations list every mutating verb, oldest first', async () => {
  const [a, b, c] = [await take('one'), await take('two'), await take('three')]
  savepoint.tag('t', a.id)
  savepoint.deleteTag('t')
  await savepoint.rollback(b.id)
  await savepoint.revert('file', { from: c.id })
  await savepoint.undo()
  await savepoint.redo()
  await savepoint.compact([a.id, b.id])
  await savepoint.delete([c.id])
  await savepoint.gc()
  await savepoint.purge('file')
  expect(savepoint.operations().map(operation => operation.kind)).toEqual([
    'tag',
    'tag',
    'rollback',
    'revert',
    'undo',
    'redo',
    'compact',
    'delete',
    'gc',
    'purge',
  ])
})

test('N2 create, delete, compact, undo, redo, gc and reopen in any order never overwrite a named snapshot', async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('take' as const), name: fc.constantFrom('a', 'b', 'c') }) },
    fc.record({ do: fc.constantFrom('delete' as const, 'compact' as const), pick: fc.nat() }),
    fc.record({
      do: fc.constantFrom('undo' as const, 'redo' as const, 'reopen' as const, 'prune' as const, 'gc' as const),
    }),
  )
  let serial = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async steps => {
      const known = new Map<string, string>()
      for (const one of steps) {
        if (one.do === 'take') {
          const content = `content ${serial++}`
          const taken = await take(content, { label: one.name })
          expect(known.has(taken.id)).toBe(false)
          known.set(taken.id, content)
          const sameName = savepoint.snapshots().filter(({ label }) => label === one.name)
          if (sameName.length === 1) expect(contentOf(one.name)).toBe(content)
          else expect(() => contentOf(one.name)).toThrow(`it fits ${sameName.length}`)
        } else await attempt(one)
        // Every snapshot ever made still has its own content, deleted or not: nothing was reused.
        for (const [id, content] of known) expect(contentOf(id)).toBe(content)
      }
    }),
    { numRuns: 8 },
  )
  expect((await savepoint.verify()).problems).toEqual([])
})

async function attempt(step: {
  do: 'delete' | 'compact' | 'undo' | 'redo' | 'prune' | 'gc' | 'reopen'
  pick?: number
}): Promise<void> {
  const all = ids()
  const pick = (step.pick ?? 0) % Math.max(1, all.length)
  try {
    if (step.do === 'delete') await savepoint.delete([all[pick] ?? 'none'])
    else if (step.do === 'compact') await savepoint.compact(all.slice(pick, pick + 2))
    else if (step.do === 'reopen') savepoint = await workspace.open({ now: () => nowMs })
    else await savepoint[step.do]()
  } catch (error) {
    expect(['snapshot.pinned', 'operation.none', 'usage', 'snapshot.unknown']).toContain(
      (error as { code: string }).code,
    )
  }
}

describe('a snapshot whose parent is deleted', () => {
  const marks = { added: 0, modified: 1, deleted: 1 }

  /** a; then b without one of its files; then c with an edit. */
  async function threeSnapshots() {
    workspace.write('edited', 'one')
    workspace.write('goes')
    const a = await savepoint.snapshot({ label: 'a' })
    workspace.sh('rm goes')
    const b = await savepoint.snapshot({ label: 'b' })
    workspace.write('edited', 'two')
    await savepoint.snapshot({ label: 'c' })
    return { a, b }
  }

  test('stands on the one before it, with counts against that: in every listing, and after gc', async () => {
    const { a, b } = await threeSnapshots()
    const expectShown = () => {
      const shown = { parent: a.id, counts: marks }
      expect(savepoint.log()[0]!.snapshot).toMatchObject(shown)
      expect(savepoint.snapshots().at(-1)).toMatchObject(shown)
      expect(savepoint.find('c')).toMatchObject(shown)
      expect(savepoint.head()).toMatchObject(shown)
      const { from, changes } = savepoint.snapshotChanges('c')
      expect([from, changes.map(({ path }) => path).sort()]).toEqual([a.id, ['edited', 'goes']])
    }
    expect(savepoint.find('c')).toMatchObject({ parent: b.id, counts: { added: 0, modified: 1, deleted: 0 } })
    await savepoint.delete(['b'])
    expectShown()
    expect((await savepoint.history('edited')).versions.map(({ status }) => status)).toEqual(['new', 'modified'])
    await savepoint.undo()
    expect(savepoint.find('c').parent).toBe(b.id)
    await savepoint.redo()
    nowMs += 8 * DAY_MS
    expect((await savepoint.gc()).forgottenSnapshots).toBe(1)
    expectShown()
  })
})

describe('redo does not take away what has become HEAD since', () => {
  test('by deleting it again: refused, as delete refuses it', async () => {
    workspace.write('f', 'one')
    const a = await savepoint.snapshot({ label: 'a' })
    workspace.write('f', 'two')
    // Something for undo and redo to do: `f` they leave alone, because it is edited below.
    workspace.write('g', 'g')
    await savepoint.snapshot({ label: 'a2' })
    await savepoint.rollback('a')
    workspace.write('f', 'three')
    await savepoint.snapshot({ label: 'b' })
    await savepoint.delete(['a'])
    await savepoint.undo()
    await savepoint.undo()
    await savepoint.redo()
    expect(savepoint.head().id).toBe(a.id)
    await expect(savepoint.redo()).rejects.toMatchObject({ code: 'snapshot.pinned', hint: expect.any(String) })
    expect(savepoint.head()).toMatchObject({ id: a.id, deletedAt: undefined })
  })

  test('by compacting it again: HEAD is then what it was compacted into', async () => {
    for (const label of ['a', 'a2', 'b']) {
      workspace.write('f', label)
      if (label === 'b') workspace.write('g', 'g')
      await savepoint.snapshot({ label })
    }
    await savepoint.rollback('a')
    workspace.write('f', 'c')
    await savepoint.snapshot({ label: 'c' })
    const { snapshot } = await savepoint.compact(['a', 'a2'])
    await savepoint.undo()
    await savepoint.undo()
    await savepoint.redo()
    await savepoint.redo()
    expect(savepoint.head()).toMatchObject({ id: snapshot.id, deletedAt: undefined })
  })
})
