/** Which states a step of `undo` or `redo` is between, and what in them is not the operation's. */
import type { Change, Id } from '../model/entry.ts'
import { isGitInternal, parentOf, type Raw } from '../model/raw-path.ts'
import type { Operation } from '../model/snapshot.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Context } from './context.ts'
import { sayWhoseIsUnknown } from './edits-before-guards.ts'
import { onlyCopies } from './only-copies.ts'
import { recordedRoot, undoneBy } from './operations.ts'
import { overlappingRuns } from './overlapping-runs.ts'
import { sayRepositoryOutside } from './repository-outside.ts'
import type { RestoreRequest } from './restore.ts'
import { doerOf } from './unprotected.ts'

type Meant = Pick<RestoreRequest, 'wanted' | 'base' | 'others' | 'doer' | 'hasPurged'>

export function takingBack(ctx: Context, { kind, detail }: Operation, before: Id, after: Id): Meant {
  const run = kind === 'run' ? (detail.run as string) : undefined
  if (run !== undefined) {
    sayWhoseIsUnknown(ctx, run)
    sayRepositoryOutside(ctx, run)
  }
  return {
    wanted: before,
    base: after,
    others:
      run === undefined
        ? undefined
        : [...overlappingRuns(ctx, run), ...onlyCopies(ctx, ctx.db.runOf(run)!, { before, after })],
    doer: run === undefined ? undefined : doerOf(ctx, run),
    hasPurged: detail.purged === true,
  }
}

/** What `undo` took back, and nothing else: what others did while the operation went on is as little its own as before. */
export function doingAgain(ctx: Context, operation: Operation, before: Id, after: Id): Meant {
  const detail = undoneBy(ctx.db, operation)?.detail ?? {}
  const [wanted, base] = [recordedRoot(detail, 'before_root'), recordedRoot(detail, 'after_root')]
  // There was nothing to take back.
  if (wanted === undefined || base === undefined) return { wanted: before, base: before }
  const own = new Set(Array.from(stateChanges(ctx.store, before, after), ({ path }) => path))
  const around = new Set<Raw>()
  for (const path of own) for (let at = parentOf(path); at !== '' && !around.has(at); at = parentOf(at)) around.add(at)
  // A directory is told by what is in it; somebody may have emptied that before the undo.
  const isOwn = ({ path, before, after }: Change): boolean =>
    own.has(path) || ((before ?? after)?.kind === 'dir' && around.has(path))
  // Somebody may have been at work during the undo itself.
  const foreign = Array.from(stateChanges(ctx.store, wanted, base)).flatMap(change =>
    isOwn(change) || isGitInternal(change.path) ? [] : change.path,
  )
  return {
    wanted,
    base,
    others: [{ before: base, after: base, paths: foreign, foreign }],
    hasPurged: detail.purged === true,
  }
}
