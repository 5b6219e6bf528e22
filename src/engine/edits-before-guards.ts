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

/** What a run touched, where that is not all; in each of the directories that were its target one after the other (target-place.ts). */
export interface PartlyKnown {
  /** With when they took the place of another one. */
  trees: readonly { touches: LastTouches; came: number | undefined }[]
  /** Which one is the target at the end. */
  present: number
  /** Which one a snapshot is of. */
  treeOf: ReadonlyMap<string, number>
  /** When the run has removed the first one. */
  goneAt: number
  /** It has put another one in its place at some time, or has moved it. */
  isLeft: boolean
}

export const presentTouches = ({ trees, present }: PartlyKnown): LastTouches => trees[present]!.touches

/** Where directories are that were the target before the run put another one in its place, by the snapshots at its end. */
export type GuardPlaces = Record<string, Raw>

type ByGuard = Record<string, Raw[]>

interface GuardedEdits {
  /** What is not so at the end; and by the snapshots that have it. */
  gone: Raw[]
  byGuard: ByGuard
  /** What is, although it was in a target that another directory took the place of. */
  still: Raw[]
}

export const noneGuarded: GuardedEdits = { gone: [], byGuard: {}, still: [] }

/** Root trees before and after the run. What is known of its own work may not be all. `treeAtEnd`: of snapshots that were taken since. A repository is one path. */
export function editsBeforeGuards(
  ctx: Context,
  run: string,
  { before, after }: { before: Id; after: Id },
  { trees, present, treeOf }: PartlyKnown,
  treeAtEnd: ReadonlyMap<string, number>,
): GuardedEdits {
  const { store } = ctx
  const end = rootTreeOf(store, after)
  const [gone, still] = [new Map<Raw, string>(), new Set<Raw>()]
  for (const { id, root } of guardsOf(ctx, run)) {
    const tree = treeAtEnd.get(id) ?? treeOf.get(id) ?? present
    const { touches, came = -Infinity } = trees[tree] ?? trees[present]!
    for (const { path, after: then } of stateChanges(store, before, root)) {
      if (gone.size + still.size >= MAX_PATHS) break
      if (!then || then.kind === 'dir' || then.kind === 'unknown' || isGitIndex(path)) continue
      const last = Math.max(touches.of(path) ?? -Infinity, came)
      const isWrittenBefore = Number(then.mtimeNs / 1_000_000n) <= last + WRITE_MS
      if (isWrittenBefore && !touches.isMixed(path)) continue
      const now = entryAt(store, end, path)
      const isSame = now !== undefined && sameContent(now, then)
      const named = repositoryOf(path) ?? path
      // The newest one that has it.
      if (!isSame && !gone.has(named)) gone.set(named, id)
      else if (isSame && tree !== present) still.add(named)
    }
  }
  const paths = [...gone.keys()]
  return { gone: paths, byGuard: Object.groupBy(paths, path => gone.get(path)!) as ByGuard, still: [...still] }
}

/** The newest first. */
const guardsOf = (ctx: Context, run: string): Snapshot[] =>
  ctx.db
    .snapshots()
    .filter(snapshot => snapshot.type === 'guard' && snapshot.run === run)
    .reverse()

/** What `operation` records of it. */
export function guardedDetail(guarded: ByGuard, places: GuardPlaces): Record<string, unknown> {
  const arePlaced = Object.keys(places).length > 0
  return Object.keys(guarded).length > 0 ? { guarded, ...(arePlaced && { guard_places: places }) } : {}
}

/** Of a run that is taken back. */
export function sayWhoseIsUnknown(ctx: Context, run: string): void {
  sayBlind(ctx, run)
  const operation = ctx.db.operations().findLast(({ kind, detail }) => kind === 'run' && detail.run === run)
  const { guarded, guard_places: places } = operation?.detail ?? {}
  sayGuarded(ctx, run, (guarded as ByGuard | undefined) ?? {}, places as GuardPlaces | undefined)
}

export function sayGuarded(ctx: Context, run: string, guarded: ByGuard, places: GuardPlaces = {}): void {
  for (const { id, command } of guardsOf(ctx, run)) {
    const place = places[id]
    const where =
      place === undefined
        ? `before ${command ?? 'a command'} took it away`
        : `in the directory that it moved to ${showPath(place)}`
    if (guarded[id]) say(ctx, run, guarded[id], id, where)
  }
}

function say(ctx: Context, run: string, paths: readonly Raw[], snapshot: string, where: string): void {
  const some = paths.slice(0, LISTED)
  const more = paths.length > LISTED ? ` and ${paths.length - LISTED} more` : ''
  const words = some.map(path => typedPath(ctx, path)).join(' ')
  ctx.notice(
    `changed while ${run} went on, perhaps by somebody else, ${where}: ${some.map(path => showPath(path)).join(', ')}${more}; to have that back as it was then: savepoint revert ${words} --from ${snapshot}`,
  )
}
