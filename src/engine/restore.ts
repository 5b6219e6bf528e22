/**
 * The one way in which the engine changes a target: safety capture, plan, journal, apply, look again, operation.
 * rollback, revert, undo and redo only say which state they want. Called under the timeline's lock, settled (settle.ts).
 */
import { cancelled, isDiskFull } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { idToHex } from '../model/id.ts'
import type { Operation, Snapshot } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import { failpoint } from '../store/failpoint.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { applyWithRoom } from '../targets/dir/deletions-first.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import type { ApplyOptions, ApplyResult } from '../targets/dir/restore-apply.ts'
import { RestoreFailed } from '../targets/dir/restore-failed.ts'
import { planRestore, type RestorePlan } from '../targets/dir/restore-plan.ts'
import { cannotSave, nameWhatStays, whatSnapshotsHold } from './cannot-save.ts'
import { type Live, lookAtLive, orAfresh } from './capture-live.ts'
import { captureAfter, captureBefore, sayWhatHadNoRoom, sayWhatMayNotFit } from './capture-sparingly.ts'
import { foreseeHidden, nameSelfHidden } from './coming-to-light.ts'
import { type Context, ownRun, unstoppably } from './context.ts'
import { describeRestore } from './describe-plan.ts'
import { headAfterwards, isMeant, noteNothing, takeBackSafety } from './head-afterwards.ts'
import { findHidden } from './hidden-paths.ts'
import { keepInnerTargets } from './inner-targets.ts'
import { type Journal, makeJournal, removeJournal, writeJournal } from './journal.ts'
import { keepLateEdits } from './late-edits.ts'
import { nameChangedSince } from './lent-changes.ts'
import { notePurged } from './purged-paths.ts'
import { isTargetMissing, makeTarget, planRemade, unmakeTarget } from './remake-target.ts'
import { readLive } from './resolve-path.ts'
import type { RestoreRequest } from './restore-request.ts'
import { restoreWithoutSafety } from './restore-without-safety.ts'
import { noteRestored } from './restored-events.ts'
import type { RestoreResult, StillOpen } from './results.ts'
import { restoreRootMetadata, shallChangeRoot } from './root-metadata.ts'
import { addSnapshot } from './snapshot.ts'
import { stillOpen } from './still-open.ts'

export type { RestoreRequest } from './restore-request.ts'

const OWNER_LOOKS = 0o500

export async function restore(ctx: Context, asked: RestoreRequest): Promise<RestoreResult> {
  if (!isTargetMissing(ctx, asked)) return restoreInto(ctx, { ...asked, remade: false })
  const planned = planRemade(ctx, asked)
  if (planned) return planned
  makeTarget(ctx, asked)
  try {
    return await restoreInto(ctx, { ...asked, remade: true })
  } catch (error) {
    unmakeTarget(ctx)
    throw error
  }
}

async function restoreInto(ctx: Context, asked: RestoreRequest): Promise<RestoreResult> {
  if (ctx.unwritable && !asked.dryRun) return restoreWithoutSafety(ctx, asked)
  let planned: Planned
  try {
    planned = await lookAndPlan(ctx, asked, afresh => lookBefore(ctx, asked, afresh))
  } catch (error) {
    return goOnWithout(ctx, asked, error)
  }
  const { request, live, plan } = planned
  const lacksRoom = plan.leftAlone.some(({ why }) => why === 'no-room')
  if (lacksRoom && request.noSafety) return restoreWithoutSafety(ctx, request)
  const rootChanges = shallChangeRoot(ctx, request, live)
  if (request.dryRun && !request.noSafety) sayWhatMayNotFit(ctx, live, request)
  if (request.dryRun || (plan.actions.length === 0 && !rootChanges)) {
    await foreseeHidden(ctx, request, live, plan)
    const result = { ...describeRestore(ctx, request, live, plan), dryRun: request.dryRun === true }
    request.onNothing?.(result)
    noteNothing(ctx, request, plan, live)
    return result
  }
  // The last moment at which it can be stopped; from here to the journal nothing waits.
  if (ctx.signal?.aborted) throw cancelled()
  let safety: Snapshot
  let journal: Journal
  try {
    const headBefore = ctx.db.head
    safety = keepBefore(ctx, live, request)
    journal = makeJournal(ctx, request, safety, headBefore)
    writeJournal(ctx.timelineDir, journal)
  } catch (error) {
    return goOnWithout(ctx, request, error)
  }
  sayWhatHadNoRoom(ctx, live)
  failpoint('restore:journal')
  return carryOut(ctx, { request, journal, live, plan, safety })
}

/** The state before does not fit on the disk. Nothing is changed yet. */
function goOnWithout(ctx: Context, request: RestoreRequest, error: unknown): Promise<RestoreResult> {
  if (!isDiskFull(error)) throw error
  if (request.noSafety && !request.dryRun) return restoreWithoutSafety(ctx, request)
  throw cannotSave(request.kind, error as Error)
}

interface Planned {
  request: RestoreRequest
  live: Live
  plan: RestorePlan
}

/** What the last capture left in the store may be damaged: that does not matter as long as the live files are there. */
export const lookAndPlan = (
  ctx: Context,
  asked: RestoreRequest,
  look: (afresh: boolean) => Promise<Live>,
): Promise<Planned> =>
  orAfresh(false, async afresh => {
    const live = await look(afresh)
    const request = { ...asked, ...(await asked.soFar?.(live)) }
    const plan = planFor(ctx, request, live)
    notePurged(ctx, request, live, plan)
    if (request.lent !== undefined) nameChangedSince(ctx, request.lent, request, live, plan)
    return { request, live, plan }
  })

/** What must be seen whatever today's rules say: what shall be there, and of an undo what the operation had left there. */
export const overrideOf = ({ wanted, base }: RestoreRequest): Id[] => (base === undefined ? [wanted] : [wanted, base])

const lookBefore = (ctx: Context, request: RestoreRequest, afresh: boolean): Promise<Live> =>
  request.dryRun
    ? // It tells what would be done: so it reads what that would read.
      lookAtLive(ctx, { override: overrideOf(request), afresh, readOwned: true })
    : captureBefore(ctx, request, {
        override: overrideOf(request),
        afresh,
        readOwned: true,
        ignoreFloor: true,
        phase: 'saving the state before',
      })

/** A snapshot of the state before: HEAD itself when nothing has changed since. */
function keepBefore(ctx: Context, live: Live, request: RestoreRequest): Snapshot {
  const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
  return head?.root === live.root ? head : addSnapshot(ctx, live, { type: 'safety', command: request.summary })
}

export function planFor(ctx: Context, request: RestoreRequest, live: Pick<Live, 'tree'>): RestorePlan {
  return planRestore({
    store: ctx.store,
    live: live.tree,
    wanted: rootTreeOf(ctx.store, request.wanted),
    base: request.base === undefined ? undefined : rootTreeOf(ctx.store, request.base),
    others: request.others,
    scope: request.scope,
    withoutGit: request.withoutGit,
    readLive: request.dryRun ? path => readLive(ctx, path) : undefined,
  })
}

export async function applyFor(
  ctx: Context,
  request: RestoreRequest,
  live: Live,
  root: number,
  how: Pick<ApplyOptions, 'plan' | 'stage' | 'rescue'>,
): Promise<ApplyResult & { open: StillOpen[] }> {
  const open: StillOpen[] = []
  const applied = await applyWithRoom({
    ...how,
    rescue: displaced => {
      open.push(...stillOpen(ctx, how.stage, displaced))
      return how.rescue(displaced)
    },
    store: ctx.store,
    root,
    live: live.tree,
    wanted: rootTreeOf(ctx.store, request.wanted),
    whatHolds: () => whatSnapshotsHold(ctx, request),
    onProgress: progress => ctx.progress?.({ phase: 'restoring', ...progress }),
  })
  return { ...applied, open }
}

/** A restore that is in the journal, so that it will be brought to its end whatever happens to this process. */
export interface Promised {
  request: RestoreRequest
  journal: Journal
  live: Live
  plan: RestorePlan
  /** The state before. */
  safety: Snapshot
}

/** The part from the journal on; the recovery calls it too. */
export const carryOut = (ctx: Context, promised: Promised): Promise<RestoreResult> =>
  unstoppably(ctx, unstoppable => applyAndRecord(unstoppable, promised))

async function applyAndRecord(ctx: Context, promised: Promised): Promise<RestoreResult> {
  const { request, journal, live, plan, safety } = promised
  let lateEdits: Snapshot | undefined
  const { written, left, keptIn, open } = await withDir(ctx.targetPath, async root => {
    try {
      const applied = await applyFor(ctx, request, live, root, {
        plan,
        stage: journal.stage,
        rescue: async displaced => {
          const { snapshot, unsaved } = await keepLateEdits(ctx, root, live, displaced, safety)
          lateEdits ??= snapshot
          return unsaved
        },
      })
      const wantedRoot = rootEntryOf(ctx.store, request.wanted)
      const isRootWanted = shallChangeRoot(ctx, request, live)
      // A directory that closes to us cannot be opened for the sync any more.
      const closes = isRootWanted && (wantedRoot.mode & OWNER_LOOKS) !== OWNER_LOOKS
      if (closes) addon.syncfs(root)
      if (isRootWanted) restoreRootMetadata(root, wantedRoot)
      if (!closes) addon.syncfs(root)
      return applied
    } catch (error) {
      if (error instanceof RestoreFailed && error.reversed) {
        removeJournal(ctx.timelineDir)
        takeBackSafety(ctx, journal, safety)
      }
      throw nameWhatStays(error, plan)
    }
  })
  failpoint('restore:synced')
  const after = await captureAfter(ctx, {
    override: overrideOf(request),
    written,
    readOwned: true,
    ignoreFloor: true,
    phase: 'checking',
  })
  if (keptIn !== undefined) ctx.notice(`${keptIn} holds what could neither be stored nor put back`)
  keepInnerTargets(ctx, rootTreeOf(ctx.store, safety.root), after.tree, request.scope)
  const states = { before: live.tree, wanted: rootTreeOf(ctx.store, request.wanted), after: after.tree }
  findHidden(ctx.store, states, request.scope, plan)
  const operation = close(ctx, promised, after)
  await nameSelfHidden(ctx, request, after, plan)
  // Attributes that the system refused to change are not put back.
  const stayed = new Set(left.map(({ path }) => path))
  const actions = plan.actions.filter(({ action, path }) => action !== 'metadata' || !stayed.has(path))
  const described = describeRestore(ctx, request, live, { ...plan, actions })
  return {
    ...described,
    leftAlone: [...described.leftAlone, ...left],
    safety,
    lateEdits,
    operation,
    stillOpen: open.filter(({ path }) => !stayed.has(path)),
  }
}

function close(ctx: Context, { request, journal, safety }: Promised, after: Live): Operation {
  const by = ownRun(ctx)
  const operation = ctx.db.transaction(() => {
    const head = headAfterwards(ctx, journal, safety, after)
    ctx.db.setHead(head)
    noteRestored(ctx, safety.root, after.root, head !== undefined && isMeant(journal, head))
    // In the same transaction: a crash must not leave files undone and their operation standing.
    if (typeof request.detail?.step_of === 'string') {
      ctx.db.setOperationState(request.detail.step_of, request.kind === 'undo' ? 'undone' : 'done')
    }
    return ctx.db.addOperation({
      kind: request.kind,
      at: ctx.now(),
      state: request.isStep ? 'fixed' : 'done',
      summary: request.summary,
      before: safety.id,
      after: request.snapshot?.id,
      headBefore: journal.headBefore,
      headAfter: head,
      detail: {
        ...request.detail,
        ...(by !== undefined && { inside: by }),
        token: journal.token,
        before_root: idToHex(safety.root),
        after_root: idToHex(after.root),
      },
      rule: undefined,
      by,
    })
  })
  failpoint('restore:operation')
  removeJournal(ctx.timelineDir)
  return operation
}
