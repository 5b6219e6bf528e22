/** A target directory that is gone is made again for a restore, and goes again when nothing could be restored into it. */
import { existsSync, rmdirSync } from 'node:fs'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { makeDirs } from '../store/make-dirs.ts'
import { EMPTY_TREE } from '../store/tree-codec.ts'
import { allEntries } from '../store/tree-lookup.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { identityOf, obstacleAt, statDir } from '../targets/dir/dir-target.ts'
import { isInTheWay } from '../targets/dir/hidden.ts'
import type { Context } from './context.ts'
import { describeRestore } from './describe-plan.ts'
import { removeJournal } from './journal.ts'
import { planFor, type RestoreRequest } from './restore.ts'
import type { RestoreResult } from './results.ts'
import { noteTarget, writeTarget } from './target-registry.ts'
import { refuseAway } from './unmounted-target.ts'

/** Throws where it cannot, or must not, be made again. */
export function isTargetMissing(ctx: Context, request: RestoreRequest): boolean {
  if (statDir(ctx.targetPath)) return false
  refuseObstacle(ctx, request)
  // Nothing is made for a state that the store has lost.
  for (const _ of allEntries(ctx.store, rootTreeOf(ctx.store, request.wanted)));
  refuseAway(ctx)
  return true
}

/** Of one that is missing. It is empty then. */
export function makeTarget(ctx: Context, request: RestoreRequest): void {
  // With its own mode from the start: killed before the journal is written, nobody would know that the mode is ours.
  const { mode } = rootEntryOf(ctx.store, request.wanted)
  makeDirs(ctx.targetPath, (mode & 0o777) | 0o700)
  // What was interrupted in the directory that is gone cannot be completed in this one.
  if (!ctx.unwritable) removeJournal(ctx.timelineDir)
  ctx.identity = identityOf(statDir(ctx.targetPath)!)
  const target = { id: ctx.timelineId, directory: ctx.timelineDir, path: ctx.targetPath, identity: ctx.identity }
  if (ctx.unwritable) noteTarget(target)
  else writeTarget(target)
  ctx.notice(`the target directory was gone and is made again${asWhat(ctx)}`)
}

/** Who had a subvolume or dataset there may want to make one first. */
function asWhat({ db }: Context): string {
  const native = db.snapshots().findLast(({ nativeRef }) => nativeRef !== undefined)?.backend
  if (native === undefined) return ''
  return `, as a plain directory, which ${native} does not snapshot`
}

/**
 * What is done to a target that would first have to be made, where nothing is: in a dry run, and where a step of `undo` would
 * leave all alone, because somebody has removed what it is about. undefined: it is to be made.
 */
export function planRemade(ctx: Context, request: RestoreRequest): RestoreResult | undefined {
  const live = { root: request.wanted, tree: EMPTY_TREE }
  const plan = planFor(ctx, request, live)
  const isLeft = request.isStep === true && plan.actions.length === 0 && plan.leftAlone.some(isInTheWay)
  if (!isLeft && !request.dryRun) return undefined
  ctx.notice(`the target directory is gone${isLeft ? '' : `, and would be made again${asWhat(ctx)}`}`)
  const described = describeRestore(ctx, { ...request, remade: !isLeft }, live, plan)
  return { ...described, dryRun: request.dryRun === true }
}

function refuseObstacle(ctx: Context, request: RestoreRequest): void {
  const obstacle = obstacleAt(ctx.targetPath)
  const word = quoteWord(showPath(rawFromBytes(ctx.targetPath)))
  if (!obstacle) {
    // One that is there, but not where we look without links, is reached through a link above it.
    if (!existsSync(ctx.targetPath)) return
    throw new SavepointError(
      'target.replaced',
      `Cannot make ${word} again: a symlink has taken the place of a directory above it`,
      { hint: 'Move the symlink away, then say it again' },
    )
  }
  const again = verbOf(request)
  throw new SavepointError('target.replaced', `Cannot make ${word} again: ${obstacle} has taken its place`, {
    hint: `Move it away, then say it again: mv ${word} ${word}.aside${again && `; savepoint ${again} -t ${word}`}`,
  })
}

/** What says the same again; '' where that has more words than we know. */
function verbOf({ kind, scope, detail, snapshot }: RestoreRequest): string {
  if (kind === 'undo' || kind === 'redo') return kind
  const state = typeof detail?.run === 'string' ? detail.run : snapshot?.id
  return kind === 'rollback' && !scope && state !== undefined ? `rollback ${state}` : ''
}

/** After a failure: an empty directory of ours must not pass for the one that was there, attributes and all. */
export function unmakeTarget(ctx: Context): void {
  try {
    rmdirSync(ctx.targetPath)
  } catch (error) {
    if (!errnoOf(error)) throw error
  }
}
