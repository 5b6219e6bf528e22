/** `runs`: each with what became of it. */
import type { Operation, Run } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { operationsInOrder, runOperations, withOuterRuns } from './operations.ts'
import type { ListedRun, RunTakenBack } from './run-results.ts'
import { continuedOf, isInterrupted } from './run-state.ts'

export function listRuns(ctx: Context): ListedRun[] {
  const takenBack = takenBackIn(operationsInOrder(ctx.db), lineage(ctx))
  return ctx.db.runs().map(run => ({
    ...run,
    isInterrupted: isInterrupted(ctx, run),
    continues: continuedOf(ctx, run.id),
    takenBack: takenBack(run),
  }))
}

/** Whether the state `of` came after the state `id`, and has what that has. */
type Lineage = (of: string, id: string) => boolean

function lineage(ctx: Context): Lineage {
  const parents = new Map(ctx.db.snapshots(true).map(({ id, parent }) => [id, parent]))
  return (of, id) => {
    for (let at: string | undefined = of; at !== undefined; at = parents.get(at)) if (at === id) return true
    return false
  }
}

/** What a run did that another one had started goes back with that. */
function takenBackIn(operations: readonly Operation[], isAfter: Lineage): (run: Run) => RunTakenBack | undefined {
  const runs = runOperations(operations)
  const rollbacks = operations.filter(isStandingRollback)
  const order = new Map(operations.map(({ id }, i) => [id, i]))
  const undo = new Map(operations.flatMap(({ kind, id, detail }) => (kind === 'undo' ? [[detail.step_of, id]] : [])))
  return ({ id, before, after }) => {
    const around = [...withOuterRuns(runs, id)].flatMap(outer => runs.get(outer) ?? [])
    const undone = around.find(({ state }) => state === 'undone' || state === 'past')
    let takenBack: RunTakenBack | undefined = undone && {
      ...{ operation: undo.get(undone.id) ?? undone.id, kind: 'undo', partly: false },
    }
    const since = order.get(takenBack?.operation ?? '') ?? 0
    for (const operation of rollbacks.filter(each => order.get(each.id)! > since)) {
      const by = (partly: boolean): RunTakenBack => ({ operation: operation.id, kind: 'rollback', partly })
      // What was taken back while it went on, it may have done again.
      const isLater = (own: Operation) => order.get(operation.id)! > order.get(own.id)!
      const { detail, headBefore, headAfter } = operation
      if (around.some(own => own.detail.run === detail.run && isLater(own))) {
        if (!(detail.partly === true && takenBack?.partly === false)) takenBack = by(detail.partly === true)
      } else if (detail.run === undefined && headAfter !== undefined && headAfter !== headBefore) {
        // As a whole, to a state that has what it did, or has not.
        const isLost = after !== undefined && after !== before && runs.has(id) && isLater(runs.get(id)!)
        if (isLost) takenBack = isAfter(headAfter, after) ? undefined : by(false)
      }
    }
    return takenBack
  }
}

const isStandingRollback = ({ kind, state }: Operation): boolean =>
  kind === 'rollback' && (state === 'done' || state === 'fixed')
