/**
 * The directory that was the target until a run put another one in its place. What somebody did in it meanwhile is in no
 * snapshot, and whoever tidies up deletes it: it is captured where it is, as before a command that destroys it.
 */
import { errnoOf, SavepointError, wordsOf } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { DirIdentity } from '../targets/dir/dir-target.ts'
import { captureLive, type Live } from './capture-live.ts'
import type { Context } from './context.ts'
import { editsGone, type KnownFormer } from './edits-meanwhile.ts'
import type { LastTouches } from './last-touches.ts'
import { addSnapshot } from './snapshot.ts'
import { targetLeft } from './target-left.ts'

export interface FormerTarget {
  place: Buffer
  identity: DirIdentity
}

/** Called before the new one is captured, which finds the stat cache of the old one and leaves its own. */
export async function captureFormer(ctx: Context, former: FormerTarget, before: Snapshot): Promise<Live | undefined> {
  const { place: targetPath, identity } = former
  try {
    return await captureLive(
      { ...ctx, targetPath, identity },
      { override: [before.root], readOwned: true, ignoreFloor: true },
    )
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    ctx.alarm(`what somebody did in ${showPath(rawFromBytes(targetPath))} is NOT captured: ${wordsOf(error)}`)
    return undefined
  }
}

/** Undefined when nothing is new in it. */
export function addFormer(ctx: Context, run: Run, live: Live): Snapshot | undefined {
  const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
  if (head?.root === live.root) return undefined
  return addSnapshot(ctx, live, {
    type: 'guard',
    run: run.id,
    command: quoteCommand(run.command),
    holdsOthers: true,
  })
}

/** undefined: it could not be captured, and the run has not removed it by itself. What somebody did in it is not known then. */
export function knownFormer(
  ctx: Context,
  run: Run,
  former: Live | undefined,
  touches: LastTouches,
): KnownFormer | undefined {
  return former || targetLeft(ctx, run.id).goneAt < Infinity ? { touches, tree: former?.tree } : undefined
}

/** What somebody perhaps did there before the run removed it, with the whole of it or by itself. `before`: the root tree. */
export function editsInFormer(ctx: Context, run: Run, before: Id, { touches, tree }: KnownFormer): Raw[] {
  const { goneAt } = targetLeft(ctx, run.id)
  const wasInOld = (path: Raw): boolean =>
    tree === undefined ? (touches.of(path) ?? 0) <= goneAt : entryAt(ctx.store, tree, path) === undefined
  return editsGone(ctx, rootTreeOf(ctx.store, before), touches).filter(wasInOld)
}
