/** A rollback to what is lent: what changed between the look by which its contents were stored, and the one by which it is planned. */
import type { Id } from '../model/entry.ts'
import { isGitInternal, parentOf, type Raw } from '../model/raw-path.ts'
import { differingEntries } from '../store/tree-diff.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import type { Live } from './capture-live.ts'
import type { Context } from './context.ts'
import type { RestoreRequest } from './restore-request.ts'

/**
 * `lent`: the tree that is wanted. What differs from it, and the plan does not bring back, somebody has changed meanwhile: its content is
 * not stored, and it is left alone. What does not differ is no matter.
 */
export function nameChangedSince(
  ctx: Context,
  lent: Id,
  { scope, withoutGit }: RestoreRequest,
  live: Live,
  plan: RestorePlan,
): void {
  const differing = new Set(
    [...differingEntries(ctx.store, live.seenTree ?? live.tree, lent, scope)].flatMap(({ path, after }) =>
      after?.kind === 'file' && !(withoutGit && isGitInternal(path)) ? [path] : [],
    ),
  )
  plan.uncaptured = plan.uncaptured.filter(({ reason }) => reason !== 'no-room')
  for (const { path } of [...plan.actions, ...plan.leftAlone]) differing.delete(path)
  // With all that is in them; and what stands in the way of a directory is named for that.
  const made = plan.actions.flatMap(({ action, path }) => (action === 'create' || action === 'replace' ? [path] : []))
  const around = new Set([...made, ...plan.leftAlone.map(({ path }) => path)])
  for (const path of differing) if (!isBelow(path, around)) plan.leftAlone.push({ path, why: 'edited' })
}

function isBelow(path: Raw, directories: ReadonlySet<Raw>): boolean {
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) if (directories.has(at)) return true
  return false
}
