/** `run --on-failure`: what a command did that failed is taken back, if that was asked for. Its exit code stays the answer. */
import { SavepointError } from '../errors/errors.ts'
import type { Context } from './context.ts'
import { holdingNeighbours, neighbouringRuns } from './neighbouring-runs.ts'
import type { RunResult } from './results.ts'
import { rollback } from './rollback.ts'
import type { RunOptions } from './savepoint.ts'

export async function takeBackFailed(ctx: Context, result: RunResult, { onFailure }: RunOptions): Promise<RunResult> {
  const hasChanged = result.changes.length > 0 || result.movedTo !== undefined
  if (result.exitCode === 0 || !hasChanged || !result.run || !result.after || !onFailure) return result
  const isWanted = typeof onFailure === 'function' ? await onFailure(result) : onFailure === 'rollback'
  if (!isWanted) return result
  try {
    const { id } = result.run
    const takeBack = () => rollback(ctx, id, { all: true })
    return { ...result, takenBack: await holdingNeighbours(ctx, neighbouringRuns(ctx, undefined), takeBack) }
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    ctx.alarm(`the run is NOT taken back: ${error.message}`)
    return result
  }
}
