/** Random tree → snapshot → random mischief → rollback, undo, redo: equal in everything, as read by node:fs and getfattr. */
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { idToHex } from '../src/index.ts'
import { fullImageOf } from './support/full-image.ts'
import { buildOps, changeOps } from './support/tree-arbitrary.ts'
import { differences } from './support/tree-image.ts'
import { applyOps } from './support/tree-ops.ts'
import { inWorkspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 25)

/** Until files are older than the tick in which a capture reads everything again, so that the stat cache is believed. */
const age = () => pause(70)

const afterRoot = (operation: { detail: Record<string, unknown> } | undefined) => operation?.detail.after_root

test('F1 F2 F4 F5 F8 R6 rollback gives the tree back, undo and redo walk between the two', async () => {
  await fc.assert(
    fc.asyncProperty(buildOps(), changeOps(), (build, change) =>
      inWorkspace(async (ws, sp) => {
        applyOps(ws.dir, build)
        const before = fullImageOf(ws.dir)
        await age()
        const snapshot = await sp.snapshot()
        applyOps(ws.dir, change)
        const changed = fullImageOf(ws.dir)

        const rolled = await sp.rollback(snapshot.id)
        expect(rolled.leftAlone).toEqual([])
        expect(differences(before, fullImageOf(ws.dir))).toEqual([])
        if (rolled.operation) {
          for (let round = 0; round < 2; round++) {
            await sp.undo()
            expect(differences(changed, fullImageOf(ws.dir))).toEqual([])
            await sp.redo()
            expect(differences(before, fullImageOf(ws.dir))).toEqual([])
          }
          expect(afterRoot(sp.operations().at(-1))).toBe(idToHex(snapshot.root))
        } else expect(differences(before, changed)).toEqual([])
        expect((await sp.snapshot()).root).toBe(snapshot.root)
        expect((await sp.verify()).problems).toEqual([])
      }),
    ),
    { numRuns: RUNS },
  )
})

test('R6 jumps among several snapshots land on the exact tree and the exact root id', async () => {
  await fc.assert(
    fc.asyncProperty(
      buildOps(),
      fc.array(changeOps(), { minLength: 2, maxLength: 3 }),
      fc.array(fc.nat(3), { minLength: 3, maxLength: 5 }),
      (build, changes, jumps) =>
        inWorkspace(async (ws, sp) => {
          const states: { id: string; root: string; image: Map<string, string> }[] = []
          for (const ops of [build, ...changes]) {
            applyOps(ws.dir, ops)
            const image = fullImageOf(ws.dir)
            await age()
            const { id, root } = await sp.snapshot()
            states.push({ id, root, image })
          }
          for (const jump of jumps) {
            const state = states[jump % states.length]!
            await sp.rollback(state.id)
            expect(differences(state.image, fullImageOf(ws.dir))).toEqual([])
            expect(sp.head().id).toBe(state.id)
            expect((await sp.status()).counts).toEqual({ added: 0, modified: 0, deleted: 0 })
          }
          const last = states[jumps.at(-1)! % states.length]!
          expect((await sp.snapshot()).root).toBe(last.root)
          expect((await sp.verify()).problems).toEqual([])
        }),
    ),
    { numRuns: Math.ceil(RUNS / 2) },
  )
})
