/**
 * Completes a restore that was interrupted (kill -9, power cut). The journal says what was wanted; what is there now,
 * leftovers of the stage included, is captured first, so that nothing is lost; then the rest is carried out.
 */

import type { Id } from '../model/entry.ts'
import { formatAge, plural } from '../model/format.ts'
import { idFromHex } from '../model/id.ts'
import { addon } from '../native/addon.ts'
import { removeAbandoned } from '../store/durable.ts'
import { sameContent, sameEntry } from '../store/tree-diff.ts'
import { allEntries, entryAt } from '../store/tree-lookup.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { lookAtDir, withDir } from '../targets/dir/dir-target.ts'
import { removeTree } from '../targets/dir/remove-tree.ts'
import { RestoreFailed } from '../targets/dir/restore-failed.ts'
import { type PlanAction, planRestore, type RestorePlan } from '../targets/dir/restore-plan.ts'
import { chmodRoot } from '../targets/dir/root-mode.ts'
import { SafeDirs } from '../targets/dir/safe-dirs.ts'
import { KEPT_SUFFIX, markStage } from '../targets/dir/stage-mark.ts'
import type { Live } from './capture-live.ts'
import { captureBefore, sayWhatHadNoRoom } from './capture-sparingly.ts'
import { type Context, requireWritable } from './context.ts'
import { type Journal, readJournal, removeJournal, writeJournal } from './journal.ts'
import { closeAgain, closeOpened, isLeftOpen, isOpened } from './opened-modes.ts'
import { carryOut, overrideOf, planFor, type RestoreRequest } from './restore.ts'
import { addSnapshot } from './snapshot.ts'

export const hasPending = (ctx: Context): boolean => readJournal(ctx.timelineDir) !== undefined || isLeftOpen(ctx)

export const notCompleted = (error: unknown): string =>
  `a command that was interrupted is not completed yet: ${(error as Error).message}`

/**
 * Called under the timeline's lock before anything is changed. Does nothing when there is nothing to complete; throws when
 * the home cannot be written, pending or not. Returns what it has completed.
 */
export async function recoverPending(ctx: Context): Promise<Journal | undefined> {
  requireWritable(ctx)
  removeAbandoned(ctx.timelineDir)
  await closeOpened(ctx)
  const journal = readJournal(ctx.timelineDir)
  if (!journal) return undefined
  const isRecorded = ctx.db.operations().some(operation => operation.detail.token === journal.token)
  if (isRecorded) {
    removeJournal(ctx.timelineDir)
    return undefined
  }
  // Perhaps its disk comes back. If it does not, making the directory anew ends what was interrupted.
  if (!lookAtDir(ctx.targetPath)) return undefined
  try {
    await complete(ctx, journal)
  } catch (error) {
    if (!(error instanceof RestoreFailed) || !error.reversed) throw error
    // What the store has lost does not come back, and must not stand in the way of every other command.
    if (error.code === 'store.damaged') {
      giveUp(ctx, journal, error)
      return undefined
    }
    writeJournal(ctx.timelineDir, journal)
    throw error
  }
  ctx.notice(
    `completed ${journal.kind === 'undo' ? 'an' : 'a'} ${journal.kind} that was interrupted ${formatAge(ctx.now() - journal.startedAt)}: ${journal.summary}`,
  )
  return journal
}

function giveUp(ctx: Context, journal: Journal, error: RestoreFailed): void {
  removeJournal(ctx.timelineDir)
  ctx.notice(
    `${journal.kind === 'undo' ? 'an' : 'a'} ${journal.kind} that was interrupted cannot be completed (${error.message}); the state before it is ${journal.safety}`,
  )
}

async function complete(ctx: Context, journal: Journal): Promise<void> {
  const request: RestoreRequest = {
    wanted: idFromHex(journal.wanted),
    base: journal.base === undefined ? undefined : idFromHex(journal.base),
    others: journal.others?.map(({ before, after, ...span }) => ({
      before: idFromHex(before),
      after: idFromHex(after),
      ...span,
    })),
    scope: journal.scope,
    withoutGit: journal.withoutGit,
    kind: journal.kind,
    summary: journal.summary,
    snapshot: journal.snapshot === undefined ? undefined : ctx.db.snapshot(journal.snapshot),
    headAfter: journal.headAfter,
    headIfSame: journal.headIfSame,
    detail: journal.detail,
    isStep: journal.detail.is_step === true,
    remade: journal.detail.remade === true,
  }
  const leftovers = await captureBefore(ctx, request, {
    override: overrideOf(request),
    stage: journal.stage,
    readOwned: true,
    ignoreFloor: true,
    phase: 'recovering',
  })
  const found = addSnapshot(ctx, leftovers, {
    type: 'safety',
    command: `state found after an interrupted ${journal.kind}`,
  })
  sayWhatHadNoRoom(ctx, leftovers)
  await withDir(ctx.targetPath, async root => {
    await clearStage(ctx, root, journal.stage, leftovers.tree)
    const [was, now] = [idFromHex(journal.safetyRoot), leftovers.root].map(id => rootEntryOf(ctx.store, id))
    if (isOpened(was!, now!)) chmodRoot(root, was!.mode)
  })
  const live = await captureBefore(ctx, request, {
    override: overrideOf(request),
    readOwned: true,
    ignoreFloor: true,
    phase: 'recovering',
  })
  const safety = ctx.db.snapshot(journal.safety)!
  const plan = withoutEdits(ctx, planRest(ctx, request, journal, live), journal)
  await carryOut(ctx, { request, journal, live, plan, safety })
  ctx.notice(`what was found before completing it is kept in ${found.id}`)
  if (plan.leftAlone.length > 0) ctx.notice(`${plural('path', plan.leftAlone.length)} edited since then: left alone`)
}

/** A file that is neither as it was before nor as it shall be was edited after the interruption: it stays. */
function withoutEdits(ctx: Context, plan: RestorePlan, journal: Journal): RestorePlan {
  const states = [journal.safetyRoot, journal.wanted].map(root => rootTreeOf(ctx.store, idFromHex(root)))
  const isOurs = (action: PlanAction): boolean => {
    if (action.action === 'create' || action.live.kind === 'dir') return true
    return states.some(tree => {
      const entry = entryAt(ctx.store, tree, action.path)
      return entry !== undefined && sameContent(entry, action.live)
    })
  }
  const edited = plan.actions.filter(action => !isOurs(action)).map(({ path }) => ({ path, why: 'edited' as const }))
  return { ...plan, actions: plan.actions.filter(isOurs), leftAlone: [...plan.leftAlone, ...edited] }
}

/** What could not be captured is not removed; what cannot be removed must not stand in the way of this restore or the next. */
async function clearStage(ctx: Context, root: number, stage: string, found: Id): Promise<void> {
  const staged = entryAt(ctx.store, found, stage)
  if (!staged) return
  const isStored = staged.kind === 'dir' && isWhole(ctx, staged.content)
  const safe = new SafeDirs(root)
  try {
    if (isStored && (await removeTree(root, stage, safe)).length === 0) return
    markStage(root, stage)
    safe.in([''], () => addon.renameAt(root, stage, `${stage}${KEPT_SUFFIX}`, 0))
  } finally {
    safe.close()
  }
  ctx.notice(
    `${stage}${KEPT_SUFFIX} holds what could not be ${isStored ? 'removed; its content is in the snapshots' : 'stored'}`,
  )
}

/** Whether everything in the tree was captured, but for sockets, which have no content. */
function isWhole(ctx: Context, tree: Id): boolean {
  for (const { entry } of allEntries(ctx.store, tree))
    if (entry.kind === 'unknown' && entry.reason !== 'socket') return false
  return true
}

/**
 * What is left to do. Paths that it had not chosen are not touched: what appeared there since is somebody else's. And a
 * restore that asks at each path whether somebody else changed it cannot ask again: half done, it would meet its own
 * traces. So the paths that it had chosen are brought to their end, and only those.
 */
function planRest(ctx: Context, request: RestoreRequest, journal: Journal, live: Live): RestorePlan {
  const chosen = planFor(ctx, request, { ...live, tree: rootTreeOf(ctx.store, idFromHex(journal.safetyRoot)) }).actions
  const wanted = rootTreeOf(ctx.store, request.wanted)
  const scope = chosen.flatMap(action => (action.action === 'metadata' ? [] : [action.path]))
  const plan = planRestore({ store: ctx.store, live: live.tree, wanted, scope, withoutGit: request.withoutGit })
  for (const action of chosen) {
    const now = action.action === 'metadata' ? entryAt(ctx.store, live.tree, action.path) : undefined
    if (action.action === 'metadata' && now?.kind === action.entry.kind && !sameEntry(now, action.entry)) {
      plan.actions.push({ ...action, live: now })
    }
  }
  const planned = new Set(plan.actions.map(action => action.path))
  for (const action of closeAgain(ctx.store, rootTreeOf(ctx.store, idFromHex(journal.safetyRoot)), live.tree))
    if (!planned.has(action.path)) plan.actions.push(action)
  return plan
}
