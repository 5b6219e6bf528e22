import type { Id } from '../model/entry.ts'
import { isWithin, type Raw } from '../model/raw-path.ts'
import type { Operation } from '../model/snapshot.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Context } from './context.ts'
import { wouldMove } from './moved-target.ts'
import { recordedRoot, undoneBy } from './operations.ts'

/** The first path outside of the current subdirectory that an operation changed, if any. Of a step: of what it took back. */
export function changedOutside(ctx: Context, operation: Operation): Raw[] {
  if (ctx.subdirectory === '') return []
  const stepOf = operation.detail.step_of
  const meant = ctx.db.operations().find(({ id }) => id === stepOf) ?? operation
  if (wouldMove(ctx, meant)) return ['']
  const { detail } = (meant.state === 'undone' && undoneBy(ctx.db, meant)) || meant
  const [before, after] = [recordedRoot(detail, 'before_root'), recordedRoot(detail, 'after_root')]
  return before === undefined || after === undefined ? [] : firstOutside(ctx, before, after)
}

/** The first path outside of the current subdirectory that differs between two roots, if any. */
export function firstOutside(ctx: Context, before: Id, after: Id): Raw[] {
  if (ctx.subdirectory === '') return []
  for (const { path } of stateChanges(ctx.store, before, after)) if (!isWithin(path, ctx.subdirectory)) return [path]
  return []
}
