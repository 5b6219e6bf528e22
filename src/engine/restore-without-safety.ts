/**
 * `rollback --no-safety` where the state before cannot be stored, and the user said that it may be lost. There is nothing
 * to undo afterwards, and no journal: after a crash the same command is given again. Where nothing at all can be written
 * to the home, it does not even stand in the list of operations, and HEAD stays where it is.
 */

import { isUnwritable } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { randomHex } from '../model/id.ts'
import type { Operation } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { RestoreFailed } from '../targets/dir/restore-failed.ts'
import type { RestorePlan } from '../targets/dir/restore-plan.ts'
import { STAGE_PREFIX } from '../targets/dir/stage-mark.ts'
import { captureLive, type Live } from './capture-live.ts'
import { type Context, ownRun, recordTarget, requireWritable, unstoppably } from './context.ts'
import { describeRestore } from './describe-plan.ts'
import { keepInnerTargets } from './inner-targets.ts'
import { applyFor, lookAndPlan, overrideOf, type RestoreRequest } from './restore.ts'
import { notePlanned } from './restored-events.ts'
import type { RestoreResult } from './results.ts'
import { restoreRootMetadata, shallChangeRoot } from './root-metadata.ts'

export async function restoreWithoutSafety(ctx: Context, asked: RestoreRequest): Promise<RestoreResult> {
  const { request, live, plan } = await lookAndPlan(ctx, asked, afresh =>
    captureLive(ctx, {
      override: overrideOf(asked),
      readOwned: true,
      discard: true,
      ignoreFloor: true,
      afresh,
      phase: 'looking',
    }),
  )
  ctx.notice(
    'the state before is NOT saved: this cannot be undone, and if it is interrupted, give the same command again',
  )
  recordTarget(ctx)
  const { left, open } = await unstoppably(ctx, () => apply(ctx, request, live, plan))
  const operation = record(ctx, request, live.tree, plan)
  const result = describeRestore(ctx, request, live, plan)
  return {
    ...result,
    leftAlone: [...result.leftAlone, ...left],
    operation,
    stillOpen: open,
  }
}

function apply(ctx: Context, request: RestoreRequest, live: Live, plan: RestorePlan): ReturnType<typeof applyFor> {
  return withDir(ctx.targetPath, async root => {
    const applied = await applyFor(ctx, request, live, root, {
      plan,
      stage: `${STAGE_PREFIX}${randomHex(8)}`,
      rescue: async () => [],
    }).catch(error => {
      if (!(error instanceof RestoreFailed) || error.reversed) throw error
      const hint = 'Part of it was carried out. Mend the cause and give the same command again'
      throw new RestoreFailed(error.code, error.message, false, error.cause, hint)
    })
    if (shallChangeRoot(ctx, request, live)) restoreRootMetadata(root, rootEntryOf(ctx.store, request.wanted))
    addon.syncfs(root)
    return applied
  })
}

function record(ctx: Context, request: RestoreRequest, before: Id, plan: RestorePlan): Operation | undefined {
  try {
    requireWritable(ctx)
    keepInnerTargets(ctx, before, rootTreeOf(ctx.store, request.wanted), request.scope)
    return ctx.db.transaction(() => {
      const headBefore = ctx.db.head
      if (request.headAfter !== undefined) ctx.db.setHead(request.headAfter)
      notePlanned(ctx, plan, request.headAfter !== undefined)
      return ctx.db.addOperation({
        kind: request.kind,
        at: ctx.now(),
        state: 'fixed',
        summary: `${request.summary}, without saving the state before`,
        before: undefined,
        after: request.snapshot?.id,
        headBefore,
        headAfter: ctx.db.head,
        detail: { ...request.detail },
        rule: undefined,
        by: ownRun(ctx),
      })
    })
  } catch (error) {
    if (error !== ctx.unwritable && !isUnwritable(error)) throw error
    ctx.notice('it is NOT recorded either: `savepoint operations` will not show it, and HEAD stays where it was')
    return undefined
  }
}
