/**
 * On which mount the target was when it was last captured. Where that is not there, a target that is missing is away with its
 * filesystem, whoever keeps the snapshots; and what is made in its place would stand in the way of mounting it again.
 */
import { isMountedNow, isOnZfs, mountHiding, mountOf } from '../backends/mounts-below.ts'
import { isDatasetAway } from '../backends/zfs.ts'
import { rawToText } from '../model/raw-path.ts'
import { identityOf, sameIdentity, statDir } from '../targets/dir/dir-target.ts'
import type { Context } from './context.ts'
import { notedMount, writeMount } from './noted-mount.ts'
import { noteDataset, noteSubvolume } from './target-dataset.ts'
import { parentPath } from './target-registry.ts'

/** In words. */
export interface Mounted {
  source: string
  point: string
}

/** When it is captured, and was found to be the one that it was. */
export function noteMount(ctx: Context): void {
  const stat = ctx.unwritable ? undefined : statDir(ctx.targetPath)
  const mount = stat && sameIdentity(identityOf(stat), ctx.identity) ? mountOf(ctx.targetPath) : undefined
  if (!mount) return
  if (isOnZfs(mount)) noteDataset(ctx)
  noteSubvolume(ctx)
  writeMount(ctx, mount)
}

/** What was mounted since then over the target, its filesystem or a directory that it is in, so that it cannot be seen. */
export function mountedOver(ctx: Context): Mounted | undefined {
  const noted = notedMount(ctx)
  const over = noted && mountHiding(noted, nearestExisting(ctx.targetPath))
  return over && { source: rawToText(over.source), point: rawToText(over.point) }
}

/** What is mounted over a directory above seldom has one of this name. */
function nearestExisting(path: Buffer): Buffer {
  const parent = statDir(path) ? undefined : parentPath(path)
  return parent ? nearestExisting(parent) : path
}

/** Where the target is missing: what is not mounted that it was on. undefined: it is not that, or nobody knows. */
export function missingMount(ctx: Pick<Context, 'db' | 'targetPath'>): Mounted | undefined {
  const noted = notedMount(ctx)
  // There is always a root: of another machine or container, by now.
  if (!noted || noted.point === '/' || isMountedNow(noted)) return undefined
  const [source, point] = [rawToText(noted.source), rawToText(noted.point)]
  // One that was destroyed is not away. `zfs list` takes a path for the dataset that it is in.
  const mayBeZfs = noted.type === 'zfs' || (noted.type.startsWith('fuse') && !source.startsWith('/'))
  return mayBeZfs && !isDatasetAway(source, point) ? undefined : { source, point }
}

/** On which it was when it was last captured, if that is known. */
export function lastMount(ctx: Context): Mounted | undefined {
  const noted = notedMount(ctx)
  return noted && { source: rawToText(noted.source), point: rawToText(noted.point) }
}
