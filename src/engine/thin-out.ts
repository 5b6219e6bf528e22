/** What retention does with a timeline: which snapshots may go, and the going of those that nobody asked for. */

import type { Operation } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { newOperation } from './new-operation.ts'
import type { PruneDecision } from './results.ts'
import { decideRetention, isAutomatic, type RetentionInput } from './retention.ts'
import { type Find, shownParent } from './shown-snapshot.ts'

type Limits = Pick<RetentionInput, 'keep' | 'run'>

/** `without`: ids of those that are about to be forgotten, because they are lost. */
export const decide = (ctx: Context, limits: Limits = {}, without?: ReadonlySet<string>): PruneDecision[] => {
  const all = new Map(ctx.db.snapshots(true).map(snapshot => [snapshot.id, snapshot]))
  for (const id of without ?? []) all.set(id, { ...all.get(id)!, deletedAt: 0 })
  const [operations, unended] = [ctx.db.operations(), ctx.db.unendedRuns()]
  return decideRetention({
    snapshots: ctx.db.snapshots().filter(({ id }) => !without?.has(id)),
    parentOf: snapshot => shownParent(id => all.get(id), snapshot),
    head: headWithout(ctx.db.head, id => all.get(id), without),
    tagged: new Set(ctx.db.tags().values()),
    operations,
    unended: new Set(unended.flatMap(({ before }) => before ?? [])),
    undoable: new Set([...unended.map(({ id }) => id), ...operations.flatMap(undoableRun)]),
    retention: ctx.config.snapshots.retention,
    now: ctx.now(),
    ...limits,
  })
}

const undoableRun = ({ kind, state, detail }: Operation): string[] =>
  kind === 'run' && (state === 'done' || state === 'undone') ? [detail.run as string] : []

function headWithout(head: string | undefined, find: Find, without: ReadonlySet<string> = new Set()) {
  let at = head
  while (at !== undefined && without.has(at)) at = find(at)?.parent
  return at
}

/**
 * When a snapshot was taken that nobody asked for: what was taken like that beyond what its pool keeps goes. No step that
 * `undo` would take back, but in the log of events and among the operations, with the rule, and kept for seven days as all that is deleted. Called under the
 * timeline's lock.
 */
export function thinOut(ctx: Context): void {
  const going = decide(ctx).filter(({ keep, snapshot }) => !keep && isAutomatic(snapshot))
  if (going.length === 0) return
  const at = ctx.now()
  const ids = going.map(({ snapshot }) => snapshot.id)
  const rule = [...new Set(going.map(each => each.rule))].join('; ')
  ctx.db.transaction(() => {
    ctx.db.setDeleted(ids, at)
    ctx.db.addOperation({
      ...newOperation(ctx, 'retention', `thinned out ${ids.join(', ')}`, { snapshots: ids }),
      ...{ state: 'fixed', rule },
    })
    for (const { snapshot, rule } of going)
      ctx.db.log.add({ kind: 'snapshot', what: 'removed', at, run: snapshot.run, ref: snapshot.id, note: rule })
  })
}
