/** Which paths a run has touched, by its trace. */
import { parentOf, type Raw } from '../model/raw-path.ts'
import type { Touched } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import type { TraceSummary } from './results.ts'

const TRACING = '"tracing"'

const keyOf = (run: string): string => `trace:${run}`

/** Kept with the timeline, so that it is known later whether the trace can be relied on. */
export function saveTraceSummary(ctx: Context, run: string, summary: TraceSummary): void {
  ctx.db.setMeta(keyOf(run), JSON.stringify(summary))
}

/** While a run goes on: whether its trace has all until now. What is once missing stays so. */
export class TraceSoFar {
  private readonly ctx: Context
  private readonly run: string
  private noted: boolean | undefined

  constructor(ctx: Context, run: string) {
    this.ctx = ctx
    this.run = run
  }

  note(isComplete: boolean): void {
    if (this.noted === isComplete || this.noted === false) return
    this.noted = isComplete
    try {
      this.ctx.db.setMeta(keyOf(this.run), isComplete ? TRACING : 'null')
    } catch {
      // What is traced goes on, whatever becomes of the timeline; the recorder says that it could not write.
    }
  }
}

/** Something is missing from it, or it is about to go: it cannot be relied on. */
export const forgetTraceSummary = (db: Context['db'], run: string): void => db.setMeta(keyOf(run), 'null')

/** Undefined when its trace is not complete: nobody knows. */
export function touchedBy(ctx: Context, run: string): ((path: Raw) => boolean) | undefined {
  const noted = ctx.db.meta(keyOf(run)) ?? 'null'
  // Of one that was killed, nobody has seen the end.
  if (noted === TRACING) return undefined
  const summary = JSON.parse(noted) as TraceSummary | null
  return !summary || summary.lost > 0 || summary.survivors ? undefined : touchedSoFar(ctx, run)
}

/** The same of a run that goes on. */
export const touchedUntilNow = (ctx: Context, run: string): ((path: Raw) => boolean) | undefined =>
  ctx.db.meta(keyOf(run)) === TRACING ? touchedSoFar(ctx, run) : undefined

/** What is known until now, complete or not. */
export const touchedSoFar = (ctx: Context, run: string): ((path: Raw) => boolean) =>
  isTouchedIn(ctx.db.events.touchedBy(run))

export const isTouchedIn =
  ({ paths, moved }: Touched) =>
  (path: Raw): boolean => {
    if (paths.has(path)) return true
    // Moving or removing a directory touches all that is in it.
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) if (moved.has(above)) return true
    return false
  }
