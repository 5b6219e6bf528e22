/**
 * Whether what is at the target's path is the target. Of a ZFS dataset nothing but its guid tells, for which `zfs` is asked only
 * where the mount is another one than when that was last known.
 */
import { lastingMountOf } from '../backends/mounts-below.ts'
import type { Stat } from '../native/addon.ts'
import {
  type DirIdentity,
  datasetOf,
  identityOf,
  isInCopy,
  isOnAnotherDataset,
  lastingIdentity,
  sameIdentity,
} from '../targets/dir/dir-target.ts'
import type { Context } from './context.ts'
import { isOnDatasetOfAnotherName } from './noted-mount.ts'
import { noteTarget } from './target-registry.ts'

const META = 'target.dataset'

/** `stat`: of what is there. */
export const isTarget = (ctx: Context, stat: Stat): boolean =>
  sameIdentity(identityOf(stat), ctx.identity) && !isOtherDataset(ctx)

/** Of one that has the same inode and time of birth. */
export function isOtherDataset(ctx: Context): boolean {
  // Whoever says `--force` means what is there now.
  if (ctx.unrecorded || ctx.force) return false
  // `zfs` does not tell everybody; without a time of birth the name has to do.
  if (ctx.identity.dataset === undefined) return ctx.identity.btimeNs === '0' && isOnDatasetOfAnotherName(ctx)
  if (isNoted(ctx, lastingMountOf(ctx.targetPath))) return false
  return isOnAnotherDataset(ctx.targetPath, ctx.identity)
}

const textFor = ({ identity }: Context, mount: string): string => `${mount} ${identity.dataset ?? ''}`

const isNoted = (ctx: Context, mount: string | undefined): boolean =>
  mount !== undefined && ctx.db.meta(META) === textFor(ctx, mount)

/** When it is captured. Not where it is another one; of a timeline that has been without, its dataset is recorded. */
export function noteDataset(ctx: Context): void {
  const mount = lastingMountOf(ctx.targetPath)
  if (isNoted(ctx, mount)) return
  if (ctx.identity.dataset === undefined) recordDataset(ctx)
  // Asked once more: it may have been mounted anew since.
  else if (mount === undefined || isOnAnotherDataset(ctx.targetPath, ctx.identity)) return
  if (mount !== undefined) ctx.db.setMeta(META, textFor(ctx, mount))
}

function recordDataset(ctx: Context): void {
  const dataset = datasetOf(ctx.targetPath)
  if (dataset !== undefined) record(ctx, { ...ctx.identity, dataset })
}

/** When it is captured: who has put a copy of a btrfs subvolume in its place by then means that to be the target. */
export function noteSubvolume(ctx: Context): void {
  if (isInCopy(ctx.targetPath, ctx.identity)) record(ctx, lastingIdentity(ctx.targetPath, ctx.identity))
}

function record(ctx: Context, recorded: DirIdentity): void {
  ctx.identity = recorded
  const { timelineId: id, timelineDir: directory, targetPath: path, identity } = ctx
  noteTarget({ id, directory, path, identity })
}
