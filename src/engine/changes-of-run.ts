/** `diff RUN`: of what changed while a run went on, what that run did. Others may have been at work at the same time. */
import type { Change } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import type { Run } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { withOtherNames } from './other-names.ts'
import { overlappingRuns } from './overlapping-runs.ts'
import { isUntold, touchedBy } from './touched-paths.ts'

/** `all`: between the snapshots around it. Where its trace is not complete, it is all of them, and that is said. */
export function changesOfRun(ctx: Context, run: Run, all: Change[]): Change[] {
  const spans = overlappingRuns(ctx, run.id)
  if (spans.length === 0) return all
  const isTraced = touchedBy(ctx, run.id)
  if (!isTraced) {
    ctx.notice('another run was at work, too: what it changed meanwhile may be among this')
    return all
  }
  const isOwn = withOtherNames(isTraced, all)
  const own = all.filter(change => isOwn(change.path) || isUntold(change))
  const rest = all.length - own.length
  if (rest > 0)
    ctx.notice(
      `${plural('change', rest)} of others while it went on not shown; to see all: savepoint diff ${run.before} ${run.after}`,
    )
  return own
}
