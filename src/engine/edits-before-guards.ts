/**
 * What others did while a run went on, and what a command of the run then took away without a call that names it (`btrfs
 * subvolume delete`): no trace has it, and it is not there at the end. The snapshot right before that command has it.
 */
import type { Id } from '../model/entry.ts'
import { isGitIndex, type Raw, showPath } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { sameContent } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { Context } from './context.ts'
import type { LastTouches } from './last-touches.ts'
import { repositoryOf } from './own-repositories.ts'
import { typedPath } from './resolve-path.ts'
import { sayBlind } from './touched-paths.ts'

/** A call is told before it is carried out. */
const WRITE_MS = 1000
/** What is beyond that is not named. */
const MAX_PATHS = 1000
const LISTED = 10

/** What a run touched, where that is not all. */
export interface PartlyKnown {
  partly: LastTouches
}

/** Root trees before and after the run. `touches`: what is known of its own work, which may not be all. A repository is one path. */
export function editsBeforeGuards(
  ctx: Context,
  run: string,
  { before, after }: { before: Id; after: Id },
  touches: LastTouches,
): Raw[] {
  const { store } = ctx
  const end = rootTreeOf(store, after)
  const found = new Set<Raw>()
  for (const { root } of guardsOf(ctx, run)) {
    for (const { path, after: then } of stateChanges(store, before, root)) {
      if (found.size >= MAX_PATHS) break
      if (!then || then.kind === 'dir' || then.kind === 'unknown' || isGitIndex(path)) continue
      const last = touches.of(path)
      const isOwn = last !== undefined && Number(then.mtimeNs / 1_000_000n) <= last + WRITE_MS && !touches.isMixed(path)
      const now = entryAt(store, end, path)
      if (!isOwn && !(now && sameContent(now, then))) found.add(repositoryOf(path) ?? path)
    }
  }
  return [...found]
}

/** The newest first. */
const guardsOf = (ctx: Context, run: string): Snapshot[] =>
  ctx.db
    .snapshots()
    .filter(snapshot => snapshot.type === 'guard' && snapshot.run === run)
    .reverse()

/** What `operation` records of it. */
export const guardedDetail = (guarded: readonly Raw[]): Record<string, unknown> =>
  guarded.length > 0 ? { guarded } : {}

/** Of a run that is taken back. */
export function sayWhoseIsUnknown(ctx: Context, run: string): void {
  sayBlind(ctx, run)
  const operation = ctx.db.operations().findLast(({ kind, detail }) => kind === 'run' && detail.run === run)
  let left = (operation?.detail.guarded as Raw[] | undefined) ?? []
  for (const { id, root, command } of left.length > 0 ? guardsOf(ctx, run) : []) {
    const tree = rootTreeOf(ctx.store, root)
    const [here, elsewhere] = partition(left, path => entryAt(ctx.store, tree, path) !== undefined)
    left = elsewhere
    if (here.length > 0) say(ctx, run, here, id, command)
  }
}

function say(ctx: Context, run: string, paths: Raw[], snapshot: string, command = 'a command'): void {
  const some = paths.slice(0, LISTED)
  const more = paths.length > LISTED ? ` and ${paths.length - LISTED} more` : ''
  const words = some.map(path => typedPath(ctx, path)).join(' ')
  ctx.notice(
    `changed while ${run} went on, perhaps by somebody else, before ${command} took it away: ${some.map(path => showPath(path)).join(', ')}${more}; to have that back as it was then: savepoint revert ${words} --from ${snapshot}`,
  )
}

function partition<T>(all: readonly T[], isMeant: (each: T) => boolean): [T[], T[]] {
  return [all.filter(isMeant), all.filter(each => !isMeant(each))]
}
