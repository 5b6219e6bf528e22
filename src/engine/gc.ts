/**
 * `gc`: forgets snapshots deleted more than seven days ago and traces that nothing belongs to any more, and frees what
 * nothing needs. Cannot be undone.
 */
import { isDiskFull, type SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import type { Operation, Snapshot } from '../model/snapshot.ts'
import { checkIndex } from '../store/check-index.ts'
import { failpoint } from '../store/failpoint.ts'
import { reachableFrom } from '../store/reachable.ts'
import { type SweepResult, sweep } from '../store/sweep.ts'
import { loadStatCacheRoot, removeStatCache } from '../targets/dir/stat-cache-file.ts'
import { forgetLostNames } from '../timeline/resolve-ref.ts'
import { cannotCollect, type OpenTimeline, rootsOf, withEverythingLocked } from './all-timelines.ts'
import { type Context, refuseInsideRun, requireWritable, withTimelineLock } from './context.ts'
import { sayWhatIsLeft, sayWhatOthersLeft, takeUpLeft } from './left-spools.ts'
import { noteForgotten as noteNativeForgotten } from './native-going.ts'
import { forgetOldTraces } from './old-traces.ts'
import { refuseLosses } from './open-timeline.ts'
import { notCompleted, recoverPending } from './recover.ts'
import { mayHaveLeft, removeEverywhere } from './remove-everywhere.ts'
import type { GcResult } from './results.ts'
import { DELETED_KEPT_MS } from './retention.ts'
import { recount } from './shown-snapshot.ts'
import type { RegisteredTarget } from './target-registry.ts'

export async function gc(ctx: Context): Promise<GcResult> {
  refuseInsideRun(ctx, 'collect garbage')
  requireWritable(ctx)
  await withTimelineLock(ctx, 'collect garbage', () => recoverPending(ctx)).catch(error => {
    // What it lacks is what we are here to make. Everything that its journal names stays.
    if (!isDiskFull(error)) throw error
    ctx.warn(notCompleted(error))
  })
  let going: RegisteredTarget[] = []
  let damaged: SavepointError[] = []
  const result = await withEverythingLocked(ctx, 'collect garbage', timelines => {
    refuseLosses(timelines, 'collect garbage')
    const forgotten = timelines.map(timeline => ({
      timeline,
      snapshots: forgetOld(ctx, timeline),
      traces: forgetOldTraces(ctx, timeline),
    }))
    // What could not be written earlier, for want of room, or because we were killed.
    for (const { db } of timelines) db.plain.renew()
    going = timelines.filter(mayHaveLeft).map(({ target }) => target)
    failpoint('gc:forgotten')
    const { damaged: found, ...result } = collect(ctx, timelines, false)
    damaged = found
    for (const each of forgotten) noteForgotten(ctx, each, result)
    const sum = (of: 'snapshots' | 'traces') => forgotten.reduce((total, each) => total + each[of], 0)
    return { forgottenSnapshots: sum('snapshots'), forgottenTraces: sum('traces'), ...result }
  })
  const { backends: removedKept, left: stillKept } = await removeEverywhere(ctx, going)
  await takeUpLeft(ctx)
  sayWhatIsLeft(ctx)
  sayWhatOthersLeft(ctx)
  if (damaged[0]) throw damaged[0]
  return { ...result, removedKept, stillKept, storeBytes: ctx.store.index.storedBytes() }
}

/** In the history of each directory that lost something, and of the one that it was said in. */
function noteForgotten(
  ctx: Context,
  { timeline: { db }, snapshots, traces }: { timeline: OpenTimeline; snapshots: number; traces: number },
  result: SweepResult,
): void {
  if (db !== ctx.db && snapshots + traces === 0) return
  db.addOperation({
    kind: 'gc',
    at: ctx.now(),
    state: 'fixed',
    summary: `gc: ${snapshots} snapshots forgotten, ${result.removedObjects} objects removed${tracesText(traces)}`,
    before: undefined,
    after: undefined,
    headBefore: db.head,
    headAfter: db.head,
    detail: { ...result },
    rule: undefined,
  })
}

const tracesText = (runs: number): string => (runs > 0 ? `, traces of ${plural('run', runs)} removed` : '')

/** Frees everything that no timeline needs. Called with everything locked. */
export function collect(ctx: Context, timelines: OpenTimeline[], everything: boolean) {
  checkIndex(ctx.store)
  let alive: Set<Id>
  const roots = timelines.flatMap(rootsOf)
  try {
    alive = reachableFrom(ctx.store, roots)
  } catch (cause) {
    throw cannotCollect(cause)
  }
  dropStatCaches(timelines, new Set(roots), everything)
  failpoint('gc:marked')
  return sweep(ctx.store, alive, everything)
}

/** A stat cache may name trees of a state that never became a snapshot: those are about to go. */
function dropStatCaches(timelines: OpenTimeline[], roots: ReadonlySet<Id>, everything: boolean): void {
  for (const { target } of timelines) {
    if (everything || !roots.has(loadStatCacheRoot(target.directory))) removeStatCache(target.directory)
  }
}

/** Snapshots deleted long ago, and what can no longer be undone because of that. */
function forgetOld(ctx: Context, { db }: OpenTimeline): number {
  const limit = ctx.now() - DELETED_KEPT_MS
  const isOld = (snapshot: Snapshot) => snapshot.deletedAt !== undefined && snapshot.deletedAt < limit
  // A deleted snapshot that somebody rolled back to is HEAD: the live state descends from it.
  const old = db.snapshots(true).filter(snapshot => isOld(snapshot) && snapshot.id !== db.head)
  const gone = new Set(old.map(snapshot => snapshot.id))
  db.transaction(() => {
    for (const operation of db.operations()) {
      if (operation.state !== 'fixed' && snapshotsNamed(operation).some(id => gone.has(id)))
        db.setOperationState(operation.id, 'past')
    }
    // What comes after them gets another parent: its counts are against that one.
    const orphans = db.snapshots(true).filter(({ id, parent }) => !gone.has(id) && gone.has(parent!))
    forgetLostNames(db, old)
    db.forgetSnapshots([...gone])
    noteNativeForgotten(db, old)
    for (const { id } of orphans) recount({ store: ctx.store, db }, id)
  })
  return gone.size
}

/** Snapshots that must exist for the operation to be undone or redone: deleted ones, a compacted one, those of a tag. */
function snapshotsNamed({ detail }: Operation): string[] {
  const { snapshots, result, before, after } = detail
  return [snapshots ?? [], result ?? [], before ?? [], after ?? []].flat() as string[]
}
