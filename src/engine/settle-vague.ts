/** What calls without a path have changed becomes the run's work, so that it can be undone, and what others did meanwhile stays. */
import type { Change, Id } from '../model/entry.ts'
import { parentOf, type Raw } from '../model/raw-path.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { NewEvent } from '../timeline/event-rows.ts'
import type { PathOp } from '../tracers/frames.ts'
import type { Context } from './context.ts'
import type { LastTouches } from './last-touches.ts'
import { statLive } from './resolve-path.ts'

/** How many files are looked at; those beyond count as the run's. */
const MAX_LOOKS = 20_000

/**
 * Root trees before the run, and of the live state. Notes an event for each path, of no execution: whose it is, is likely and no more.
 * Returns whether there are any. May be called again.
 */
export function settleVague(
  ctx: Context,
  run: string,
  states: { before: Id; after: Id },
  touches: LastTouches,
): boolean {
  if (touches.vague.count === 0) return false
  const changes = Array.from(stateChanges(ctx.store, states.before, states.after)).filter(({ path }) => path !== '')
  const times = callTimes(ctx, changes, touches)
  const events = changes.flatMap(change => eventOf(run, change, times.get(change.path)) ?? [])
  for (const event of events) touches.note({ ...event, thread: 0, changed: undefined, replaced: undefined })
  ctx.db.transaction(() => ctx.db.events.add(events))
  return events.length > 0
}

/** By which call each may have changed, if that is later than what is told of it. */
function callTimes(ctx: Context, changes: readonly Change[], touches: LastTouches): Map<Raw, number> {
  const times = new Map<Raw, number>()
  for (const [i, change] of changes.entries()) {
    const at = i < MAX_LOOKS ? callFor(ctx, change, touches) : touches.vague.last
    if (at === undefined || at <= (touches.of(change.path) ?? 0)) continue
    times.set(change.path, at)
    // The directories that it was made in, as far as they are new.
    for (let above = parentOf(change.path); above !== '' && !times.has(above); above = parentOf(above))
      if (touches.of(above) === undefined) times.set(above, at)
  }
  return times
}

function callFor(ctx: Context, { path, before, after }: Change, { vague }: LastTouches): number | undefined {
  if (!after) return vague.lastRemoval
  const stat = statLive(ctx, path)
  if (!stat) return undefined
  // The times of a directory are those of what is in it.
  if (after.kind === 'dir') return before ? undefined : vague.before(Number(stat.btimeNs / 1_000_000n))
  return vague.before(Number(stat.ctimeNs / 1_000_000n))
}

function eventOf(
  run: string,
  { path, before, after }: Change,
  at: number | undefined,
): (NewEvent & { op: PathOp }) | undefined {
  const directory = (after ?? before)!.kind === 'dir'
  // Only what came or went; else all that changed of it is what is in it.
  if (at === undefined || (directory && before && after)) return undefined
  const op = after ? (directory ? 'create' : 'write') : 'delete'
  const file = { path, to: undefined, existed: before !== undefined, directory, size: undefined }
  return { run, at, op, exec: 0, pid: 0, ...file }
}
