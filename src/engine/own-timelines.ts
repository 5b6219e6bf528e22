/**
 * What was mounted in the target, or was a nested subvolume, and is gone, or gave way to a plain directory. It is in no snapshot of
 * the target, but it may be a target of its own, or have been captured before it was one: whoever misses it is told the command.
 */
import { SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { isWithin, type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Run, Skipped } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import { differingEntries } from '../store/tree-diff.ts'
import { isInCopy, lookAtDir } from '../targets/dir/dir-target.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import type { Context } from './context.ts'
import { hasCaptured } from './known-path.ts'
import { openTimeline } from './open-timeline.ts'
import { missingMount } from './target-mount.ts'
import { absolutePath, allTargets, atItsPlace, type RegisteredTarget, relativeTo } from './target-registry.ts'

/** Trees of the target. Where something else is in its place, in both. */
export function replacedMounts(store: Store, before: Id, after: Id, now: Id, scope?: readonly Raw[]): Skipped[] {
  const since = (tree: Id) =>
    [...differingEntries(store, before, tree, scope)].flatMap(pair => {
      const isReplaced = pair.before?.reason === 'mount' && pair.after !== undefined && pair.after.kind !== 'unknown'
      return isReplaced ? [pair.path] : []
    })
  const still = new Set(since(now))
  return since(after)
    .filter(path => still.has(path))
    .map(path => ({ path, reason: 'mount' }))
}

/** Those that are gone, or were replaced: what is in the place of them has its timeline elsewhere. */
export function sayOwnTimelines(ctx: Context, paths: readonly Raw[]): void {
  for (const target of paths.length > 0 ? allTargets(ctx.home) : []) {
    const path = relativeTo(ctx.targetPath, target.path)
    const holder = path && paths.find(each => isWithin(path, each))
    const isThere = atItsPlace(target) && !isInCopy(target.path, target.identity)
    if (!path || !holder || isThere) continue
    const way = wayBack(target, absolutePath(ctx.targetPath, holder))
    if (way !== undefined) ctx.notice(`${showPath(path)} has a timeline of its own: ${way}`)
  }
}

/** Those that were replaced while the run went on: it has what it put there in its own snapshots. */
export function sayOlder(ctx: Context, paths: readonly Raw[], { startedAt }: Run): void {
  const before = paths.length > 0 ? ctx.db.snapshots().filter(({ createdAt }) => createdAt < startedAt) : []
  for (const path of paths) {
    const older = before.findLast(({ root }) => hasCaptured(ctx, root, path))
    const word = quoteWord(showPath(path))
    if (older) ctx.notice(`${older.id} has an older version of ${word}: savepoint revert ${word} --from ${older.id}`)
  }
}

/** undefined: nothing was captured of it. `holder`: what is gone, at or above it. */
function wayBack({ directory, path }: RegisteredTarget, holder: Buffer): string | undefined {
  const db = openedOrNone(directory)
  if (!db) return undefined
  try {
    const mount = missingMount({ db, targetPath: path })
    if (mount && isWithin(mount.point, rawFromBytes(holder))) return `mount ${mount.source} at ${mount.point} again`
    // One in the place of the target is not written into unasked.
    const force = lookAtDir(path) ? ' --force' : ''
    return db.head && `savepoint rollback ${db.head}${force} -t ${quoteWord(showPath(rawFromBytes(path)))}`
  } finally {
    db.close()
  }
}

/** One that is damaged says so to who asks for it. */
function openedOrNone(directory: string): TimelineDb | undefined {
  try {
    return openTimeline(directory)
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    return undefined
  }
}
