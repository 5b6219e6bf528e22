/** `runs`: each with what became of it. */
import type { Operation } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { operationsInOrder, runOperations, withOuterRuns } from './operations.ts'
import type { ListedRun, RunTakenBack } from './run-results.ts'
import { continuedOf, isInterrupted } from './run-state.ts'

export function listRuns(ctx: Context): ListedRun[] {
  const takenBack = takenBackIn(operationsInOrder(ctx.db))
  return ctx.db.runs().map(run => ({
    ...run,
    isInterrupted: isInterrupted(ctx, run),
    continues: continuedOf(ctx, run.id),
    takenBack: takenBack(run.id),
  }))
}

/** What a run did that another one had started goes back with that. */
function takenBackIn(operations: readonly Operation[]): (run: string) => RunTakenBack | undefined {
  const runs = runOperations(operations)
  const rollbacks = Map.groupBy(operations.filter(isStandingRollback), ({ detail }) => detail.run)
  const order = new Map(operations.map(({ id }, i) => [id, i]))
  const undo = new Map(operations.flatMap(({ kind, id, detail }) => (kind === 'undo' ? [[detail.step_of, id]] : [])))
  return run => {
    const around = [...withOuterRuns(runs, run)].flatMap(id => runs.get(id) ?? [])
    const undone = around.find(({ state }) => state === 'undone' || state === 'past')
    if (undone) return { operation: undo.get(undone.id) ?? undone.id, kind: 'undo', partly: false }
    // What was taken back while it went on, it may have done again.
    const later = around.flatMap(own =>
      (rollbacks.get(own.detail.run) ?? []).filter(({ id }) => order.get(id)! > order.get(own.id)!),
    )
    const by = later.findLast(({ detail }) => detail.partly !== true) ?? later.at(-1)
    return by && { operation: by.id, kind: 'rollback', partly: by.detail.partly === true }
  }
}

const isStandingRollback = ({ kind, state, detail }: Operation): boolean =>
  kind === 'rollback' && detail.run !== undefined && (state === 'done' || state === 'fixed')
