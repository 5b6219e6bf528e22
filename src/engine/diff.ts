/** `diff`, `changes` and `status`: what differs between two states, one of which may be the live tree. */
import { nativeBackend } from '../backends/select.ts'
import { isDiskFull } from '../errors/errors.ts'
import type { Change, Entry } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import { hashBytes } from '../model/id.ts'
import { type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { type Operation, type Run, type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { MAX_SHOWN_BYTES, readContent } from '../store/read-content.ts'
import { countChanges } from '../store/tree-diff.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import { findRun, requireHead, resolveSnapshot } from '../timeline/resolve-ref.ts'
import { usedBackend } from './backend.ts'
import { type Live, lookAtLive } from './capture-live.ts'
import { checkFloor, checkLimit } from './capture-room.ts'
import { changedOutside, firstOutside } from './changed-outside.ts'
import { changesOfRun } from './changes-of-run.ts'
import { type Context, holdObjects } from './context.ts'
import { currentWriter } from './current-writer.ts'
import { leftHistory, sayWhatLeft } from './left-history.ts'
import { sayWhatIsLeft } from './left-spools.ts'
import { liveRuns } from './live-runs.ts'
import { isAfterRun } from './new-operation.ts'
import { operationsInOrder, reachableOperations } from './operations.ts'
import { readLive, resolvePath } from './resolve-path.ts'
import type { DiffResult, InterruptedRun, StatusResult } from './results.ts'
import { isInterrupted } from './run-state.ts'
import type { DiffOptions } from './savepoint.ts'
import { readAncestor } from './shown-snapshot.ts'
import { unlessDamaged } from './snapshot.ts'
import { canHaveBefore } from './state-before.ts'

/**
 * Nothing given: HEAD against the live tree. One: that snapshot against the live tree, or what a run that has ended did from
 * its beginning to its end. Two: one against the other.
 */
export async function diff(ctx: Context, options: DiffOptions): Promise<DiffResult> {
  const scope = options.paths?.length ? options.paths.map(path => resolvePath(ctx, path)) : undefined
  const from = options.from === undefined ? requireHead(ctx.db) : resolveSnapshot(ctx.db, options.from)
  const run = options.to === undefined ? endedRun(ctx, options.from, from) : undefined
  const to = options.to === undefined ? run && ctx.db.snapshot(run.after) : resolveSnapshot(ctx.db, options.to)
  const after = (to ?? (await captureForReading(ctx))).root
  if (!to) sayUnknown(ctx, from)
  const wholeTarget = scope?.includes('') ? undefined : scope
  const all = [...stateChanges(ctx.store, from.root, after, wholeTarget)]
  const changes = run && to ? changesOfRun(ctx, run, all) : all
  return {
    from: from.id,
    to: to?.id ?? 'live',
    changes: to ? changes : withLeft(changes, leftHistory(ctx, from.root, after, wholeTarget)),
    content: (change, side) => {
      if (side === 'before') return contentOf(ctx, change.before)
      return to ? contentOf(ctx, change.after) : liveContentOf(ctx, change.path, change.after)
    },
  }
}

/** When `ref` names one. */
function endedRun(ctx: Context, ref: string | undefined, from: Snapshot): (Run & { after: string }) | undefined {
  const run = ref === undefined || ref === from.id ? undefined : findRun(ctx.db, ref)
  return run?.after === undefined || run.before !== from.id ? undefined : { ...run, after: run.after }
}

/** Both in the order of paths. What trees tell by themselves stands in both; the live file says more. */
const withLeft = (all: Change[], left: Iterable<Change>): Change[] => {
  const more = [...left]
  const told = new Set(more.map(({ path }) => path))
  const changes = more.length === 0 ? all : all.filter(({ path }) => !told.has(path))
  return more.length === 0 ? changes : [...changes, ...more].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** What changed since the snapshot that the live state descends from. */
export const changes = (ctx: Context): Promise<DiffResult> => diff(ctx, {})

/** Between two states, which never change: those who watch a target ask for the newest again and again. */
const compared = new Map<string, readonly Change[]>()
const MAX_COMPARED = 8
const MAX_COMPARED_CHANGES = 500

/** The changes of one snapshot against its parent. */
function snapshotChanges(ctx: Context, snapshot: Snapshot): Change[] {
  const parent = readAncestor(ctx, snapshot.parent)
  const states = `${parent?.root} ${snapshot.root}`
  const known = compared.get(states)
  if (known) return [...known]
  const changes = [...stateChanges(ctx.store, parent?.root, snapshot.root)]
  if (compared.size >= MAX_COMPARED) compared.delete(compared.keys().next().value!)
  if (changes.length <= MAX_COMPARED_CHANGES) compared.set(states, changes)
  return [...changes]
}

export function diffOfSnapshot(ctx: Context, snapshot: Snapshot): DiffResult {
  const from = readAncestor(ctx, snapshot.parent)?.id ?? 'nothing'
  if (snapshot.root !== UNREAD_ROOT && from !== (snapshot.parent ?? 'nothing'))
    ctx.notice(`${snapshot.parent} is not read yet: what ${snapshot.id} changed is told against ${from}`)
  return {
    from,
    to: snapshot.id,
    changes: snapshotChanges(ctx, snapshot),
    content: (change, side) => contentOf(ctx, side === 'before' ? change.before : change.after),
  }
}

/** A state around a restore for which there was little room has only what that wrote. */
function sayUnknown(ctx: Context, { id, root, skipped, skippedCount }: Snapshot): void {
  if (root !== UNREAD_ROOT && skipped.some(({ reason }) => reason === 'no-room'))
    ctx.notice(
      `${id} is PARTIAL: of ${plural('path', skippedCount)} that it has not, nobody can tell whether they changed since`,
    )
}

export async function status(ctx: Context): Promise<StatusResult> {
  if (ctx.config.snapshots.disabled)
    ctx.notice('snapshots are turned off by the configuration: nothing new is captured')
  const backend = usedBackend(ctx)
  if (!ctx.config.snapshots.disabled && !ctx.unwritable) sayIfNoRoom(ctx, backend)
  sayWhatIsLeft(ctx)
  const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
  if (head) sayUnknown(ctx, head)
  const live = await captureForReading(ctx)
  const changed =
    head &&
    head.root !== UNREAD_ROOT &&
    withLeft([...stateChanges(ctx.store, head.root, live.root)], leftHistory(ctx, head.root, live.root))
  // What went by a rule is nobody's doing.
  const lastOperation = operationsInOrder(ctx.db).findLast(({ kind }) => kind !== 'retention')
  if (lastOperation?.kind === 'run') sayWhatRunLeft(ctx, lastOperation, live)
  return {
    target: showPath(rawFromBytes(ctx.targetPath)),
    timeline: ctx.timelineId,
    home: ctx.home,
    backend,
    head,
    snapshots: ctx.db.snapshots().length,
    storeBytes: ctx.store.index.storedBytes(),
    changes: changed || undefined,
    counts: countChanges(changed || []),
    skipped: live.skipped,
    lastOperation,
    lastChangedOutside: lastOperation ? changedOutside(ctx, lastOperation) : [],
    writer: currentWriter(ctx),
    running: liveRuns(ctx).map(({ socket, supervisor, ...run }) => run),
    interrupted: interruptedRuns(ctx, live),
  }
}

/** HEAD is the state after it, which does not have that either. */
function sayWhatRunLeft(ctx: Context, { before: id, after }: Operation, live: Live): void {
  const before = id === undefined ? undefined : ctx.db.snapshot(id)
  if (before && before.deletedAt === undefined && after === ctx.db.head && after !== id)
    unlessDamaged(() => sayWhatLeft(ctx, before, live.root))
}

/** Whoever relies on the next one, or on a run, must know before. */
function sayIfNoRoom(ctx: Context, backend: string): void {
  const none = 'no snapshot can be taken, and no run begun'
  sayIfRefused(ctx, checkLimit, none)
  // What a filesystem keeps takes nothing of what shall stay free.
  sayIfRefused(
    ctx,
    checkFloor,
    nativeBackend(backend) ? `only ${backend} keeps snapshots, and no run can be begun` : none,
  )
}

function sayIfRefused(ctx: Context, check: (ctx: Context) => void, meanwhile: string): void {
  try {
    check(ctx)
  } catch (error) {
    if (!isDiskFull(error)) throw error
    ctx.warn(`${(error as Error).message}: until there is room ${meanwhile}`)
  }
}

function interruptedRuns(ctx: Context, live: Live): InterruptedRun[] {
  const runs = ctx.db
    .runs()
    .reverse()
    .filter(run => isInterrupted(ctx, run))
  const next = runs.length === 0 ? undefined : reachableOperations(ctx.db).findLast(({ state }) => state === 'done')
  return runs.map(run => {
    const before = run.before === undefined ? undefined : ctx.db.snapshot(run.before)
    const isThere = before !== undefined && before.deletedAt === undefined
    return {
      run,
      isProtected: isThere || (run.before === undefined && canHaveBefore(ctx, run)),
      isNext: !next || !isAfterRun(next, run.id),
      changedOutside: isThere ? firstOutside(ctx, before.root, live.root) : [],
    }
  })
}

const captureForReading = async (ctx: Context): Promise<Live> => {
  await holdObjects(ctx)
  return lookAtLive(ctx)
}

const contentOf = (ctx: Context, entry: Entry | undefined): Buffer | undefined =>
  entry?.kind === 'file' && entry.reason === undefined ? readContent(ctx.store, entry) : undefined

/** What could not be stored is read where it lies. undefined also when it has changed since it was looked at. */
function liveContentOf(ctx: Context, path: Raw, entry: Entry | undefined): Buffer | undefined {
  if (entry?.kind !== 'file' || ctx.store.has(entry.content)) return contentOf(ctx, entry)
  const bytes = entry.size > MAX_SHOWN_BYTES ? undefined : readLive(ctx, path)
  return bytes && hashBytes(bytes) === entry.content ? bytes : undefined
}
