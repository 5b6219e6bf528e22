/** `delete`, `compact` and `prune`: snapshots that go. For seven days they can come back (`undo`); then `gc` frees them. */
import { SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import type { Operation, OperationKind, Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { lookAtDir } from '../targets/dir/dir-target.ts'
import { resolveSnapshot } from '../timeline/resolve-ref.ts'
import { type Context, ownRun, refuseInsideRun, withTimelineLock } from './context.ts'
import { beyondLimits, type Foreseen, keepWithinLimits, type LeftToStore } from './kept-limit.ts'
import { liveRuns, undoCommand } from './live-runs.ts'
import { checkLabel } from './names.ts'
import { newOperation } from './new-operation.ts'
import { refuseLost } from './open-timeline.ts'
import { foreseeReading } from './read-native.ts'
import { recoverPending } from './recover.ts'
import type { PruneResult } from './results.ts'
import { requireRun } from './rollback.ts'
import { countsAgainst, shownParent } from './shown-snapshot.ts'
import { missingMount } from './target-mount.ts'
import { decide } from './thin-out.ts'

export function deleteSnapshots(ctx: Context, refs: string[]): Promise<Operation> {
  return withTimelineLock(ctx, 'delete', async () => {
    await recoverPending(ctx)
    const snapshots = resolveAll(ctx, refs)
    refuseForeign(ctx, 'delete', snapshots)
    for (const snapshot of snapshots) refusePinned(ctx, snapshot)
    return remove(ctx, 'delete', snapshots, `delete ${nameAll(snapshots)}`)
  })
}

/** Replaces several snapshots by one that has the tree of the newest of them. */
export function compact(
  ctx: Context,
  refs: string[],
  options: { label?: string },
): Promise<{ snapshot: Snapshot; operation: Operation }> {
  if (options.label !== undefined) checkLabel(options.label)
  return withTimelineLock(ctx, 'compact', async () => {
    refuseLost(ctx.timelineDir, ctx.db, 'compact')
    await recoverPending(ctx)
    const snapshots = inOrderOfStates(ctx, resolveAll(ctx, refs))
    if (snapshots.length < 2) throw new SavepointError('usage', 'Cannot compact: name at least two snapshots')
    refuseForeign(ctx, 'compact', snapshots)
    const newest = snapshots.at(-1)!
    const tags = tagsOf(ctx, newest)
    for (const snapshot of snapshots.slice(0, -1)) refuseTagged(ctx, snapshot, 'compact')
    for (const snapshot of snapshots) refuseBeforeLive(ctx, snapshot, 'compact')
    const ids = snapshots.map(snapshot => snapshot.id)
    failpoint('compact:before')
    const result = ctx.db.transaction(() => {
      const headBefore = ctx.db.head
      const parentId = outsideParent(ctx, snapshots)
      const parent = parentId === undefined ? undefined : ctx.db.snapshot(parentId)
      const merged = ctx.db.addSnapshot({
        ...newest,
        type: 'manual',
        label: options.label ?? newest.label,
        parent: parent?.id,
        counts: countsAgainst(ctx, parent?.id, newest),
        createdAt: ctx.now(),
        sizeDelta: 0,
        turn: undefined,
      })
      ctx.db.events.addMerged(merged, ids)
      ctx.db.setDeleted(ids, ctx.now())
      ctx.db.moveChildren(newest.id, merged.id)
      for (const tag of tags) ctx.db.setTag(tag, merged.id, ctx.now())
      if (snapshots.some(snapshot => snapshot.id === headBefore)) ctx.db.setHead(merged.id)
      const operation = ctx.db.addOperation({
        ...newOperation(ctx, 'compact', `compact ${nameAll(snapshots)} into ${merged.id}`, {
          ...{ snapshots: ids, newest: newest.id, result: merged.id, tags },
        }),
        headBefore,
        headAfter: ctx.db.head,
      })
      return { snapshot: merged, operation }
    })
    failpoint('compact:after')
    return result
  })
}

export function prune(ctx: Context, options: { keep?: number; dryRun?: boolean; run?: string }): Promise<PruneResult> {
  return withTimelineLock(ctx, 'prune', async () => {
    if (!options.dryRun) {
      refuseInsideRun(ctx, 'prune')
      refuseLost(ctx.timelineDir, ctx.db, 'prune')
      await recoverPending(ctx)
    }
    const run = options.run === undefined ? undefined : requireRun(ctx, options.run).id
    const foreseen = options.dryRun ? foreseeReading(ctx) : undefined
    const decisions = decide(ctx, { keep: options.keep, run }, foreseen?.lost)
    const going = decisions.filter(decision => !decision.keep).map(decision => decision.snapshot)
    const leftToStore = [...ctx.leftAtOpen.splice(0), ...leaveToStore(ctx, options.run, foreseen)]
    if (options.dryRun || going.length === 0)
      return { dryRun: options.dryRun === true, decisions, leftToStore, operation: undefined }
    const rules = [...new Set(decisions.filter(decision => !decision.keep).map(decision => decision.rule))]
    const operation = remove(ctx, 'prune', going, `prune ${plural('snapshot', going.length)} (${rules.join('; ')})`)
    return { dryRun: false, decisions, leftToStore, operation }
  })
}

function leaveToStore(ctx: Context, run: string | undefined, foreseen: Foreseen | undefined): LeftToStore[] {
  if (run !== undefined) return []
  return foreseen ? beyondLimits(ctx, foreseen) : keepWithinLimits(ctx)
}

function remove(ctx: Context, kind: OperationKind, snapshots: Snapshot[], summary: string): Operation {
  const ids = snapshots.map(snapshot => snapshot.id)
  failpoint(`${kind}:before`)
  const operation = ctx.db.transaction(() => {
    const asked = newOperation(ctx, kind, summary, { snapshots: ids })
    const head = snapshots.find(({ id }) => id === asked.headBefore)
    ctx.db.setDeleted(ids, ctx.now())
    if (head) ctx.db.setHead(shownParent(id => ctx.db.snapshot(id), head))
    return ctx.db.addOperation({ ...asked, headAfter: ctx.db.head })
  })
  failpoint(`${kind}:after`)
  return operation
}

function resolveAll(ctx: Context, refs: string[]): Snapshot[] {
  const snapshots = new Map(refs.map(ref => resolveSnapshot(ctx.db, ref)).map(snapshot => [snapshot.id, snapshot]))
  for (const snapshot of snapshots.values()) {
    if (snapshot.deletedAt === undefined) continue
    throw new SavepointError('snapshot.unknown', `Cannot use ${snapshot.id}: it is deleted`, {
      hint: `${undoCommand(ctx)} brings it back`,
    })
  }
  return [...snapshots.values()]
}

/** A run may drop the manual snapshots that it made; all others are what would bring its work, or older work, back. */
function refuseForeign(ctx: Context, verb: 'delete' | 'compact', snapshots: Snapshot[]): void {
  const foreign = snapshots.find(({ type, run }) => type !== 'manual' || run !== ownRun(ctx))
  if (foreign) refuseInsideRun(ctx, `${verb} ${foreign.id}, which is no manual snapshot of this run`)
}

/** Also for a redo: HEAD and tags may be others than at the first time. */
export function refusePinned(ctx: Context, snapshot: Snapshot): void {
  refuseTagged(ctx, snapshot, 'delete')
  refuseBeforeLive(ctx, snapshot, 'delete')
  if (snapshot.id !== ctx.db.head || isNobodys(ctx)) return
  throw new SavepointError(
    'snapshot.pinned',
    `Cannot delete ${snapshot.id}: it is HEAD, from which the live state descends`,
    {
      hint: 'Take a new snapshot first, then delete this one',
    },
  )
}

/** Nothing descends from HEAD where there is no directory, and none can be captured; a run may still make it again, and what is not mounted is away. */
const isNobodys = (ctx: Context): boolean =>
  lookAtDir(ctx.targetPath) === undefined && liveRuns(ctx).length === 0 && missingMount(ctx) === undefined

function refuseTagged(ctx: Context, snapshot: Snapshot, verb: 'delete' | 'compact'): void {
  const tags = tagsOf(ctx, snapshot)
  if (tags.length === 0) return
  throw new SavepointError('snapshot.pinned', `Cannot ${verb} ${snapshot.id}: it is tagged ${tags.join(', ')}`, {
    hint: `Delete the tag first: \`savepoint tag --delete ${tags[0]}\``,
  })
}

/** Without it the run could not be undone, should its supervisor be killed. */
function refuseBeforeLive(ctx: Context, { id }: Snapshot, verb: 'delete' | 'compact'): void {
  const run = liveRuns(ctx).find(({ before }) => before === id)
  if (!run) return
  throw new SavepointError('snapshot.pinned', `Cannot ${verb} ${id}: it is the state before ${run.id}, which goes on`, {
    hint: `Wait until the run has ended, or stop it and take it back: \`savepoint undo\``,
  })
}

const tagsOf = (ctx: Context, snapshot: Snapshot): string[] =>
  [...ctx.db.tags()].filter(([, id]) => id === snapshot.id).map(([name]) => name)

/** Oldest first; one that comes from another stands behind it, although it may have been made before (by compacting, too). */
function inOrderOfStates(ctx: Context, snapshots: Snapshot[]): Snapshot[] {
  const named = new Map(snapshots.map(snapshot => [snapshot.id, snapshot]))
  const nearest = ({ parent }: Snapshot): string | undefined => {
    let at = parent
    while (at !== undefined && !named.has(at)) at = ctx.db.snapshot(at)?.parent
    return at
  }
  const ordered = new Set<Snapshot>()
  const add = (snapshot: Snapshot): void => {
    const line = [snapshot]
    for (let above = nearest(snapshot); above !== undefined; above = nearest(named.get(above)!)) {
      if (ordered.has(named.get(above)!)) break
      line.unshift(named.get(above)!)
    }
    for (const each of line) ordered.add(each)
  }
  for (const snapshot of snapshots.toSorted((a, b) => a.seq - b.seq)) add(snapshot)
  return [...ordered]
}

/** The nearest ancestor of the oldest that is not itself compacted. */
function outsideParent(ctx: Context, snapshots: Snapshot[]): string | undefined {
  const inside = new Set(snapshots.map(snapshot => snapshot.id))
  let parent = snapshots[0]!.parent
  while (parent !== undefined && inside.has(parent)) parent = ctx.db.snapshot(parent)?.parent
  return parent
}

const nameAll = (snapshots: Snapshot[]): string =>
  snapshots.length <= 3 ? snapshots.map(snapshot => snapshot.id).join(', ') : plural('snapshot', snapshots.length)
