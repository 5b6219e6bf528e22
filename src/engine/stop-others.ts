/** Before files go back under several runs of one timeline: those that carry nothing out themselves are stopped or held still first. */
import type { Context } from './context.ts'
import { type LiveRunEntry, liveRuns } from './live-runs.ts'
import { holdingNeighbours, stopNeighbours } from './neighbouring-runs.ts'

/** The newest first: it may be a part of an older one. */
const others = (ctx: Context, own: string): LiveRunEntry[] =>
  liveRuns(ctx)
    .reverse()
    .filter(({ id }) => id !== own)

export const stopOthers = (ctx: Context, own: string, why: string): Promise<void> =>
  stopNeighbours(ctx, others(ctx, own), why)

export const holdingOthers = <T>(ctx: Context, own: string, work: () => Promise<T>): Promise<T> =>
  holdingNeighbours(ctx, others(ctx, own), work)
