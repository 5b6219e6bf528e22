/** What a command that was killed has left to be done: whether there is such, and to complete it when a timeline is opened. */
import { join } from 'node:path'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { tryLock } from '../store/file-lock.ts'
import { type Context, withTimelineLock } from './context.ts'
import { hasJournal, type Journal, readJournal } from './journal.ts'
import { isLeftOpen } from './opened-modes.ts'
import { completePurge, isPurgePending } from './purge.ts'
import { hasPending, notCompleted, recoverPending } from './recover.ts'

/**
 * What was interrupted is completed by the next command, whatever it is, unless somebody is at work. Where that is not
 * possible now (the disk is full), looking around still is; commands that change something try again and fail.
 * `leaveStep`: but for an `undo` or `redo`.
 */
export async function recoverAtOpen(ctx: Context, leaveStep: boolean): Promise<void> {
  try {
    if (hasPending(ctx) && !(leaveStep && isStep(readJournal(ctx.timelineDir)))) {
      await withTimelineLock({ ...ctx, lockWaitMs: 0 }, 'recover', () => recoverPending(ctx))
    }
    if (isPurgePending(ctx)) await completePurge(ctx)
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    if ((error as SavepointError).code !== 'busy') ctx.warn(notCompleted(error))
  }
}

const isStep = (journal: Journal | undefined): boolean => journal?.kind === 'undo' || journal?.kind === 'redo'

/** Something is to be completed, could be, and nobody is at it. */
export function isInterrupted(ctx: Context): boolean {
  if (ctx.unwritable || !(hasJournal(ctx.timelineDir) || isLeftOpen(ctx) || isPurgePending(ctx))) return false
  const lock = tryLock(join(ctx.timelineDir, 'lock'), 'shared', 'look')
  lock?.release()
  return lock !== undefined
}
