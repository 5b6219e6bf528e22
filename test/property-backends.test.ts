/**
 * Snapshots by several backends in one timeline on btrfs, read at once or later, with rollbacks, retention and collections in
 * between: each is the state that was there when it was taken, byte for byte, as long as it is listed.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Savepoint, SavepointError } from '../src/index.ts'
import { onBtrfs, useDisk } from './support/backend-scene.ts'
import { fullImageOf } from './support/full-image.ts'
import { gated } from './support/machine.ts'
import { buildOps, changeOps } from './support/tree-arbitrary.ts'
import { differences } from './support/tree-image.ts'
import { applyOps, type TreeOp } from './support/tree-ops.ts'
import type { Workspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 5)
/** Always the same stories, unless others are asked for: they are also about time, which no seed repeats. */
const SEED = Number(process.env.SAVEPOINT_TEST_SEED ?? 1)
const scene = onBtrfs()
useDisk(scene)

type Image = Map<string, string>
type Step =
  | { do: 'change'; ops: TreeOp[] }
  | { do: 'snapshot'; backend: 'btrfs' | 'cas' | 'archive'; leaveUnread: boolean }
  | { do: 'rollback' | 'delete' | 'compare'; which: number }
  | { do: 'undo' | 'redo' | 'gc' | 'read' }
  | { do: 'prune'; keep: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: changeOps().map(ops => ({ do: 'change', ops }) as const) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('snapshot' as const),
      backend: fc.constantFrom('btrfs', 'btrfs', 'cas', 'archive'),
      leaveUnread: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('rollback', 'delete', 'compare'), which: fc.nat(100) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('undo', 'redo', 'gc', 'read') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('prune' as const), keep: fc.integer({ min: 1, max: 4 }) }) },
)

class Story {
  readonly told: string[] = []
  private readonly space: Workspace
  private readonly images = new Map<string, Image>()

  constructor(space: Workspace) {
    this.space = space
  }

  async carryOut(steps: readonly Step[]): Promise<void> {
    for (const each of steps) {
      this.told.push(
        each.do === 'change' ? `change ${each.ops.map(({ op, path }) => `${op} ${path}`)}` : JSON.stringify(each),
      )
      await this.take(each)
    }
    await this.with({}, async savepoint => {
      for (const { id } of savepoint.snapshots()) await this.compare(savepoint, id)
      expect((await savepoint.verify()).problems, this.told.join('\n')).toEqual([])
    })
  }

  private async take(each: Step): Promise<void> {
    switch (each.do) {
      case 'change':
        return applyOps(this.space.dir, each.ops)
      case 'snapshot':
        return this.with(each, async savepoint => {
          const { id } = await savepoint.snapshot()
          // The same state as before is the same snapshot, unless a filesystem keeps it.
          this.images.set(id, fullImageOf(this.space.dir))
        })
      case 'rollback':
        return this.onOne(each.which, async (savepoint, id) => {
          await savepoint.rollback(id)
          this.isLike(id, fullImageOf(this.space.dir))
        })
      case 'delete':
        return this.onOne(each.which, async (savepoint, id) => {
          if (savepoint.head()?.id !== id) await savepoint.delete([id])
        })
      case 'compare':
        return this.onOne(each.which, (savepoint, id) => this.compare(savepoint, id))
      case 'undo':
      case 'redo':
        return this.with({}, async savepoint => {
          const walk = each.do === 'undo' ? savepoint.undo() : savepoint.redo()
          await walk.catch((error: SavepointError) => {
            if (error.code !== 'operation.none') throw error
          })
        })
      case 'gc':
        return this.with({}, async savepoint => void (await savepoint.gc()))
      case 'read':
        return this.with({}, async () => undefined)
      case 'prune':
        return this.with({}, async savepoint => void (await savepoint.prune({ keep: each.keep })))
    }
  }

  private async with(
    options: { backend?: 'btrfs' | 'cas' | 'archive'; leaveUnread?: boolean },
    work: (savepoint: Savepoint) => Promise<unknown>,
  ): Promise<void> {
    const { backend, leaveUnread } = options
    const savepoint = await this.space.open({ backend, leaveUnread })
    try {
      await work(savepoint)
    } catch (cause) {
      throw new Error(`${(cause as Error).message}\n${this.told.join('\n')}`, { cause })
    } finally {
      savepoint.close()
    }
  }

  private onOne(which: number, work: (savepoint: Savepoint, id: string) => Promise<unknown>): Promise<void> {
    return this.with({}, async savepoint => {
      const known = savepoint.snapshots().filter(({ id }) => this.images.has(id))
      if (known.length > 0) await work(savepoint, known[which % known.length]!.id)
    })
  }

  private async compare(savepoint: Savepoint, id: string): Promise<void> {
    if (!this.images.has(id)) return
    const copy = join(this.space.base, 'copy')
    await savepoint.rollback(id, { to: copy })
    this.isLike(id, fullImageOf(copy))
    rmSync(copy, { recursive: true })
  }

  private isLike(id: string, image: Image): void {
    expect(differences(this.images.get(id)!, image), `${id}\n${this.told.join('\n')}`).toEqual([])
  }
}

gated(scene.possible, scene.needs, 'each snapshot stays what it was', async () => {
  await fc.assert(
    fc.asyncProperty(buildOps(), fc.array(step, { minLength: 5, maxLength: 25 }), async (build, steps) => {
      const space = scene.make()
      mkdirSync(space.home)
      writeFileSync(join(space.home, 'config.yaml'), 'snapshots: { retention: { native_max: 2, max_count: 2 } }\n')
      try {
        applyOps(space.dir, build)
        await new Story(space).carryOut(steps)
      } finally {
        scene.remove(space)
      }
    }),
    { seed: SEED, numRuns: RUNS, endOnFailure: process.env.SAVEPOINT_TEST_SHRINK === undefined },
  )
})
