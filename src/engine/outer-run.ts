/** The run that a process belongs to, as its environment says: a shell that outlives a run (in tmux, say) has it from one that is over. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isDamage } from '../errors/errors.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { type Context, ownRun, RUN_VARIABLE } from './context.ts'
import { openTimeline } from './open-timeline.ts'
import { allTargets } from './target-registry.ts'

/** What is started from there is outside of every run. One whose supervisor was killed may go on, and has no end yet. */
export function leaveEndedRun(ctx: Context): void {
  const run = ownRun(ctx)
  if (run !== undefined && hasEnded(ctx, run)) ctx.env = { ...ctx.env, [RUN_VARIABLE]: undefined }
}

/** Whether a run of this very directory goes on around this process, which sees and guards all that is done here. */
export const isInOuterRun = (ctx: Context): boolean => ctx.db.unendedRuns().some(({ id }) => id === ownRun(ctx))

function hasEnded({ db, home }: Context, run: string): boolean {
  const known = endIn(db, run)
  if (known !== undefined) return known
  const elsewhere = allTargets(home).filter(({ directory }) => existsSync(join(directory, 'runs', run)))
  return elsewhere.some(({ directory }) => hasEndedIn(directory, run))
}

function hasEndedIn(directory: string, run: string): boolean {
  try {
    const db = openTimeline(directory)
    try {
      return endIn(db, run) === true
    } finally {
      db.close()
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    return false
  }
}

/** Undefined: it is none of this timeline. */
function endIn(db: TimelineDb, run: string): boolean | undefined {
  const found = db.runs().find(({ id }) => id === run)
  return found && found.endedAt !== undefined
}
