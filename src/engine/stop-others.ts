/** Before files go back under several runs: those that carry nothing out themselves are stopped first. */
import { nameCommand } from '../model/shell-quote.ts'
import type { Context } from './context.ts'
import { askRun, Unreachable } from './control-client.ts'
import { liveRuns } from './live-runs.ts'

export async function stopOthers(ctx: Context, own: string, why: string): Promise<void> {
  // The newest first: it may be a part of an older one.
  for (const run of liveRuns(ctx).reverse()) {
    if (run.id === own) continue
    try {
      await askRun(run, { op: 'shutdown', why }, ctx)
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      if (!error.isGone) ctx.notice(`${run.id} (${nameCommand(run.command)}) goes on: ${error.message}`)
    }
  }
}
