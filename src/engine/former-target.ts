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
import {
  type DirIdentity,
  identityOf,
  isInCopy,
  isSubvolumeRoot,
  lastingIdentity,
  statDir,
} from '../targets/dir/dir-target.ts'
import { captureLive, type Live } from './capture-live.ts'
import type { Context } from './context.ts'
import type { GuardPlaces } from './edits-before-guards.ts'
import { editsGone, type KnownFormer } from './edits-meanwhile.ts'
import type { LastTouches } from './last-touches.ts'
import { addSnapshot } from './snapshot.ts'
import { isTarget } from './target-dataset.ts'
import { targetLeft } from './target-left.ts'
import { refuseUnseen } from './unmounted-target.ts'

/** For a directory that is, or was, the target of a run: as itself, since a btrfs snapshot has the same inode. Throws where only the filesystem of the target is away. */
export function contextAt(ctx: Context, place: Buffer): Context {
  const stat = statDir(place)
  const isAtTarget = place.equals(ctx.targetPath)
  if (isAtTarget && (!stat || (isTarget(ctx, stat) && !isInCopy(place, ctx.identity)))) return ctx
  if (isAtTarget) refuseUnseen(ctx)
  const identity = stat ? lastingIdentity(place, identityOf(stat)) : ctx.identity
  return { ...ctx, targetPath: place, identity }
}

/** Called before the new one is captured, which finds the stat cache of the old one and leaves its own. */
export async function captureFormer(ctx: Context, former: Buffer, before: Snapshot): Promise<Live | undefined> {
  try {
    return await captureLive(contextAt(ctx, former), { override: [before.root], readOwned: true, ignoreFloor: true })
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    ctx.alarm(`what somebody did in ${showPath(rawFromBytes(former))} is NOT captured: ${wordsOf(error)}`)
    return undefined
  }
}

export const isInSnapshot = (ctx: Context, root: Id): boolean => ctx.db.snapshots().some(each => each.root === root)

/** Where each of them is that something is new in, by its snapshot. */
export function addFormers(ctx: Context, run: Run, formers: readonly { place: Buffer; live: Live }[]): GuardPlaces {
  const places: GuardPlaces = {}
  for (const { place, live } of formers) {
    if (isInSnapshot(ctx, live.root)) continue
    const options = { type: 'guard', run: run.id, command: quoteCommand(run.command), holdsOthers: true } as const
    places[addSnapshot(ctx, live, options).id] = rawFromBytes(place)
  }
  return places
}

/** `identity`: of the old one. undefined: it could not be captured, and the run has not removed it by itself. What somebody did in it is not known then. */
export function knownFormer(
  ctx: Context,
  run: Run,
  former: Live | undefined,
  touches: LastTouches,
  identity: DirIdentity,
): KnownFormer | undefined {
  if (!former && targetLeft(ctx, run.id).goneAt === Infinity) return undefined
  // All that is in a subvolume goes with one call.
  return { touches, tree: former?.tree, wasTold: !isSubvolumeRoot(identity) }
}

/** What somebody perhaps did in the old one or in the new one before the run removed it, with the whole of it or by itself. `before`: the root tree. */
export function editsInFormer(ctx: Context, run: Run, before: Id, { touches, tree }: KnownFormer): Raw[] {
  const left = targetLeft(ctx, run.id)
  // What is in the old one as it is now is in its snapshot.
  const isGone = (path: Raw): boolean =>
    tree === undefined || (touches.of(path) ?? 0) > left.at || entryAt(ctx.store, tree, path) === undefined
  return editsGone(ctx, rootTreeOf(ctx.store, before), touches).filter(isGone)
}
