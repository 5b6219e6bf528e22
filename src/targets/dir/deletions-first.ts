/**
 * A restore stages everything new before it takes anything away. Where the disk has no room for that, but would have
 * without what goes anyway, the deletions are carried out first, as a whole: only for a caller that can lead a restore to
 * its end later, because what is deleted then is not brought back when the rest fails.
 */
import { formatBytes } from '../../model/format.ts'
import { showPath } from '../../model/raw-path.ts'
import { type ApplyOptions, type ApplyResult, applyPlan } from './restore-apply.ts'
import { explainFailure, RestoreFailed } from './restore-failed.ts'
import type { PlanAction } from './restore-plan.ts'
import { deletionsOf, hasRoom, neededBytes, noRoom, preflight } from './restore-preflight.ts'

export async function applyWithRoom(options: ApplyOptions): Promise<ApplyResult> {
  const { store, root, plan, whatHolds } = options
  const needed = neededBytes(store, root, plan.actions)
  let failure: unknown
  if (hasRoom(root, needed)) {
    try {
      return await applyPlan(options)
    } catch (error) {
      // btrfs, and whoever has a quota, may be told that more is free than there is.
      if (!isReversedForRoom(error)) throw error
      failure = error
    }
  }
  const deletions = deletionsOf(store, root, plan.actions)
  const freed = deletions.reduce((sum, { bytes }) => sum + bytes, 0)
  if (failure !== undefined && freed <= needed) throw needed === 0 ? withWayOut(failure, options) : failure
  if (freed === 0 || !hasRoom(root, needed - freed))
    return applyPlan(options).catch(error => {
      throw isReversedForRoom(error) && needed === 0 ? withWayOut(error, options) : error
    })
  // Nothing is deleted for a state that the store cannot give back.
  try {
    preflight(store, root, plan.actions, { freed, whatHolds })
  } catch (error) {
    throw explainFailure(error, true)
  }
  const isDeletion = ({ action }: PlanAction) => action === 'delete'
  const part = (actions: PlanAction[]) => applyPlan({ ...options, plan: { ...plan, actions } })
  const first = await part(plan.actions.filter(isDeletion)).catch(error => {
    // Not even for the directory that they are moved into.
    throw isReversedForRoom(error) ? explainFailure(noRoom(root, needed, deletions, whatHolds), true) : error
  })
  const second = await part(plan.actions.filter(action => !isDeletion(action))).catch(error => {
    throw explainFailure(error, false, root)
  })
  return {
    written: second.written,
    left: [...first.left, ...second.left],
    keptIn: second.keptIn ?? first.keptIn,
  }
}

/** ZFS may have no room for the directory that what goes is moved into, and does not tell what a deletion would free. */
function withWayOut(failure: unknown, { plan }: ApplyOptions): unknown {
  const files = plan.actions.flatMap(action =>
    action.action === 'delete' && action.live.kind === 'file' ? [{ path: action.path, bytes: action.live.size }] : [],
  )
  const [largest] = files.sort((a, b) => b.bytes - a.bytes)
  if (!largest) return failure
  const { code, message } = failure as RestoreFailed
  const hint = `The target is back as it was. It would delete ${showPath(largest.path)} (${formatBytes(largest.bytes)}) anyway: remove that by hand, which makes room, and say it again; \`savepoint snapshot --backend cas\` before that keeps it`
  return new RestoreFailed(code, message, true, failure, hint)
}

const isReversedForRoom = (error: unknown): boolean =>
  error instanceof RestoreFailed && error.reversed && error.code === 'disk.full'
