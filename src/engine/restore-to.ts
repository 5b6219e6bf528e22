/** `rollback --to DIR`: writes a snapshot into another directory. Neither the target nor the home is touched. */
import { readdirSync, realpathSync, statSync } from 'node:fs'
import { errnoOf, errnoWords, fullWords, isNoRoom, SavepointError } from '../errors/errors.ts'
import { type Raw, rawToBytes, showPath } from '../model/raw-path.ts'
import { resolveRaw } from '../model/resolve-raw.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import { makeDirs } from '../store/make-dirs.ts'
import { GC_LOCK_WAIT_MS } from '../store/store.ts'
import { EMPTY_TREE } from '../store/tree-codec.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { applyPlan } from '../targets/dir/restore-apply.ts'
import { planRestore } from '../targets/dir/restore-plan.ts'
import { STAGE_PREFIX } from '../targets/dir/stage-mark.ts'
import { isBeside } from '../targets/dir/whose-store.ts'
import { isOurs } from './choose-target.ts'
import type { Context } from './context.ts'
import { describePlan } from './describe-plan.ts'
import type { RestoreResult } from './results.ts'
import { restoreRootMetadata } from './root-metadata.ts'
import type { RestoreOptions } from './savepoint.ts'
import { missingElsewhere } from './uncaptured-in.ts'

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
  if (isOurs(ctx.home, directory) || isBeside(directory))
    throw new SavepointError('usage', `Cannot write into ${showPath(directory)}: it belongs to Savepoint itself`, {
      hint: 'Name a directory elsewhere',
    })
  const created = prepare(directory, options.dryRun === true)
  const wanted = rootTreeOf(ctx.store, snapshot.root)
  const plan = planRestore({ store: ctx.store, live: EMPTY_TREE, wanted, scope, withoutGit: options.withoutGit })
  const result = {
    ...describePlan(ctx, plan, snapshot),
    uncaptured: missingElsewhere(ctx, snapshot, { scope, withoutGit: options.withoutGit }),
    to: showPath(directory),
    dryRun: options.dryRun === true,
  }
  if (options.dryRun) return result
  const { left } = await withDir(
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
  return { ...result, leftAlone: [...plan.leftAlone, ...left] }
}

/** Makes the directory; it must be empty when it exists. Returns whether it was made. */
function prepare(path: Raw, dryRun: boolean): boolean {
  const directory = rawToBytes(path)
  try {
    if (!isMissing(directory)) {
      if (readdirSync(directory).length === 0) return false
    } else {
      if (!dryRun) makeDirs(directory, 0o700)
      return true
    }
  } catch (cause) {
    if (isNoRoom(cause))
      throw new SavepointError('disk.full', `Cannot restore to ${showPath(path)}: ${fullWords(cause)}`, {
        hint: 'Free some space there, or name a directory on another disk',
        cause,
      })
    const words = errnoOf(cause) === 'ENOENT' ? 'nothing can be made there' : errnoWords(cause)
    if (words === undefined) throw cause
    const isWrong = errnoOf(cause) === 'ENOTDIR' || errnoOf(cause) === 'EEXIST'
    throw new SavepointError(isWrong ? 'usage' : 'io.failed', `Cannot restore to ${showPath(path)}: ${words}`, {
      hint: 'Name a directory that does not exist yet, in a place where you may write',
      cause,
    })
  }
  throw new SavepointError('usage', `Cannot restore to ${showPath(path)}: it is not empty`, {
    hint: 'Name a directory that does not exist yet',
  })
}

const isMissing = (path: Buffer): boolean => statSync(path, { throwIfNoEntry: false }) === undefined
