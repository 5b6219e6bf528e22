/** The operations as `undo` and `redo` reach them. */
import type { Operation } from '../model/snapshot.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'

export const isUnprotected = ({ detail }: Operation): boolean => detail.unprotected === true

/** Oldest first. A run that was not protected is in the way: nothing older is taken back, or done again, from under it. */
export function reachableOperations(db: TimelineDb): Operation[] {
  const operations = db.operations()
  const barrier = operations.findLastIndex(isUnprotected)
  return operations.map((operation, i) =>
    i < barrier && operation.state !== 'fixed' ? { ...operation, state: 'past' } : operation,
  )
}

/** The newest before `operation` that could be undone if it were not in the way. */
export const hiddenBehind = (db: TimelineDb, operation: Operation): Operation | undefined =>
  db.operations().findLast(({ seq, state }) => seq < operation.seq && state === 'done')
