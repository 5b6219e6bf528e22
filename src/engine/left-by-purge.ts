/** What goes with a purge, because it cannot be rewritten: states that filesystems keep, and archives. */
import { isWithin, type Raw } from '../model/raw-path.ts'
import type { Skipped, Snapshot } from '../model/snapshot.ts'
import type { Gone } from './native-going.ts'
import { stateOf } from './native-ref.ts'
import type { PurgeResult } from './results.ts'

/** What `backend` keeps until a purge, with all that rules exclude, or has an archive of: only the store has it then. */
export interface LeftByPurge {
  snapshot: string
  backend: string
  /** What was not captured, though it belongs to the state: only the filesystem had it. At most the first 1000. */
  lost: Skipped[]
  lostCount: number
}

/** What became of `kept`, where that was not removed by the purge. */
export function notRemoved(
  kept: readonly Snapshot[],
  gone: readonly Gone[],
): Pick<PurgeResult, 'goneBefore' | 'mayBeLeft'> {
  // Several may share one since they were joined; what was to go before has no row any more.
  const idsOf = (name: string) => {
    const ids = kept.filter(snapshot => stateOf(snapshot)?.name === name).map(({ id }) => id)
    return ids.length > 0 ? ids : [name]
  }
  const goneBefore = gone.flatMap(({ name, became }) => (became === 'absent' ? idsOf(name) : []))
  const mayBeLeft = gone.flatMap(({ name, backend, became }) =>
    typeof became === 'object' ? idsOf(name).map(snapshot => ({ snapshot, backend, mayBe: became.mayBe })) : [],
  )
  return { goneBefore: goneBefore.filter(id => kept.some(snapshot => snapshot.id === id)), mayBeLeft }
}

/** `path`: what is purged, which nobody loses by mistake. An archive has only what was captured. */
export function leftByPurge(kept: readonly Snapshot[], path: Raw): LeftByPurge[] {
  return kept.map(({ id, backend, skipped, skippedCount }) => {
    const lost = backend === 'archive' ? [] : skipped.filter(each => !isWithin(each.path, path))
    const lostCount = backend === 'archive' ? 0 : skippedCount - (skipped.length - lost.length)
    return { snapshot: id, backend, lost, lostCount }
  })
}
