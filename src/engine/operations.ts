/** The operations as `undo` and `redo` reach them. */
import type { Id } from '../model/entry.ts'
import { idFromHex } from '../model/id.ts'
import type { Operation } from '../model/snapshot.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { isAfterRun } from './new-operation.ts'

export const isUnprotected = ({ detail }: Operation): boolean => detail.unprotected === true

/** Of those that can be reached. A run that was not protected, or whose end was not captured, is stopped at. */
export const nextToUndo = (operations: readonly Operation[]): Operation | undefined =>
  operations.findLast(operation => operation.state === 'done' || isUnprotected(operation))

/**
 * Oldest first. A run that was not protected is in the way: nothing older is taken back, or done again, from under it. What a
 * run did that another one had started went back with that, and comes back with it; so did what a run itself went back to, or
 * what of it somebody took back while it went on. What needs a snapshot that is lost by now is not in the way of others.
 */
export function reachableOperations(db: TimelineDb): Operation[] {
  const operations = operationsInOrder(db)
  const barrier = operations.findLastIndex(isUnprotected)
  const runs = runOperations(operations)
  const isPast = (operation: Operation, i: number): boolean =>
    (i < barrier && operation.state !== 'fixed') ||
    (operation.state === 'done' && isInsideUndone(runs, operation)) ||
    isOfNothing(db, operation)
  return operations.map((operation, i) => (isPast(operation, i) ? { ...operation, state: 'past' } : operation))
}

/** Whether what the next step would put back, with undo or redo, does not exist any more. */
function isOfNothing(db: TimelineDb, { kind, state, detail }: Operation): boolean {
  if (state !== 'done' && state !== 'undone') return false
  const isGone = (id: unknown) => typeof id === 'string' && db.snapshot(id) === undefined
  switch (kind) {
    case 'tag':
      return isGone(state === 'done' ? detail.before : detail.after)
    case 'delete':
    case 'prune':
    case 'retention':
      return isGone((detail.snapshots as string[])[0]) && (detail.snapshots as string[]).every(isGone)
    case 'compact':
      return [...(detail.snapshots as string[]), detail.result].some(isGone)
    case 'import':
      return isGone(detail.snapshot)
    default:
      return false
  }
}

/** By the id of the run. */
export const runOperations = (operations: readonly Operation[]): Map<unknown, Operation> =>
  new Map(operations.flatMap(operation => (operation.kind === 'run' ? [[operation.detail.run, operation]] : [])))

/** The run and those that it was started in, the innermost first. */
export function* withOuterRuns(runs: ReadonlyMap<unknown, Operation>, run: unknown): Generator<string> {
  const seen = new Set<string>()
  for (let at = run; typeof at === 'string' && !seen.has(at); at = runs.get(at)?.detail.inside) {
    seen.add(at)
    yield at
  }
}

/** Also of one that was undone and cannot be redone any more. */
const isInsideUndone = (runs: ReadonlyMap<unknown, Operation>, operation: Operation): boolean =>
  runsOf(operation)
    .flatMap(run => [...withOuterRuns(runs, run)].flatMap(id => runs.get(id) ?? []))
    .some(({ state, seq }) => seq >= operation.seq && (state === 'undone' || state === 'past'))

/** Those that it is a part of, if it was done before they ended. */
function runsOf({ kind, detail }: Operation): unknown[] {
  if (kind === 'run') return [detail.run]
  return kind === 'rollback' || kind === 'revert' ? [detail.inside, detail.run] : []
}

/** The step that took `operation` back, if it is the last one: what it changed is what `redo` does again. */
export function undoneBy(db: TimelineDb, operation: Operation): Operation | undefined {
  const last = db.operations().findLast(({ detail }) => detail.step_of === operation.id)
  return last?.kind === 'undo' ? last : undefined
}

/** Those whose states can still be gone to. */
export function operationsWithStates(db: TimelineDb): Operation[] {
  const operations = db.operations()
  const undone = new Set(operations.flatMap(({ id, state }) => (state === 'undone' ? [id] : [])))
  return operations.filter(
    ({ state, kind, detail }) =>
      state === 'done' || state === 'undone' || (kind === 'undo' && undone.has(detail.step_of as string)),
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

/** Root trees that an operation recorded. */
export const recordedRoot = (detail: Operation['detail'], key: 'before_root' | 'after_root'): Id | undefined =>
  typeof detail[key] === 'string' ? idFromHex(detail[key]) : undefined

/** Before and after it, where it recorded them. */
export const operationRoots = ({ detail }: Operation): Id[] =>
  [recordedRoot(detail, 'before_root'), recordedRoot(detail, 'after_root')].filter(root => root !== undefined)
