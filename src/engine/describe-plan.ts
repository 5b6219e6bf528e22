/** A plan in the words of results: counts and paths. */
import type { Entry } from '../model/entry.ts'
import { isWithin, type Raw } from '../model/raw-path.ts'
import type { Skipped, Snapshot } from '../model/snapshot.ts'
import { entryAt, withAllBelow } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { statDir } from '../targets/dir/dir-target.ts'
import type { PlanAction, RestorePlan } from '../targets/dir/restore-plan.ts'
import type { Live } from './capture-live.ts'
import { noneUnprotected } from './changed-unprotected.ts'
import type { Context } from './context.ts'
import { mixedIn } from './edits-meanwhile.ts'
import { noneGone } from './gone-unprotected.ts'
import { withCopies } from './kept-copies.ts'
import { statLive } from './resolve-path.ts'
import type { RestoreRequest } from './restore.ts'
import type { LeftAlonePath, PlannedChange, RestoreResult } from './results.ts'
import { shallChangeRoot, whyRootStays } from './root-metadata.ts'
import { uncapturedIn } from './uncaptured-in.ts'
import { unprotectedWork } from './unprotected.ts'

/** Of a restore of the target itself: with the directory that it is, and with what it cannot bring back. */
export function describeRestore(
  ctx: Context,
  request: RestoreRequest,
  live: Pick<Live, 'root' | 'tree'>,
  plan: RestorePlan,
): RestoreResult {
  const result = describePlan(ctx, plan, request.snapshot)
  // One that was made again had no attributes of its own before.
  if (!request.remade && shallChangeRoot(ctx, request, live)) {
    result.changes.unshift({ action: 'metadata', path: '', files: 1 })
    result.files.metadata++
  }
  const why = whyRootStays(ctx, request, live)
  const left = result.leftAlone.map(each => (isSubvolume(ctx, each) ? { ...each, why: 'subvolume' as const } : each))
  result.leftAlone = [...(why ? [{ path: '', why }] : []), ...left]
  const before = rootTreeOf(ctx.store, request.wanted)
  const after = request.base === undefined ? live.tree : rootTreeOf(ctx.store, request.base)
  const { gone, changed } = unprotectedWork(ctx, { before, after, now: live.tree, scope: request.scope }, request.doer)
  const trees = { wanted: before, now: live.tree }
  const inScope = (path: Raw): boolean => request.scope?.some(each => isWithin(path, each)) ?? true
  const mixed = mixedIn(ctx, plan.actions, trees, request.doer?.mixed.filter(inScope) ?? [])
  const staying = [...result.uncaptured, ...stayingUnknown(ctx, request, live, plan)]
  const uncaptured = request.snapshot ? withCopies(ctx, staying, request.snapshot) : staying
  return { ...result, gone, unprotected: changed, mixed, uncaptured }
}

/** What a PARTIAL snapshot did not capture and is not captured now either differs in no tree, and may be another one. */
function stayingUnknown(
  ctx: Context,
  { snapshot, base, scope, withoutGit }: RestoreRequest,
  { tree }: Pick<Live, 'tree'>,
  plan: RestorePlan,
): Skipped[] {
  if (!snapshot || base !== undefined) return []
  const said = new Set([...plan.uncaptured, ...plan.leftAlone].map(({ path }) => path))
  return uncapturedIn(ctx, snapshot, { scope, withoutGit }).filter(
    ({ path }) => !said.has(path) && entryAt(ctx.store, tree, path)?.kind === 'unknown',
  )
}

/** What is mounted is reached by a mount of its own; a nested subvolume is not, and can be moved away as a directory. */
function isSubvolume(ctx: Context, { path, why }: LeftAlonePath): boolean {
  const mount = why === 'mounted' ? statLive(ctx, path)?.mount : undefined
  // 0 where the system does not tell.
  return !!mount && mount === statDir(ctx.targetPath)?.mount
}

export function describePlan(ctx: Context, plan: RestorePlan, snapshot: Snapshot | undefined): RestoreResult {
  const files = { created: 0, deleted: 0, replaced: 0, metadata: 0 }
  let emptyDirs = 0
  const count = (entry: Entry): number => {
    const found = countBelow(ctx, entry)
    emptyDirs += found.emptyDirs
    return found.files + found.emptyDirs
  }
  const tally = (action: PlanAction): number => {
    if (action.action === 'metadata') {
      files.metadata++
      return 1
    }
    if (action.action === 'replace' && action.live.kind !== 'dir' && action.entry.kind !== 'dir') {
      files.replaced++
      return 1
    }
    const created = action.action === 'delete' ? 0 : count(action.entry)
    const deleted = action.action === 'create' ? 0 : count(action.live)
    files.created += created
    files.deleted += deleted
    return Math.max(created, deleted)
  }
  const changes = plan.actions.map(
    (action): PlannedChange => ({ action: action.action, path: action.path, files: tally(action) }),
  )
  return {
    snapshot,
    dryRun: false,
    changes,
    files,
    emptyDirs,
    leftAlone: plan.leftAlone,
    keptDirs: plan.keptDirs,
    hidden: plan.hidden,
    gone: noneGone,
    unprotected: noneUnprotected,
    mixed: [],
    uncaptured: plan.uncaptured,
    safety: undefined,
    lateEdits: undefined,
    operation: undefined,
    stillOpen: [],
  }
}

function countBelow(ctx: Context, entry: Entry): { files: number; emptyDirs: number } {
  const count = { files: 0, emptyDirs: 0 }
  for (const { entry: found } of withAllBelow(ctx.store, { path: '', entry })) {
    if (found.kind === 'unknown') continue
    if (found.kind !== 'dir') count.files++
    else if (ctx.store.tree(found.content).every(child => child.kind === 'unknown')) count.emptyDirs++
  }
  return count
}
