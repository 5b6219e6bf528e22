/** A run may move the very directory that it works in. The timeline follows it there, and `undo` moves it back. */
import { lstatSync, mkdirSync, renameSync } from 'node:fs'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, rawToBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Operation } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { recoverPending } from './recover.ts'
import { absolutePath, parentPath, relativeTo, writeTarget } from './target-registry.ts'

/** From here on the target is at `to`. */
export function followTarget(ctx: Context, to: Buffer): void {
  const former = ctx.targetPath
  const below = relativeTo(former, ctx.cwd)
  if (below !== undefined) ctx.cwd = absolutePath(to, below)
  ctx.targetPath = to
  writeTarget({ id: ctx.timelineId, directory: ctx.timelineDir, path: to, identity: ctx.identity, former })
}

/** What `operation` records of a move. */
export const moveDetail = (from: Buffer, to: Buffer): Record<string, unknown> => ({
  moved_from: rawFromBytes(from),
  moved_to: rawFromBytes(to),
})

function moveOf({ detail }: Operation): { from: Buffer; to: Buffer } | undefined {
  const { moved_from: from, moved_to: to } = detail
  return typeof from === 'string' && typeof to === 'string' ? { from: rawToBytes(from), to: rawToBytes(to) } : undefined
}

/** Whether undoing `operation` moves the target: it did, and nobody has moved it since. */
export function hasMoved(ctx: Context, operation: Operation): boolean {
  return moveOf(operation)?.to.equals(ctx.targetPath) ?? false
}

/**
 * Moves the target back to where it was before the run. Answers that in words; '' when there is nothing to move. Throws,
 * with the command that helps, when something is in its old place. May be called again after a crash.
 */
export async function moveBack(ctx: Context, operation: Operation, dryRun: boolean): Promise<string> {
  const move = moveOf(operation)
  if (!move || !hasMoved(ctx, operation)) return ''
  const { from, to } = move
  refuseOccupied(ctx, from, to)
  const effect = `moved back to ${showPath(rawFromBytes(from))}`
  if (dryRun) return effect
  try {
    mkdirSync(parentPath(from)!, { recursive: true })
    renameSync(to, from)
  } catch (cause) {
    if (!errnoOf(cause)) throw cause
    const [old, now] = [from, to].map(wordOf)
    throw new SavepointError('io.failed', `Cannot move ${now} back to ${old}: ${(cause as Error).message}`, {
      hint: `Move it yourself, then say it again: mv ${now} ${old}; savepoint undo -t ${old}`,
      cause,
    })
  }
  followTarget(ctx, from)
  await recoverPending(ctx)
  return effect
}

/** `redo` puts back what the run changed in it, and says how to move it. */
export function sayUnmoved(ctx: Context, operation: Operation): void {
  const move = moveOf(operation)
  if (!move?.from.equals(ctx.targetPath)) return
  ctx.notice(
    `the target directory stays where it is; to move it as the run did: mv ${wordOf(move.from)} ${wordOf(move.to)}`,
  )
}

function refuseOccupied(ctx: Context, from: Buffer, to: Buffer): void {
  if (lstatSync(from, { throwIfNoEntry: false }) === undefined) return
  const old = wordOf(from)
  const all = ctx.subdirectory === '' ? '' : ' --all'
  throw new SavepointError(
    'target.replaced',
    `Cannot move ${wordOf(to)} back to ${old}: something has taken its place`,
    {
      hint: `Move that away, then say it again: mv ${old} ${old}.aside; savepoint undo${all} -t ${wordOf(to)}`,
    },
  )
}

const wordOf = (path: Buffer): string => quoteWord(showPath(rawFromBytes(path)))
