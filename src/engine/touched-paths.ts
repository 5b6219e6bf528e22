/** Which paths a run has touched, by its trace. */
import type { Entry } from '../model/entry.ts'
import { parentOf, type Raw } from '../model/raw-path.ts'
import { sameContent } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { Touched } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { MovedDirectories } from './moved-directories.ts'
import { existsLive } from './resolve-path.ts'
import type { TraceSummary } from './results.ts'

const keyOf = (run: string): string => `trace:${run}`

/** Kept with the timeline, so that it is known later whether the trace can be relied on. */
export function saveTraceSummary(ctx: Context, run: string, summary: TraceSummary): void {
  ctx.db.setMeta(keyOf(run), JSON.stringify(summary))
}

/** Its trace is about to go: it cannot be relied on. */
export const forgetTraceSummary = (db: Context['db'], run: string): void => db.setMeta(keyOf(run), 'null')

const summaryOf = (ctx: Context, run: string): TraceSummary | null => JSON.parse(ctx.db.meta(keyOf(run)) ?? 'null')

/** Of a run that has ended: whether something of it was not seen. */
export const hasHoles = (ctx: Context, run: string): boolean => (summaryOf(ctx, run)?.lost ?? 0) > 0

/** Undefined when its trace is not complete: nobody knows. */
export function touchedBy(ctx: Context, run: string): ((path: Raw) => boolean) | undefined {
  const summary = summaryOf(ctx, run)
  return !summary || summary.lost > 0 || summary.survivors ? undefined : touchedSoFar(ctx, run)
}

const blindKey = (run: string): string => `blind:${run}`

/** Not all that it changes is told. */
export const noteBlind = (ctx: Context, run: string): void => ctx.db.setMeta(blindKey(run), '1')

export const isBlind = (ctx: Context, run: string): boolean => ctx.db.meta(blindKey(run)) !== undefined

/** What is known until now, complete or not. */
export function touchedSoFar(ctx: Context, run: string): (path: Raw) => boolean {
  const touched = ctx.db.events.touchedBy(run)
  const { before, after } = ctx.db.runOf(run) ?? {}
  const inBefore = entriesOf(ctx, before)
  // Then nobody knows what was in the directories that it moved.
  if (!inBefore) return isTouchedIn(touched)
  const inAfter = entriesOf(ctx, after)
  const moved = new MovedDirectories(ctx.db.events.directoryMovesOf(run))
  const isNamed = (path: Raw): boolean => touched.paths.has(path)
  const isGone = (path: Raw): boolean => (inAfter ? inAfter(path) === undefined : !existsLive(ctx, path))
  const wentAway = (path: Raw): boolean => inBefore(path) !== undefined && isGone(path)
  const isNow = (from: Raw, path: Raw): boolean => {
    const [was, is] = [inBefore(from), inAfter?.(path)]
    // Of one that goes on nobody knows yet.
    return was !== undefined && (!inAfter || (is !== undefined && sameContent(was, is) && was.mode === is.mode))
  }
  return path => isNamed(path) || moved.have(path, isNamed, wentAway, isNow)
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
