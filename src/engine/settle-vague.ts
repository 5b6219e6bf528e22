/**
 * What calls without a path have likely changed becomes the run's work, so that it can be undone, and what others did meanwhile stays. All of it
 * is named: it may be somebody else's. Repositories are left out: programs change them by `git`, which is told.
 */
import type { Change, Id } from '../model/entry.ts'
import { isGitInternal, parentOf, type Raw } from '../model/raw-path.ts'
import { sameMetadata } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { NewEvent } from '../timeline/event-rows.ts'
import type { PathOp } from '../tracers/frames.ts'
import type { Context } from './context.ts'
import type { LastTouches } from './last-touches.ts'
import { statLive } from './resolve-path.ts'

/** How many files are looked at; those beyond count as the run's. */
const MAX_LOOKS = 20_000

/**
 * Root trees before the run, and of the live state. Notes an event for each path, of no execution. Returns which they are. May be
 * called again.
 */
export function settleVague(ctx: Context, run: string, states: { before: Id; after: Id }, touches: LastTouches): Raw[] {
  if (touches.vague.count === 0) return []
  const changes = Array.from(stateChanges(ctx.store, states.before, states.after)).filter(
    ({ path }) => path !== '' && !isGitInternal(path),
  )
  const times = callTimes(ctx, changes, rootTreeOf(ctx.store, states.before), touches)
  const events = changes.flatMap(change => eventOf(run, change, times.get(change.path)) ?? [])
  for (const event of events) touches.noteLikely({ ...event, thread: 0, changed: undefined, replaced: undefined })
  ctx.db.transaction(() => ctx.db.events.add(events))
  return events.map(({ path }) => path!)
}

/** By which call each may have changed, if that is later than what is told of it. */
function callTimes(ctx: Context, changes: readonly Change[], tree: Id, touches: LastTouches): Map<Raw, number> {
  const times = new Map<Raw, number>()
  const movedIn = movedDirectories(ctx, tree, touches)
  for (const [i, change] of changes.entries()) {
    const { path } = change
    const at = i < MAX_LOOKS ? (callFor(ctx, change, touches) ?? movedIn(change)) : touches.vague.last
    if (at === undefined || at <= (touches.of(path) ?? 0)) continue
    times.set(path, at)
    // The directories that it was made in, as far as they are new.
    for (let above = parentOf(path); above !== '' && !times.has(above); above = parentOf(above))
      if (touches.of(above) === undefined) times.set(above, at)
  }
  return times
}

function callFor(ctx: Context, { path, before, after }: Change, { vague }: LastTouches): number | undefined {
  // Nothing tells when something went.
  if (!after) return vague.lastRemoval
  const stat = statLive(ctx, path)
  if (!stat) return undefined
  // The times of a directory are those of what is in it.
  const isMade = after.kind === 'dir' && !before
  if (after.kind === 'dir' && before && sameMetadata(before, after)) return undefined
  return vague.before(Number((isMade ? stat.btimeNs : stat.ctimeNs) / 1_000_000n))
}

/** What is in a directory that was moved has its old times: the call that brought a directory which is older than all of them. */
function movedDirectories(ctx: Context, tree: Id, { vague }: LastTouches) {
  const known = new Map<Raw, number | undefined>()
  const find = (path: Raw): number | undefined => {
    const stat = entryAt(ctx.store, tree, path) ? undefined : statLive(ctx, path)
    const [born, changed] = [stat?.btimeNs, stat?.ctimeNs].map(ns => Number((ns ?? 0n) / 1_000_000n))
    return stat && born! < vague.first! ? vague.before(changed!) : undefined
  }
  return ({ path, before, after }: Change): number | undefined => {
    if (before || !after) return undefined
    for (let above = after.kind === 'dir' ? path : parentOf(path); above !== ''; above = parentOf(above)) {
      if (!known.has(above)) known.set(above, find(above))
      if (known.get(above) !== undefined) return known.get(above)
    }
    return undefined
  }
}

type LikelyEvent = NewEvent & { op: PathOp }

function eventOf(run: string, { path, before, after }: Change, at: number | undefined): LikelyEvent | undefined {
  const directory = (after ?? before)!.kind === 'dir'
  const isSame = directory && before && after && sameMetadata(before, after)
  if (at === undefined || isSame) return undefined
  const op = !after ? 'delete' : !directory ? 'write' : before ? 'attributes' : 'create'
  const file = { path, to: undefined, existed: before !== undefined, directory, size: undefined }
  return { run, at, op, exec: 0, pid: 0, ...file }
}
