/**
 * What was made while ignore rules hid it (`*` in .gitignore, say) stays: nobody knows whether it is the operation's. When
 * a restore brings narrower rules back, such paths come to light, and its result names them.
 */
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
import { isWithin, joinRaw, type Raw } from '../model/raw-path.ts'
import type { Store } from '../store/store.ts'
import { pairByName } from '../store/tree-diff.ts'
import { EntryCursor } from '../store/tree-lookup.ts'
import { noteStaying } from '../targets/dir/hidden.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'

type Report = Pick<RestorePlan, 'hidden' | 'uncaptured'>

/** Trees of the target before the restore, as they should be, and after it. */
export interface States {
  before: Id | undefined
  wanted: Id | undefined
  after: Id
}

/** Adds what is there after, is not wanted, and was not to be seen before. A directory counts once. */
export function findHidden(store: Store, states: States, scope: readonly Raw[] | undefined, report: Report): void {
  runDeep(findIn(store, states, scope, report, ''))
}

function* findIn(
  store: Store,
  states: States,
  scope: readonly Raw[] | undefined,
  report: Report,
  directory: Raw,
): Deep<void> {
  const { before, wanted, after } = states
  if (after === wanted || after === before) return
  const [was, then] = [before, wanted].map(id => (id === undefined ? [] : store.entries(id)))
  const seen = new EntryCursor(was!)
  for (const [expected, now] of pairByName(then!, store.entries(after))) {
    if (!now || now.kind === 'unknown') continue
    const path = joinRaw(directory, now.name)
    const old = seen.find(now.name)
    if (old?.kind === 'unknown' && !expected) {
      const isInside = !scope || scope.some(part => isWithin(path, part))
      // What was asked for by name is in the report already.
      const isNamed = scope?.includes(path) && isReported(report, path)
      if (isInside && !isNamed) noteStaying(report, path, old)
    } else if (now.kind === 'dir' && old) {
      const inside = { before: treeOf(old), wanted: treeOf(expected), after: now.content }
      yield* call(findIn(store, inside, scope, report, path))
    }
  }
}

const isReported = ({ hidden, uncaptured }: Report, path: Raw): boolean =>
  hidden.paths.includes(path) || uncaptured.some(item => item.path === path)

const treeOf = (entry: Entry | undefined): Id | undefined => (entry?.kind === 'dir' ? entry.content : undefined)
