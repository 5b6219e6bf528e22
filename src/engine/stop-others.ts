/** Before files go back under several runs of one timeline: those that carry nothing out themselves are stopped first. */
import type { Context } from './context.ts'
import { liveRuns } from './live-runs.ts'
import { stopNeighbours } from './neighbouring-runs.ts'

/** The newest first: it may be a part of an older one. */
export const stopOthers = (ctx: Context, own: string, why: string): Promise<void> =>
  stopNeighbours(
    ctx,
    liveRuns(ctx)
      .reverse()
      .filter(({ id }) => id !== own),
    why,
  )
