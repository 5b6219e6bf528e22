/** A target directory that is gone is made again for a restore, and goes again when nothing could be restored into it. */
import { rmdirSync } from 'node:fs'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { allEntries } from '../store/tree-lookup.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { identityOf, makeDir, statDir } from '../targets/dir/dir-target.ts'
import type { Context } from './context.ts'
import { removeJournal } from './journal.ts'
import type { RestoreRequest } from './restore.ts'
import { noteTarget, writeTarget } from './target-registry.ts'

/** Whether it had to be made; it is empty then. */
export function ensureTarget(ctx: Context, request: RestoreRequest): boolean {
  const stat = statDir(ctx.targetPath)
  if (stat) return false
  if (request.dryRun) {
    throw new SavepointError('target.missing', `Cannot plan the ${request.kind}: the target directory does not exist`, {
      hint: 'Without --dry-run it is made again and filled',
    })
  }
  // Nothing is made for a state that the store has lost.
  for (const _ of allEntries(ctx.store, rootTreeOf(ctx.store, request.wanted)));
  // With its own mode from the start: killed before the journal is written, nobody would know that the mode is ours.
  const { mode } = rootEntryOf(ctx.store, request.wanted)
  makeDir(ctx.targetPath, (mode & 0o777) | 0o700)
  // What was interrupted in the directory that is gone cannot be completed in this one.
  if (!ctx.unwritable) removeJournal(ctx.timelineDir)
  ctx.identity = identityOf(statDir(ctx.targetPath)!)
  const target = { id: ctx.timelineId, directory: ctx.timelineDir, path: ctx.targetPath, identity: ctx.identity }
  if (ctx.unwritable) noteTarget(target)
  else writeTarget(target)
  ctx.notice('the target directory was gone and is made again')
  return true
}

/** After a failure: an empty directory of ours must not pass for the one that was there, attributes and all. */
export function unmakeTarget(ctx: Context): void {
  try {
    rmdirSync(ctx.targetPath)
  } catch (error) {
    if (!errnoOf(error)) throw error
  }
}
