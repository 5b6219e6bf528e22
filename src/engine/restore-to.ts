/** `rollback --to DIR`: writes a snapshot into another directory. Neither the target nor the home is touched. */
import { mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { type Raw, rawToBytes, showPath } from '../model/raw-path.ts'
import { resolveRaw } from '../model/resolve-raw.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import { GC_LOCK_WAIT_MS } from '../store/store.ts'
import { EMPTY_TREE } from '../store/tree-codec.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { applyPlan } from '../targets/dir/restore-apply.ts'
import { planRestore } from '../targets/dir/restore-plan.ts'
import { STAGE_PREFIX } from '../targets/dir/stage-mark.ts'
import type { Context } from './context.ts'
import { describePlan } from './describe-plan.ts'
import type { RestoreResult } from './results.ts'
import { restoreRootMetadata } from './root-metadata.ts'
import type { RestoreOptions } from './savepoint.ts'

export async function restoreToDirectory(
  ctx: Context,
  snapshot: Snapshot,
  to: string,
  scope: readonly Raw[] | undefined,
  options: RestoreOptions,
): Promise<RestoreResult> {
  // Collection waits: what is being written must not go meanwhile.
  const lock = await ctx.store.lock('shared', 'write a snapshot elsewhere', {
    waitMs: GC_LOCK_WAIT_MS,
    signal: ctx.signal,
  })
  try {
    return await write(ctx, snapshot, to, scope, options)
  } finally {
    lock.release()
  }
}

async function write(
  ctx: Context,
  snapshot: Snapshot,
  to: string,
  scope: readonly Raw[] | undefined,
  options: RestoreOptions,
): Promise<RestoreResult> {
  const directory = resolveRaw(ctx.cwd, to)
  const created = prepare(directory, options.dryRun === true)
  const wanted = rootTreeOf(ctx.store, snapshot.root)
  const plan = planRestore({ store: ctx.store, live: EMPTY_TREE, wanted, scope, withoutGit: options.withoutGit })
  const result = { ...describePlan(ctx, plan, snapshot), to: showPath(directory), dryRun: options.dryRun === true }
  if (options.dryRun) return result
  const { refused } = await withDir(
    realpathSync.native(rawToBytes(directory), 'buffer') as unknown as Buffer,
    async root => {
      const applied = await applyPlan({
        store: ctx.store,
        root,
        plan,
        live: EMPTY_TREE,
        wanted,
        stage: `${STAGE_PREFIX}${process.pid}`,
        onProgress: progress => ctx.progress?.({ phase: 'restoring', ...progress }),
        rescue: async () => [],
      })
      if (created && !scope) restoreRootMetadata(root, rootEntryOf(ctx.store, snapshot.root))
      addon.syncfs(root)
      return applied
    },
  )
  return { ...result, leftAlone: [...plan.leftAlone, ...refused.map(path => ({ path, why: 'refused' as const }))] }
}

/** Makes the directory; it must be empty when it exists. Returns whether it was made. */
function prepare(path: Raw, dryRun: boolean): boolean {
  const [directory, shown] = [rawToBytes(path), showPath(path)]
  try {
    if (readdirSync(directory).length === 0) return false
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') {
      if (!dryRun) mkdirSync(directory, { recursive: true, mode: 0o700 })
      return true
    }
    throw new SavepointError('usage', `Cannot restore to ${shown}: ${(error as Error).message}`, { cause: error })
  }
  throw new SavepointError('usage', `Cannot restore to ${shown}: it is not empty`, {
    hint: 'Name a directory that does not exist yet',
  })
}
