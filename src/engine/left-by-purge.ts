/** What goes with a purge, because it cannot be rewritten: states that filesystems keep, and archives. */
import { isWithin, type Raw } from '../model/raw-path.ts'
import type { Skipped, Snapshot } from '../model/snapshot.ts'

/** What `backend` keeps until a purge, with all that rules exclude, or has an archive of: only the store has it then. */
export interface LeftByPurge {
  snapshot: string
  backend: string
  /** What was not captured, though it belongs to the state: only the filesystem had it. At most the first 1000. */
  lost: Skipped[]
  lostCount: number
}

/** `path`: what is purged, which nobody loses by mistake. An archive has only what was captured. */
export function leftByPurge(kept: readonly Snapshot[], path: Raw): LeftByPurge[] {
  return kept.map(({ id, backend, skipped, skippedCount }) => {
    const lost = backend === 'archive' ? [] : skipped.filter(each => !isWithin(each.path, path))
    const lostCount = backend === 'archive' ? 0 : skippedCount - (skipped.length - lost.length)
    return { snapshot: id, backend, lost, lostCount }
  })
}
