/** Snapshots of states that were not captured from the live files: imported, or found again in the store. */
import type { Entry, Id } from '../model/entry.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import { countChanges } from '../store/tree-diff.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'

type WholeState = Pick<Snapshot, 'root' | 'type' | 'label' | 'createdAt' | 'parent' | 'sizeDelta' | 'files' | 'bytes'>

/** `before`: the state of its parent, if it has one. In the caller's transaction. */
export function addWholeState(store: Store, db: TimelineDb, state: WholeState, before: Id | undefined): Snapshot {
  return db.addSnapshot({
    ...state,
    run: undefined,
    command: undefined,
    backend: 'cas',
    nativeRef: undefined,
    counts: countChanges(stateChanges(store, before, state.root)),
    skippedCount: 0,
    skipped: [],
    unsettled: false,
    runOnly: false,
  })
}

/** How much these entries are, as captures count it. */
export function sizeOf(entries: Iterable<{ entry: Entry }>): { files: number; bytes: number } {
  const size = { files: 0, bytes: 0 }
  for (const { entry } of entries) {
    if (entry.kind === 'dir' || entry.kind === 'unknown') continue
    size.files++
    size.bytes += entry.size
  }
  return size
}
