/**
 * A restore opens read-only directories, and a capture what its owner closed, for a moment. If the process dies in that
 * moment they stay open. What a capture opened is in a list. What a restore opened needs none: the safety snapshot has
 * every mode as it was.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { descend } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import { joinRaw, type Raw } from '../model/raw-path.ts'
import type { Store } from '../store/store.ts'
import { pairByName, sameContent } from '../store/tree-diff.ts'
import { lookAtDir, withDir } from '../targets/dir/dir-target.ts'
import { closeLeftOpen } from '../targets/dir/opened-paths.ts'
import type { PlanAction } from '../targets/dir/restore-plan.ts'
import type { Context } from './context.ts'

/** Only while a capture has opened something, or after it was killed. */
export const openedList = (ctx: Context): string => join(ctx.timelineDir, 'opened')

export const isLeftOpen = (ctx: Context): boolean => existsSync(openedList(ctx))

/** Called under the timeline's lock: whoever had opened them is dead. */
export async function closeOpened(ctx: Context): Promise<void> {
  if (!isLeftOpen(ctx) || !lookAtDir(ctx.targetPath)) return
  const closed = await withDir(ctx.targetPath, root => closeLeftOpen(root, openedList(ctx)))
  if (closed > 0)
    ctx.notice(`put back the mode of ${plural('path', closed)} that an interrupted command had opened to read`)
}

/** What puts the modes back. Trees of the target: of the safety snapshot, and as it is now. */
export function* closeAgain(store: Store, safety: Id, live: Id): Generator<PlanAction> {
  const all = descend(samePairs(store, '', safety, live), ({ path, was, now }) =>
    now.kind === 'dir' ? samePairs(store, path, was.content, now.content) : undefined,
  )
  for (const { path, was, now } of all)
    if (isOpened(was, now)) yield { action: 'metadata', path, live: now, entry: { ...now, mode: was.mode } }
}

function* samePairs(
  store: Store,
  directory: Raw,
  safety: Id,
  live: Id,
): Generator<{ path: Raw; was: Entry; now: Entry }> {
  if (safety === live) return
  for (const [was, now] of pairByName(store.entries(safety), store.entries(live)))
    if (was && now && sameContent(was, now)) yield { path: joinRaw(directory, now.name), was, now }
}

/** Whether the mode differs by what SafeDirs or OpenedPaths add, and by nothing else. */
export function isOpened(was: Entry, now: Entry): boolean {
  if (was.mode === now.mode) return false
  const added = now.kind === 'dir' ? [0o700, 0o500] : [0o400]
  return added.some(bits => now.mode === (was.mode | bits))
}
