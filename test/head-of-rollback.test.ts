/** Where HEAD stands after a run was taken back by `rollback`: at the state before it, where nothing is left of what differs. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { runVerbs } from './support/engine-process.ts'
import { fullImageOf } from './support/full-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  space.write('a', 'a1\n')
  space.write('d/x', 'x\n')
  savepoint = await space.open()
})
afterEach(() => space.remove())

const script = 'echo a2 > a; rm -r d; mkdir new; echo n > new/y'
const run = async (onFailure?: 'rollback') =>
  (await savepoint.run({ command: ['sh', '-c', `${script}; exit 6`], onFailure })).run!
const head = () => savepoint.head().id
const left = async () => (await savepoint.changes()).changes.map(({ path }) => path)
const files = () => fullImageOf(space.dir)

it('undo of it and redo go between the two states, exactly', async () => {
  const before = files()
  const made = await run()
  const after = files()
  await savepoint.rollback(made.id)
  expect([head(), await left(), files()]).toEqual([made.before, [], before])
  await savepoint.undo()
  expect([head(), await left(), files()]).toEqual([made.after, [], after])
  await savepoint.redo()
  expect([head(), await left(), files()]).toEqual([made.before, [], before])
  await savepoint.undo()
  await savepoint.undo()
  expect([head(), await left(), files()]).toEqual([made.before, [], before])
  // What comes next descends from there.
  const next = await run()
  expect(savepoint.find(next.before!).parent).toBe(made.before)
})

it('when it failed, too; and what was edited in between comes back with undo', async () => {
  const made = await run('rollback')
  expect([head(), await left()]).toEqual([made.before, []])
  await savepoint.undo()
  expect(head()).toBe(made.after)
  space.write('new/mine', 'mine\n')
  await savepoint.rollback(made.id)
  expect([await left(), space.read('new/mine')]).toEqual([expect.arrayContaining(['new/mine']), 'mine\n'])
  expect(head()).not.toBe(made.before)
  space.sh('rm -r new')
  await savepoint.undo()
  expect([space.read('a'), space.read('new/mine')]).toEqual(['a2\n', undefined])
})

it('also in parts, and by hand', async () => {
  const made = await run()
  await savepoint.rollback(made.id, { paths: ['a', 'd'] })
  expect(await left()).toEqual(['a', 'd/x'])
  expect(head()).not.toBe(made.before)
  await savepoint.rollback(made.id)
  expect([head(), await left()]).toEqual([made.before, []])
  space.sh('cp -a . ../copy')
  const again = await run()
  space.sh('rm -r a new; cp -a ../copy/a ../copy/d .')
  const { changes } = await savepoint.rollback(again.id)
  expect([changes, head(), await left()]).toEqual([[], again.before, []])
})

it('when it is completed by another process after it was killed', async () => {
  const made = await run()
  expect((await runVerbs(space, [['rollback', made.id]], { failpoint: 'restore:place' })).signal).toBe('SIGKILL')
  savepoint = await space.open()
  expect(space.notices.join('\n')).toContain('completed a rollback that was interrupted')
  expect([head(), await left()]).toEqual([made.before, []])
})

it('not where somebody has deleted that snapshot', async () => {
  const made = await run()
  await savepoint.delete([made.before!])
  await savepoint.rollback(made.id)
  expect([space.read('a'), head()]).toEqual(['a1\n', made.after])
})
