/** A run may move the very directory that it works in. The timeline follows it there, `undo` moves it back, `redo` again. */
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

type Direction = 'undo' | 'redo'

/** From where to where the step moves the target: the run did the like, and nobody has moved it since. */
function moveOfStep(
  ctx: Context,
  operation: Operation,
  direction: Direction,
): { from: Buffer; to: Buffer } | undefined {
  const move = moveOf(operation)
  const step = move && (direction === 'redo' ? move : { from: move.to, to: move.from })
  return step?.from.equals(ctx.targetPath) ? step : undefined
}

/** Whether undoing `operation`, or redoing it when it is undone, moves the target. */
export const wouldMove = (ctx: Context, operation: Operation): boolean =>
  moveOfStep(ctx, operation, operation.state === 'undone' ? 'redo' : 'undo') !== undefined

/**
 * Moves the target to where it was before the run, or for `redo` to where the run moved it. Answers that in words; '' when
 * there is nothing to move. Throws, with the command that helps, when something is in that place. May be called again after
 * a crash.
 */
export async function moveTarget(
  ctx: Context,
  operation: Operation,
  direction: Direction,
  dryRun: boolean,
): Promise<string> {
  const step = moveOfStep(ctx, operation, direction)
  if (!step) return ''
  const { from, to } = step
  const words = direction === 'undo' ? 'back to' : 'to'
  refuseOccupied(ctx, step, direction, words)
  const effect = `moved ${words} ${showPath(rawFromBytes(to))}`
  if (dryRun) return effect
  try {
    mkdirSync(parentPath(to)!, { recursive: true })
    renameSync(from, to)
  } catch (cause) {
    if (!errnoOf(cause)) throw cause
    const [now, wanted] = [from, to].map(wordOf)
    throw new SavepointError('io.failed', `Cannot move ${now} ${words} ${wanted}: ${(cause as Error).message}`, {
      hint: `Move it yourself, then say it again: mv ${now} ${wanted}; savepoint ${direction} -t ${wanted}`,
      cause,
    })
  }
  followTarget(ctx, to)
  await recoverPending(ctx)
  return effect
}

function refuseOccupied(
  ctx: Context,
  { from, to }: { from: Buffer; to: Buffer },
  direction: Direction,
  words: string,
): void {
  if (lstatSync(to, { throwIfNoEntry: false }) === undefined) return
  const wanted = wordOf(to)
  const all = ctx.subdirectory === '' ? '' : ' --all'
  throw new SavepointError(
    'target.replaced',
    `Cannot move ${wordOf(from)} ${words} ${wanted}: something has taken its place`,
    {
      hint: `Move that away, then say it again: mv ${wanted} ${wanted}.aside; savepoint ${direction}${all} -t ${wordOf(from)}`,
    },
  )
}

const wordOf = (path: Buffer): string => quoteWord(showPath(rawFromBytes(path)))
