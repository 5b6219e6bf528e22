/** The operations as `undo` and `redo` reach them. */
import type { Operation } from '../model/snapshot.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { isAfterRun } from './new-operation.ts'

export const isUnprotected = ({ detail }: Operation): boolean => detail.unprotected === true

/** Oldest first. A run that was not protected is in the way: nothing older is taken back, or done again, from under it. */
export function reachableOperations(db: TimelineDb): Operation[] {
  const operations = operationsInOrder(db)
  const barrier = operations.findLastIndex(isUnprotected)
  return operations.map((operation, i) =>
    i < barrier && operation.state !== 'fixed' ? { ...operation, state: 'past' } : operation,
  )
}

/** Oldest first: a run that was killed stands where it ended, not where somebody found that out. */
export function operationsInOrder(db: TimelineDb): Operation[] {
  const operations = db.operations()
  if (!operations.some(({ detail }) => 'after_runs' in detail)) return operations
  for (const run of operations.filter(({ kind }) => kind === 'run')) {
    const first = operations.findIndex(operation => isAfterRun(operation, run.detail.run))
    const at = operations.indexOf(run)
    if (first >= 0 && first < at) operations.splice(first, 0, ...operations.splice(at, 1))
  }
  return operations
}

/** The newest before `operation` that could be undone if it were not in the way. */
export const hiddenBehind = (db: TimelineDb, operation: Operation): Operation | undefined =>
  db.operations().findLast(({ seq, state }) => seq < operation.seq && state === 'done')
