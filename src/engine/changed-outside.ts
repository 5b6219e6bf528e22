import { isWithin, type Raw } from '../model/raw-path.ts'
import type { Operation } from '../model/snapshot.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Context } from './context.ts'
import { hasMoved } from './moved-target.ts'
import { recordedRoot } from './rollback.ts'

/** The first path outside of the current subdirectory that an operation changed, if any. Of a step: of what it took back. */
export function changedOutside(ctx: Context, operation: Operation): Raw[] {
  if (ctx.subdirectory === '') return []
  if (hasMoved(ctx, operation)) return ['']
  const stepOf = operation.detail.step_of
  const { detail } = ctx.db.operations().find(({ id }) => id === stepOf) ?? operation
  const [before, after] = [recordedRoot(detail, 'before_root'), recordedRoot(detail, 'after_root')]
  if (before === undefined || after === undefined) return []
  for (const { path } of stateChanges(ctx.store, before, after)) if (!isWithin(path, ctx.subdirectory)) return [path]
  return []
}
