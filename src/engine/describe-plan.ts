/** A plan in the words of results: counts and paths. */
import type { Entry } from '../model/entry.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { withAllBelow } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'
import { findGone } from './gone-unprotected.ts'
import type { RestoreRequest } from './restore.ts'
import type { PlannedChange, RestoreResult } from './results.ts'
import { shallChangeRoot, whyRootStays } from './root-metadata.ts'

/** Of a restore of the target itself: with the directory that it is, and with what it cannot bring back. */
export function describeRestore(ctx: Context, request: RestoreRequest, live: Live, plan: RestorePlan): RestoreResult {
  const result = describePlan(ctx, plan, request.snapshot)
  // One that was made again had no attributes of its own before.
  if (!request.remade && shallChangeRoot(ctx, request, live)) {
    result.changes.unshift({ action: 'metadata', path: '', files: 1 })
    result.files.metadata++
  }
  const why = whyRootStays(ctx, request, live)
  if (why) result.leftAlone = [{ path: '', why }, ...result.leftAlone]
  if (request.base === undefined) return result
  const [wanted, base] = [rootTreeOf(ctx.store, request.wanted), rootTreeOf(ctx.store, request.base)]
  return { ...result, gone: findGone(ctx.store, wanted, base, live.tree, request.scope) }
}

export function describePlan(ctx: Context, plan: RestorePlan, snapshot: Snapshot | undefined): RestoreResult {
  const files = { created: 0, deleted: 0, replaced: 0, metadata: 0 }
  const changes = plan.actions.map((action): PlannedChange => {
    const entry = action.action === 'delete' ? action.live : action.entry
    const count = action.action === 'metadata' ? 1 : countFiles(ctx, entry)
    if (action.action === 'create') files.created += count
    else if (action.action === 'delete') files.deleted += count
    else if (action.action === 'replace') files.replaced += count
    else files.metadata++
    return { action: action.action, path: action.path, files: count }
  })
  return {
    snapshot,
    dryRun: false,
    changes,
    files,
    leftAlone: plan.leftAlone,
    keptDirs: plan.keptDirs,
    hidden: plan.hidden,
    gone: { count: 0, paths: [] },
    uncaptured: plan.uncaptured,
    safety: undefined,
    lateEdits: undefined,
    operation: undefined,
  }
}

/** Files of an entry, an empty directory counting as one. */
function countFiles(ctx: Context, entry: Entry): number {
  let count = 0
  for (const { entry: found } of withAllBelow(ctx.store, { path: '', entry })) {
    const isFull = found.kind === 'dir' && ctx.store.tree(found.content).some(child => child.kind !== 'unknown')
    if (found.kind !== 'unknown' && !isFull) count++
  }
  return count
}
