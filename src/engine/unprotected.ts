/** What a run did to what no snapshot has: what is gone, and what is not as it was or where it was. */
import { lstatSync } from 'node:fs'
import type { Id } from '../model/entry.ts'
import { type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import type { Run, Skipped } from '../model/snapshot.ts'
import { changedUnprotected, inMovedDirectories, noneUnprotected } from './changed-unprotected.ts'
import type { Context } from './context.ts'
import { editsOf } from './edits-meanwhile.ts'
import { missingUnprotected, toGone } from './gone-unprotected.ts'
import { OwnMoves } from './own-moves.ts'
import { replacedMounts, sayOlder, sayOwnTimelines } from './own-timelines.ts'
import type { ChangedPath, Gone, Unprotected } from './results.ts'
import { absolutePath } from './target-registry.ts'

export interface UnprotectedWork {
  gone: Gone
  changed: Unprotected
}

/** Trees of the target: before and after the operation, and now. */
interface States {
  before: Id
  after: Id
  now: Id
  scope?: readonly Raw[]
}

/** Which run it was; undefined: an operation of ours, which changes nothing that is not captured. */
export interface Doer {
  run: Run
  /** It put another directory in the place of the target. */
  hasReplaced?: boolean
  /** Where that is then, if it is anywhere. */
  formerPlace?: Buffer
  /** What it touched and may hold somebody else's edit, too. */
  mixed: readonly Raw[]
  /** Something that it changed was purged since. */
  hasPurged: boolean
}

/** What `operation` records of a directory that was replaced, by the run or others, and may still be somewhere. */
export const replacedDetail = (byRun: boolean, place: Buffer | undefined): Record<string, unknown> => ({
  ...(byRun && { replaced: true }),
  ...(place && { former_place: rawFromBytes(place) }),
})

export function doerOf(ctx: Context, id: string): Doer | undefined {
  const run = ctx.db.runs().find(run => run.id === id)
  const operation = ctx.db.operations().findLast(({ kind, detail }) => kind === 'run' && detail.run === id)
  const place = operation?.detail.former_place
  const formerPlace = typeof place === 'string' ? rawToBytes(place) : undefined
  const hasReplaced = operation?.detail.replaced === true
  return (
    run && {
      run,
      hasReplaced,
      formerPlace,
      mixed: editsOf(operation).mixed,
      hasPurged: operation?.detail.purged === true,
    }
  )
}

export function unprotectedWork(ctx: Context, states: States, doer: Doer | undefined): UnprotectedWork {
  const { before, after, now, scope } = states
  const missing = missingUnprotected(ctx, before, after, now, scope)
  if (!doer) return { gone: toGone(ctx, missing), changed: noneUnprotected }
  const moves = new OwnMoves(ctx, doer.run.id, before)
  const moved = movedAway(doer, moves, missing, now)
  const isMoved = new Set(moved.map(({ path }) => path))
  const replaced = replacedMounts(ctx.store, before, after, now, scope)
  const lost = missing.filter(({ path, reason }) => reason === 'mount' && !isMoved.has(path))
  const others = doer.hasReplaced ? [...inMovedDirectories(ctx.store, new Set(['']), { before, now })] : []
  const changed = changedUnprotected(ctx, doer.run, moves, { before, now }, [
    ...moved,
    ...replaced.map(skipped => ({ ...skipped, to: undefined })),
    ...others.map(skipped => ({ ...skipped, to: placeOutside(doer, skipped) })),
  ])
  // Also one that another one of its name took the place of.
  const changedMounts = changed.paths.filter(({ reason, to }) => reason === 'mount' && to === undefined)
  sayOwnTimelines(
    ctx,
    [...replaced, ...lost, ...changedMounts].map(({ path }) => path),
  )
  sayOlder(
    ctx,
    replaced.map(({ path }) => path),
    doer.run,
  )
  return {
    gone: toGone(
      ctx,
      missing.filter(({ path }) => !isMoved.has(path)),
    ),
    changed,
  }
}

function movedAway(doer: Doer, moves: OwnMoves, missing: readonly Skipped[], now: Id): ChangedPath[] {
  return missing.flatMap(skipped => {
    const to = moves.placeOf(skipped.path, now)
    if (to !== undefined) return [{ ...skipped, to }]
    const place = placeOutside(doer, skipped)
    return place === undefined ? [] : [{ ...skipped, to: place }]
  })
}

/** Where it is with the directory that another one took the place of. */
function placeOutside({ formerPlace }: Doer, { path }: Skipped): Raw | undefined {
  const place = formerPlace && absolutePath(formerPlace, path)
  return place && lstatSync(place, { throwIfNoEntry: false }) ? rawFromBytes(place) : undefined
}
