/**
 * Whether one tree has everything that is known of another. What that one leaves out (`unknown`) says nothing of its content,
 * and no more does a time: neither is a difference here. Answers are remembered, because the trees of snapshots are mostly shared.
 */
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Entry } from '../model/entry.ts'
import type { Store } from './store.ts'
import { sameContent, sameMetadata, unequalPairs } from './tree-diff.ts'

/** `stored` may have more only where `live` leaves something out. */
export type Holds = (stored: Entry, live: Entry) => boolean

export function holdsIn(store: Store): Holds {
  const answers = new Map<string, boolean>()

  function* holds(stored: Entry, live: Entry): Deep<boolean> {
    if (!sameContent(stored, live) || !sameMetadata(stored, live)) return false
    if (live.kind !== 'dir' || stored.content === live.content) return true
    const key = stored.content + live.content
    const answer = answers.get(key) ?? (yield* call(holdsAll(stored, live)))
    answers.set(key, answer)
    return answer
  }

  function* holdsAll(stored: Entry, live: Entry): Deep<boolean> {
    for (const [before, after] of unequalPairs(store, stored.content, live.content)) {
      if (isLeftOut(before) && isLeftOut(after)) continue
      if (before && after?.kind === 'unknown' && !isOther(before, after)) continue
      if (!before || !after || !(yield* call(holds(before, after)))) return false
    }
    return true
  }

  return (stored, live) => runDeep(holds(stored, live))
}

const isLeftOut = (entry: Entry | undefined): boolean => !entry || entry.kind === 'unknown'

/** What was captured, and is something else by now: a file that a directory or a socket has taken the place of. */
const isOther = ({ kind }: Entry, { reason, found }: Entry): boolean =>
  reason === 'socket' || (found !== undefined && found !== kind)
