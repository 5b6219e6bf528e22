/** "Since": a time, a while, a snapshot, or a run; as a place in the log of events. */
import { SavepointError } from '../errors/errors.ts'
import { parseMoment } from '../model/moment.ts'
import type { Position } from '../timeline/log-rows.ts'
import { findRun, resolveSnapshot } from '../timeline/resolve-ref.ts'
import type { Context } from './context.ts'

/** Nothing older than `at`; or only what stands after a place. */
export type Since = { at: number } | { after: Position }

/** A run from its start on, a snapshot from its taking on, without that. */
export function parseSince(ctx: Context, text: string): Since {
  const at = parseMoment(text, ctx.now())
  if (at !== undefined) return { at }
  const run = findRun(ctx.db, text)
  const began = run && ctx.db.log.find('run', { run: run.id })
  // Before its own row, so that its start is among it.
  if (began) return { after: { ...began, seq: began.seq - 1 } }
  const { id, createdAt } = resolveSince(ctx, text)
  const taken = ctx.db.log.find('snapshot', { ref: id })
  return taken ? { after: taken } : { at: createdAt }
}

function resolveSince(ctx: Context, text: string) {
  try {
    return resolveSnapshot(ctx.db, text)
  } catch (error) {
    if (!(error instanceof SavepointError) || error.code !== 'snapshot.unknown') throw error
    throw new SavepointError(
      'snapshot.unknown',
      `Cannot tell since when "${text}" is: it is no time, and no snapshot or run of this timeline`,
      { hint: 'A while (90s, 10m, 2h, 1d), a time (2026-01-31, 2026-01-31T14:30), a snapshot, or a run' },
    )
  }
}
