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
import { type GuardPlaces, type PartlyKnown, presentTouches } from './edits-before-guards.ts'
import { editsGone, type KnownFormer } from './edits-meanwhile.ts'
import { addSnapshot } from './snapshot.ts'
import { isTarget } from './target-dataset.ts'
import type { Place } from './target-place.ts'
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

interface FormerTarget {
  place: Place
  live: Live
}

/** Those that can be. Called before the new one is captured, which finds the stat cache of the old one and leaves its own. `hasReplaced`: otherwise the first one is the target. */
export async function captureFormers(
  ctx: Context,
  places: readonly Place[],
  before: Snapshot,
  hasReplaced: boolean,
): Promise<FormerTarget[]> {
  const formers: FormerTarget[] = []
  for (const place of places.filter(({ tree }) => hasReplaced || tree > 0)) {
    const live = await captureFormer(ctx, place.path, before)
    if (live) formers.push({ place, live })
  }
  return formers
}

async function captureFormer(ctx: Context, former: Buffer, before: Snapshot): Promise<Live | undefined> {
  try {
    return await captureLive(contextAt(ctx, former), { override: [before.root], readOwned: true, ignoreFloor: true })
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    ctx.alarm(`what somebody did in ${showPath(rawFromBytes(former))} is NOT captured: ${wordsOf(error)}`)
    return undefined
  }
}

const withRoot = (ctx: Context, root: Id): Snapshot | undefined =>
  ctx.db.snapshots().findLast(each => each.root === root)

const firstOf = (formers: readonly FormerTarget[]): Live | undefined =>
  formers.find(({ place }) => place.tree === 0)?.live

export const isInSnapshot = (ctx: Context, root: Id): boolean => withRoot(ctx, root) !== undefined

/** Where each of them is that something is new in, by its snapshot, and its number. */
export function addFormers(ctx: Context, run: Run, formers: readonly FormerTarget[]) {
  const guardPlaces: GuardPlaces = {}
  const treeOf = new Map<string, number>()
  for (const { place, live } of formers) {
    const same = withRoot(ctx, live.root)
    // Of the new one, which had come with all that was in this.
    if (same?.run === run.id && same.type === 'guard') treeOf.set(same.id, place.tree)
    if (same) continue
    const options = { type: 'guard', run: run.id, command: quoteCommand(run.command), holdsOthers: true } as const
    const { id } = addSnapshot(ctx, live, options)
    guardPlaces[id] = rawFromBytes(place.path)
    treeOf.set(id, place.tree)
  }
  return { guardPlaces, treeOf }
}

/**
 * `identity`: of the first one. undefined: it could not be captured, and the run has not removed it by itself.
 * What somebody did in it is not known then.
 */
export function knownFormer(
  formers: readonly FormerTarget[],
  known: PartlyKnown,
  identity: DirIdentity,
): KnownFormer | undefined {
  const { trees, present, goneAt } = known
  const former = firstOf(formers)
  if (present > 0 && !former && goneAt === Infinity) return undefined
  const first = trees[0]!.touches
  // All that is in a subvolume goes with one call.
  const isTold = present === 0 || !isSubvolumeRoot(identity)
  const wasIn = (path: Raw) => !isTold || first.of(path) !== undefined
  return { touches: presentTouches(known), came: trees[present]!.came ?? 0, tree: former?.tree, wasIn }
}

/** What somebody perhaps did in any of them before the run removed it, with the whole of it or by itself. `before`: the root tree. */
export function editsInFormer(
  ctx: Context,
  before: Id,
  { trees }: PartlyKnown,
  formers: readonly FormerTarget[],
): Raw[] {
  const tree = rootTreeOf(ctx.store, before)
  const former = firstOf(formers)
  // What is in the old one as it is now is in its snapshot.
  const isGone = (path: Raw, index: number) =>
    index > 0 || !former || entryAt(ctx.store, former.tree, path) === undefined
  return trees.flatMap(({ touches }, index) => editsGone(ctx, tree, touches).filter(path => isGone(path, index)))
}
