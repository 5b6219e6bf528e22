/**
 * Completes a restore that was interrupted (kill -9, power cut). The journal says what was wanted; what is there now,
 * leftovers of the stage included, is captured first, so that nothing is lost; then the rest is carried out.
 */
import { idFromHex } from '../model/id.ts'
import { removeTree } from '../targets/dir/remove-tree.ts'
import { SafeDirs } from '../targets/dir/safe-dirs.ts'
import { statDir, withDir } from '../targets/dir/dir-target.ts'
import { formatAge } from '../model/format.ts'
import { captureLive } from './capture-live.ts'
import type { Context } from './context.ts'
import { type Journal, readJournal, removeJournal } from './journal.ts'
import { carryOut, planFor, type RestoreRequest } from './restore.ts'
import { addSnapshot } from './snapshot.ts'

export const hasPending = (ctx: Context): boolean => readJournal(ctx.timelineDir) !== undefined

/** Called under the timeline's lock before anything else. Does nothing when there is nothing to complete. */
export async function recoverPending(ctx: Context): Promise<void> {
  const journal = readJournal(ctx.timelineDir)
  if (!journal) return
  const isRecorded = ctx.db.operations().some(operation => operation.detail.token === journal.token)
  if (isRecorded || !statDir(ctx.targetPath)) {
    removeJournal(ctx.timelineDir)
    return
  }
  await complete(ctx, journal)
  ctx.notice(`completed a ${journal.kind} that was interrupted ${formatAge(ctx.now() - journal.startedAt)}: ${journal.summary}`)
}

async function complete(ctx: Context, journal: Journal): Promise<void> {
  const request: RestoreRequest = {
    wanted: idFromHex(journal.wanted),
    base: journal.base === undefined ? undefined : idFromHex(journal.base),
    scope: journal.scope,
    withoutGit: journal.withoutGit,
    kind: journal.kind,
    summary: journal.summary,
    snapshot: journal.snapshot === undefined ? undefined : ctx.db.snapshot(journal.snapshot),
    headAfter: journal.headAfter,
    detail: journal.detail,
    isStep: journal.detail.is_step === true,
  }
  const leftovers = await captureLive(ctx, { override: request.wanted, includeStage: true, ignoreFloor: true, phase: 'recovering' })
  addSnapshot(ctx, leftovers, { type: 'safety', command: `state found after an interrupted ${journal.kind}` })
  await withDir(ctx.targetPath, root => removeTree(root, journal.stage, new SafeDirs(root)))
  const live = await captureLive(ctx, { override: request.wanted, ignoreFloor: true, phase: 'recovering' })
  const safety = ctx.db.snapshot(journal.safety)!
  await carryOut(ctx, request, journal, live, planFor(ctx, request, live), safety)
  if (typeof journal.detail.step_of === 'string') {
    ctx.db.setOperationState(journal.detail.step_of, journal.kind === 'undo' ? 'undone' : 'done')
  }
}
