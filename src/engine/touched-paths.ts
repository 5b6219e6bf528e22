/** Which paths a run has touched, by its trace. */
import { isDamage } from '../errors/errors.ts'
import type { Change, Entry } from '../model/entry.ts'
import { parentOf, type Raw } from '../model/raw-path.ts'
import type { Run } from '../model/snapshot.ts'
import { sameContent, sameMetadata } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Touched } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { withoutLooks } from './index-writers.ts'
import { NamesOverTime } from './names-over-time.ts'
import { recordedRoot } from './operations.ts'
import { existsLive } from './resolve-path.ts'
import type { TraceSummary } from './results.ts'

const keyOf = (run: string): string => `trace:${run}`

/** `lostChanges`: of what was lost, that of which it is not known what it changed; older ones do not say. */
type SavedSummary = TraceSummary & { lostChanges?: number }

/** Kept with the timeline, so that it is known later whether the trace can be relied on. */
export function saveTraceSummary(ctx: Context, run: string, summary: SavedSummary): void {
  ctx.db.setMeta(keyOf(run), JSON.stringify(summary))
}

/** Its trace is about to go: it cannot be relied on. */
export const forgetTraceSummary = (db: Context['db'], run: string): void => db.setMeta(keyOf(run), 'null')

const summaryOf = (ctx: Context, run: string): SavedSummary | null => JSON.parse(ctx.db.meta(keyOf(run)) ?? 'null')

/** Of a run that has ended: whether something of it was not seen. */
export const hasHoles = (ctx: Context, run: string): boolean => (summaryOf(ctx, run)?.lost ?? 0) > 0

/** Of a run that is over: its trace ends where we were killed. */
export const wasKilled = (ctx: Context, run: string): boolean =>
  ctx.db.meta(keyOf(run)) === undefined && !isBlind(ctx, run)

interface During {
  /** What it moved before that does not count. */
  since?: number
  /** By the names of that time. */
  until?: number | undefined
}

/** Of a run that has ended: whether processes of it have gone on. */
export const hasSurvivors = (ctx: Context, run: string): boolean => summaryOf(ctx, run)?.survivors === true

/** Undefined when its trace is not complete: nobody knows. What processes do that outlive the run is not its work any more. */
export function touchedBy(ctx: Context, run: string, during?: During): ((path: Raw) => boolean) | undefined {
  const summary = summaryOf(ctx, run)
  return !summary || (summary.lostChanges ?? summary.lost) > 0 ? undefined : touchedSoFar(ctx, run, during)
}

/**
 * Of a run that has ended: what its trace tells, where it ends because we were killed. Undefined when there is none, or when what
 * was lost may be anything.
 */
export function touchedUntilKilled(ctx: Context, run: string, during?: During): ((path: Raw) => boolean) | undefined {
  return wasKilled(ctx, run) ? touchedSoFar(ctx, run, during) : undefined
}

/** No call that is told mounts something, or writes to a pipe, and few tracers tell who makes a subvolume: whoever was at work counts as who did it. */
export const isUntold = (change: Change): boolean =>
  change.before?.reason === 'mount' || change.after?.reason === 'mount' || isTimeOfNode(change)

/** It has no content: what goes through it moves its time, and changes nothing. */
export const isNode = ({ kind }: Entry): boolean => kind === 'fifo' || kind === 'char' || kind === 'block'

export const isTimeOfNode = ({ before, after }: Change): boolean =>
  before !== undefined &&
  after !== undefined &&
  isNode(after) &&
  sameContent(before, after) &&
  sameMetadata(before, after)

const blindKey = (run: string): string => `blind:${run}`

/** Not all that it changes is told. */
export const noteBlind = (ctx: Context, run: string): void => ctx.db.setMeta(blindKey(run), '1')

export const isBlind = (ctx: Context, run: string): boolean => ctx.db.meta(blindKey(run)) !== undefined

/** Of a run that is taken back. */
export function sayBlind(ctx: Context, run: string): void {
  if (isBlind(ctx, run))
    ctx.notice(`what others changed while ${run} went on goes with it: it was not traced who changed what`)
}

/** What is known until now, complete or not. */
export function touchedSoFar(ctx: Context, run: string, { since = 0, until }: During = {}): (path: Raw) => boolean {
  const inBefore = entriesOf(ctx, ctx.db.runOf(run)?.before)
  // Then nobody knows what was in the directories that it moved.
  if (!inBefore) return isTouchedIn(ctx.db.events.touchedBy(run))
  const touched = withoutLooks(ctx, run, ctx.db.events.firstTouches(run))
  const isRestored = restoredIn(ctx, run)
  const names = namesIn(ctx, run, until)
  const isLeft = presenceAfter(ctx, run, until)
  const isNamed = (path: Raw, by = touched): boolean =>
    by.has(path) || names.namesOf(path).some(({ name, at }) => (by.get(name) ?? Infinity) <= at)
  let others: Map<Raw, number>[] | undefined
  const isOthers = (isTheirs: (touched: Map<Raw, number>) => boolean): boolean => {
    others ??= runsBeside(ctx, run, until).map(({ id }) => withoutLooks(ctx, id, ctx.db.events.firstTouches(id)))
    return others.some(isTheirs)
  }
  // No run, but somebody else may have taken it out of a directory before that was moved, or since.
  const isGone = (path: Raw | undefined): boolean =>
    path !== undefined && !isLeft(path) && !isNamed(path) && !isOthers(each => isNamed(path, each))
  // By what is told of a directory that it renamed: it took along what was there, and what it or another run had made there.
  const isMoved = (path: Raw): boolean => {
    if (names.hasMoved(run, path, since) && inBefore(path) && !isGone(names.nowOf(path))) return true
    if (names.broughtBy(path)?.by === run) return true
    const earlier = names.namesOf(path)
    if (isNamed(path) || earlier.some(({ name }) => isRestored(name))) return true
    const taken = earlier.filter(({ by, at }) => by === run && at >= since)
    if (taken.length === 0) return false
    const first = names.firstOf(path)
    if (first !== undefined && first !== path && inBefore(first)) return true
    return isOthers(each => taken.some(({ name, at }) => (each.get(name) ?? Infinity) <= at))
  }
  return path => isRestored(path) || isMoved(path)
}

/** Whether something is there when the run has ended, or now if it goes on. Of another time it is not known: then all counts as there. */
function presenceAfter(ctx: Context, run: string, until: number | undefined): (path: Raw) => boolean {
  const { after, endedAt } = ctx.db.runOf(run)!
  const inAfter = entriesOf(ctx, after)
  if (inAfter && (until ?? endedAt) === endedAt) return path => inAfter(path) !== undefined
  return endedAt === undefined ? path => existsLive(ctx, path) : () => true
}

/** How names have changed since the run began, by it and by those that went on at the same time. */
export function namesIn(ctx: Context, run: string, until?: number): NamesOverTime {
  const names = new NamesOverTime()
  const own = ctx.db.runOf(run)!
  const end = until ?? own.endedAt ?? Infinity
  const changes = ctx.db.events.nameChangesOf([run, ...runsBeside(ctx, run, until).map(({ id }) => id)])
  for (const { run: by, at, ...change } of changes) {
    const isMeant = by === run ? at <= (until ?? Infinity) : at >= own.startedAt && at <= end
    if (isMeant) names.note({ ...change, at, by })
  }
  return names
}

function runsBeside(ctx: Context, run: string, until: number | undefined): Run[] {
  const runs = ctx.db.runs()
  const own = runs.find(({ id }) => id === run)!
  const end = until ?? own.endedAt ?? Infinity
  return runs.filter(
    ({ id, startedAt, endedAt }) => id !== run && startedAt <= end && (endedAt ?? Infinity) >= own.startedAt,
  )
}

/** What went back to an earlier state by a command of the run itself: of a directory, only what was in it. */
function restoredIn(ctx: Context, run: string): (path: Raw) => boolean {
  const paths = new Set<Raw>()
  for (const { detail } of ctx.db.operations()) {
    const [before, after] = [recordedRoot(detail, 'before_root'), recordedRoot(detail, 'after_root')]
    if (detail.inside !== run || before === undefined || after === undefined) continue
    try {
      for (const { path } of stateChanges(ctx.store, before, after)) paths.add(path)
    } catch (error) {
      // It cannot be undone any more, and gc has removed its states.
      if (!isDamage(error)) throw error
    }
  }
  return path => paths.has(path)
}

function entriesOf(ctx: Context, id: string | undefined): ((path: Raw) => Entry | undefined) | undefined {
  const state = id === undefined ? undefined : ctx.db.snapshot(id)
  if (!state) return undefined
  const tree = rootTreeOf(ctx.store, state.root)
  return path => entryAt(ctx.store, tree, path)
}

export const isTouchedIn =
  ({ paths, moved }: Touched) =>
  (path: Raw): boolean => {
    if (paths.has(path)) return true
    // Moving a directory touches all that is in it.
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) if (moved.has(above)) return true
    return false
  }
