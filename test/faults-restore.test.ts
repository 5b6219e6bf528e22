/** R13: kill -9 at every step of rollback, undo and redo. The next command completes it by itself, and nothing is lost. */
import { describe, expect, test } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { runVerbs, type Verb } from './support/engine-process.ts'
import {
  expectIntact,
  expectNoLeftovers,
  type FaultScene,
  faultScene,
  homeFiles,
  type Image,
} from './support/fault-scene.ts'
import { differences, imageOf } from './support/tree-image.ts'

/** Before the journal is written nothing has happened; from it on the operation is completed. */
const before = ['capture:before-root', 'capture:before-commit', 'capture:committed', 'capture:cached']
const beforeSafety = [
  'store:before-sync',
  'store:before-index',
  'store:after-index',
  'snapshot:before-row',
  'snapshot:row',
  'durable:written',
  'durable:written#2',
]
const completed = [
  'restore:journal',
  'restore:stage',
  'restore:stage',
  'restore:staged',
  'restore:displace',
  'restore:displaced',
  'restore:displace#3',
  'restore:displaced#3',
  'restore:place',
  'restore:place#2',
  'restore:place#4',
  'restore:displaced#4',
  'restore:placed',
  'restore:rescued',
  'restore:cleaned',
  'restore:synced',
  'capture:committed#2',
  'restore:operation',
  // What was done is being taken back, because something failed.
  ['restore:place#4@EIO', 'restore:reverse#2'].join(),
]

/** Tests run side by side, each in a scene of its own. */
async function inScene(work: (scene: FaultScene) => Promise<void>): Promise<void> {
  const scene = await faultScene()
  try {
    await work(scene)
  } finally {
    scene.workspace.remove()
  }
}

async function kill({ workspace }: FaultScene, failpoint: string, verb: Verb): Promise<void> {
  const { signal, error } = await runVerbs(workspace, [verb], { failpoint })
  expect({ failpoint, signal, error }).toEqual({ failpoint, signal: 'SIGKILL', error: undefined })
}

const treeOf = ({ workspace }: FaultScene) => imageOf(workspace.dir)
const expectTree = (scene: FaultScene, image: Image) => expect(differences(image, treeOf(scene))).toEqual([])

async function expectUndoAndRedo(scene: FaultScene, savepoint: Savepoint, undone: Image, done: Image): Promise<void> {
  await savepoint.undo()
  expectTree(scene, undone)
  await savepoint.redo()
  expectTree(scene, done)
}

describe('rollback killed at', () => {
  test.concurrent.each([...before, ...beforeSafety])('%s: nothing has happened', failpoint =>
    inScene(async scene => {
      await kill(scene, failpoint, ['rollback', 'one'])
      expectTree(scene, scene.live)
      const savepoint = await scene.workspace.open()
      expectTree(scene, scene.live)
      expect(scene.workspace.notices).toEqual([])
      await savepoint.rollback('one')
      expectTree(scene, scene.one)
      await expectUndoAndRedo(scene, savepoint, scene.live, scene.one)
      await expectIntact(savepoint, scene)
      expectNoLeftovers(scene.workspace)
    }),
  )

  test.concurrent.each(completed)('%s: the next command completes it', failpoint =>
    inScene(async scene => {
      await kill(scene, failpoint, ['rollback', 'one'])
      const savepoint = await scene.workspace.open()
      expectTree(scene, scene.one)
      if (failpoint !== 'restore:operation')
        expect(scene.workspace.notices.join()).toMatch(/completed a rollback that was interrupted/)
      expect(savepoint.operations().filter(operation => operation.kind === 'rollback')).toHaveLength(1)
      expect(savepoint.head().label).toBe('one')
      expectNoLeftovers(scene.workspace)
      await expectUndoAndRedo(scene, savepoint, scene.live, scene.one)
      await expectIntact(savepoint, scene)
    }),
  )
})

test.concurrent('a half-written journal is swept by the next verb that writes, also when it restores nothing', () =>
  inScene(async scene => {
    await kill(scene, 'durable:written#2', ['rollback', 'one'])
    expect(homeFiles(scene.workspace).join('\n')).toMatch(/restore\.json\.tmp-\d/)
    await (await scene.workspace.open()).snapshot()
    expectNoLeftovers(scene.workspace)
  }))

describe('undo killed at', () => {
  test.concurrent.each(completed)('%s: the next command completes it', failpoint =>
    inScene(async scene => {
      await (await scene.workspace.open()).rollback('one')
      await kill(scene, failpoint, ['undo'])
      const savepoint = await scene.workspace.open()
      expectTree(scene, scene.live)
      expectNoLeftovers(scene.workspace)
      // It counts as undone: there is nothing more to undo, and it can be done again.
      await expect(savepoint.undo()).rejects.toMatchObject({ code: 'operation.none' })
      await savepoint.redo()
      expectTree(scene, scene.one)
      await expectIntact(savepoint, scene)
    }),
  )
})

test.concurrent('redo killed in the middle is completed and can be undone again', () =>
  inScene(async scene => {
    const first = await scene.workspace.open()
    await first.rollback('one')
    await first.undo()
    await kill(scene, 'restore:place#2', ['redo'])
    const savepoint = await scene.workspace.open()
    expectTree(scene, scene.one)
    await expectUndoAndRedo(scene, savepoint, scene.live, scene.one)
    await expectIntact(savepoint, scene)
  }))

test.concurrent('a rollback whose recovery is killed again and again is completed in the end (S5)', () =>
  inScene(async scene => {
    await kill(scene, 'restore:place', ['rollback', 'one'])
    for (const failpoint of [
      'capture:committed',
      'snapshot:row',
      'restore:staged',
      'restore:place#2',
      'restore:placed',
      'restore:synced',
    ]) {
      await kill(scene, failpoint, ['snapshots'])
    }
    const savepoint = await scene.workspace.open()
    expectTree(scene, scene.one)
    expectNoLeftovers(scene.workspace)
    await expectUndoAndRedo(scene, savepoint, scene.live, scene.one)
    await expectIntact(savepoint, scene)
  }))

test.concurrent('a path-scoped rollback that was killed touches nothing else', () =>
  inScene(async scene => {
    await kill(scene, 'restore:displace', ['rollback', 'one', { paths: ['swap', 'edited'] }])
    const savepoint = await scene.workspace.open()
    const changed = differences(scene.live, treeOf(scene)).map(line => line.split(':')[0])
    expect(changed).toEqual(['edited', 'swap', 'swap/inside'])
    expect(differences(scene.one, treeOf(scene)).filter(line => /^(swap|edited)/.test(line))).toEqual([])
    await expectUndoAndRedo(scene, savepoint, scene.live, imageOf(scene.workspace.dir))
  }))
