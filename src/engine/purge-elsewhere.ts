/** Where else that is which was purged: it stays there, and the user must know. So must he know where nobody could look. */
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Id } from '../model/entry.ts'
import { joinRaw, type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { UNREAD_ROOT } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { OpenTimeline } from './all-timelines.ts'
import type { Context } from './context.ts'
import { lookInto } from './kept-paths.ts'
import { keptOf } from './native-ref.ts'
import { operationRoots, operationsWithStates } from './operations.ts'
import type { Elsewhere } from './results.ts'
import { relativeTo } from './target-registry.ts'

const LISTED = 20

/** Paths with the same bytes, in snapshots and operations of all timelines. */
export function sameElsewhere(ctx: Context, timelines: OpenTimeline[], ids: ReadonlySet<Id>): Elsewhere[] {
  if (ids.size === 0) return []
  const found: Elsewhere[] = []
  const clean = new Set<Id>()
  for (const timeline of timelines) {
    const search = (snapshot: string, root: Id) =>
      runDeep(
        visit(ctx.store, { tree: rootTreeOf(ctx.store, root), path: '' }, ids, clean, path => {
          const isNoted = found.some(other => other.snapshot === snapshot && other.path === path)
          if (found.length < LISTED && !isNoted) found.push({ snapshot, path, ...whose(ctx, timeline) })
        }),
      )
    for (const { id, root } of timeline.db.snapshots(true)) if (root !== UNREAD_ROOT) search(id, root)
    for (const operation of operationsWithStates(timeline.db))
      for (const root of operationRoots(operation)) search(operation.id, root)
  }
  return found
}

/** Whether anything is there. What has nothing is not looked at again. */
function* visit(
  store: Store,
  { tree, path }: { tree: Id; path: Raw },
  ids: ReadonlySet<Id>,
  clean: Set<Id>,
  note: (path: Raw) => void,
): Deep<boolean> {
  if (clean.has(tree)) return false
  let any = false
  for (const entry of store.tree(tree)) {
    const here = joinRaw(path, entry.name)
    if (entry.kind === 'dir')
      any = (yield* call(visit(store, { tree: entry.content, path: here }, ids, clean, note))) || any
    else if (entry.kind === 'file' && ids.has(entry.content)) {
      any = true
      note(here)
    }
  }
  if (!any) clean.add(tree)
  return any
}

/** Of one that is not ours, the directory is named: the path is one in there. */
const whose = (ctx: Context, { target, db }: OpenTimeline): Pick<Elsewhere, 'target'> =>
  db === ctx.db ? {} : { target: showPath(rawFromBytes(target.path)) }

export interface KeptAround {
  /** That a filesystem keeps of a directory around the target: the path is in there, whether that was captured or not. */
  has: Elsewhere[]
  /** Of whatever directory: nobody has read them, or could look into them. */
  unread: { snapshot: string; target: string }[]
}

/** Called with everything read that can be. `known`: what need not be looked for. */
export function keptElsewhere(ctx: Context, timelines: OpenTimeline[], path: Raw, known: Elsewhere[]): KeptAround {
  const has: Elsewhere[] = []
  const unread: KeptAround['unread'] = []
  for (const timeline of timelines.filter(({ db }) => db !== ctx.db)) {
    const target = showPath(rawFromBytes(timeline.target.path))
    const inside = relativeTo(timeline.target.path, ctx.targetPath)
    const there = inside === undefined ? undefined : joinRaw(inside, path)
    for (const snapshot of timeline.db.snapshots(true)) {
      const isKnown = known.some(other => other.snapshot === snapshot.id && other.path === there)
      const found = !isKnown && there !== undefined && keptOf(snapshot) ? lookInto(snapshot, there) : false
      if (found === true && has.length < LISTED) has.push({ snapshot: snapshot.id, path: there!, target })
      else if (found !== true && (found || snapshot.root === UNREAD_ROOT))
        unread.push({ snapshot: snapshot.id, target })
    }
  }
  return { has, unread }
}
