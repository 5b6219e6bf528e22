/** The changes between two captured states: of the target directory itself, when its mode or owner differ, and in it. */
import type { Change, Id } from '../../model/entry.ts'
import type { Raw } from '../../model/raw-path.ts'
import type { Store } from '../../store/store.ts'
import { sameMetadata, treeChanges } from '../../store/tree-diff.ts'
import { rootEntryOf } from './capture.ts'

/** Takes roots, not trees. The directory itself has the path ''; a `scope` never includes it. */
export function* stateChanges(
  store: Store,
  before: Id | undefined,
  after: Id,
  scope?: readonly Raw[],
): Generator<Change> {
  const old = before === undefined ? undefined : rootEntryOf(store, before)
  const now = rootEntryOf(store, after)
  if (old && !scope && !sameMetadata(old, now)) yield { kind: 'metadata', path: '', before: old, after: now }
  yield* treeChanges(store, old?.content, now.content, scope)
}
