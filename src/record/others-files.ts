/**
 * Files of others that the command could write (by their group, or an access list): another one in their place would be the user's, and
 * its owner might not even read it. Only root can give it back, and set the times of theirs; so they stay as they are.
 */
import type { Raw } from '../model/raw-path.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import { ownEntry } from './own-entry.ts'

/** Takes them out of the plan, and says which they are. What belonged to the user before is the user's to replace. */
export function leaveOthers(plan: RestorePlan): Raw[] {
  const user = process.geteuid!()
  if (user === 0) return []
  const { others = [], own = [] } = Object.groupBy(plan.actions, each => {
    const isKept = each.action === 'replace' || each.action === 'metadata'
    const isOthers = isKept && each.live.uid !== user && each.entry.uid === each.live.uid
    return isOthers ? 'others' : 'own'
  })
  plan.actions = own
  return others.map(({ path }) => path)
}

/** The user's own files whose group only root can give: others in their place get that of the user. Says which they are. */
export function ownReplaced({ actions }: RestorePlan): Raw[] {
  const user = process.geteuid!()
  const isOwned = (each: RestorePlan['actions'][number]) =>
    each.action === 'replace' && each.entry.uid === user && ownEntry(each.entry, undefined)
  return actions.filter(isOwned).map(({ path }) => path)
}
