/** What live runs have seen and not written yet: a moment later it would be there, but whoever asks now means what happened until now. */
import { SavepointError } from '../errors/errors.ts'
import type { Context } from './context.ts'
import { askRun, Unreachable } from './control-client.ts'
import { liveRuns } from './live-runs.ts'

/** A run that takes longer is at work, or hangs: what it has written must do. */
const LIMIT_MS = 2000

export async function haveEventsWritten(ctx: Context): Promise<void> {
  if (ctx.scratch !== undefined) return
  const listener = { notice: () => {}, progress: undefined, signal: undefined, onUnstoppable: undefined }
  const asked = liveRuns(ctx).map(run => askRun(run, { op: 'save' }, listener, LIMIT_MS))
  for (const answer of await Promise.allSettled(asked)) {
    if (answer.status === 'fulfilled') continue
    const { reason } = answer
    if (!(reason instanceof Unreachable) && !(reason instanceof SavepointError)) throw reason
  }
}
