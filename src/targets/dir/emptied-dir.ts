/** Whether a directory is empty when what is planned below it is done: then it goes as a whole. */
import { descend } from '../../model/deep-walk.ts'
import type { Id } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { childrenOf } from '../../store/tree-lookup.ts'
import type { PlanAction } from './restore-plan.ts'

/** `tree`: what it holds; `actions`: all that is planned in it. */
export function isEmptied(store: Store, actions: readonly PlanAction[], path: Raw, tree: Id): boolean {
  const gone = new Set(actions.flatMap(({ action, path }) => (action === 'delete' ? [path] : [])))
  const all = descend(childrenOf(store, path, tree), ({ path, entry }) =>
    entry.kind === 'dir' && !gone.has(path) ? childrenOf(store, path, entry.content) : undefined,
  )
  // An empty directory that stays is somebody's, too.
  for (const { path } of all) if (!gone.has(path)) return false
  return true
}
