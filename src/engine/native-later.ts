/** What a filesystem that goes back as a whole would destroy: whose it is, and what is said of it. */
import type { WholeRollback } from '../backends/native-backend.ts'
import { SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { leftOutText, lostText } from '../model/only-there.ts'
import { type Skipped, type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { COARSE_SLACK_MS } from '../targets/dir/racy.ts'
import { S_IFMT, S_IFREG } from '../targets/dir/walk-record.ts'
import { type Live, lookAtLive } from './capture-live.ts'
import type { Context } from './context.ts'
import { isPassing } from './gone-unprotected.ts'
import { requireHeldByStore } from './held-by-store.ts'
import { statesToGo } from './native-going.ts'
import { type Kept, stateOf } from './native-ref.ts'
import { statLive } from './resolve-path.ts'

const NS_PER_MS = 1_000_000n

export interface Going extends Kept {
  whole: WholeRollback
}

export interface Later {
  names: string[]
  /** By name. One that was compacted may be the same as another. */
  ours: Map<string, Snapshot[]>
  /** Of others, and of other homes. */
  foreign: string[]
}

/** What is ours must be in the store before it goes. */
export function laterThan(ctx: Context, { backend, whole, ref }: Going, dryRun: boolean): Later {
  const names = whole.later(ref)
  const kept = ctx.db.snapshots(true).filter(snapshot => snapshot.backend === backend.name && snapshot.nativeRef)
  const ours = new Map<string, Snapshot[]>()
  for (const name of names) {
    const snapshots = kept.filter(snapshot => whole.isNameOf(name, stateOf(snapshot)!))
    if (snapshots.length > 0) ours.set(name, snapshots)
  }
  const own = [...ours.values()].flat()
  const unread = own.find(({ root }) => root === UNREAD_ROOT)
  if (unread)
    throw new SavepointError('backend.failed', `Cannot roll back natively: ${unread.id} is not read yet`, {
      hint: 'Mend what the notice says; the same command again reads it',
    })
  requireHeldByStore(
    ctx,
    'roll back natively',
    own.filter(({ deletedAt }) => deletedAt === undefined),
  )
  // Otherwise they are gone by now, and what is intended is being made.
  const left = dryRun ? statesToGo(ctx.timelineDir, ctx.db) : []
  const isLeft = (name: string) => left.some(state => whole.isNameOf(name, state))
  const isForeign = (name: string) => !ours.has(name) && !isLeft(name) && !whole.isProbe(name)
  return { names, ours, foreign: names.filter(isForeign) }
}

/** What nothing has afterwards, of those of the timeline, in words; '' where the store has all of it. */
export function lostWith(ours: Later['ours']): string {
  const own = [...ours.values()].flat()
  return lostText(
    own.map(({ id, skipped, skippedCount }) => ({ snapshot: id, lost: skipped, lostCount: skippedCount })),
  )
}

/** What is there now, is in no snapshot, and goes when the filesystem goes back to `snapshot`, in words; '' where nothing does. */
export function lostOfNow(
  ctx: Context,
  { ref }: Going,
  snapshot: Snapshot,
  { skipped }: Pick<Live, 'skipped'>,
): string {
  const tree = rootTreeOf(ctx.store, snapshot.root)
  // What has not changed since is in there. An older file may lie where another one was, and is in there under its old name.
  const isBackAgain = (path: Skipped['path']) =>
    entryAt(ctx.store, tree, path)?.kind === 'unknown' && isFileOfBefore(ctx, path, ref.atMs)
  const lost = skipped.filter(({ path, reason }) => reason !== 'mount' && !isPassing(reason) && !isBackAgain(path))
  return lost.length > 0 ? leftOutText(lost, lost.length) : ''
}

/** Of a directory that cannot be read nobody knows. */
function isFileOfBefore(ctx: Context, path: Skipped['path'], atMs: number): boolean {
  const stat = statLive(ctx, path)
  return stat !== undefined && (stat.mode & S_IFMT) === S_IFREG && stat.ctimeNs / NS_PER_MS < atMs - COARSE_SLACK_MS
}

export async function sayLostOfNow(ctx: Context, going: Going, snapshot: Snapshot, dryRun: boolean): Promise<void> {
  const lost = lostOfNow(ctx, going, snapshot, await lookAtLive(ctx, { override: [snapshot.root], readOwned: true }))
  if (lost !== '')
    ctx.alarm(
      `--native: ${going.backend.name} ${dryRun ? 'would lose' : 'loses'} what is there now and is not captured: ${lost}`,
    )
}

type Whose = 'stray' | 'other' | 'theirs'

/** A stray was kept for this timeline, whose home was put back from an older copy since. */
function byWhose({ whole, ref }: Going, names: readonly string[]): Partial<Record<Whose, string[]>> {
  const whoseIs = (name: string): Whose => (whole.isOfSavepoint(name) ? 'other' : 'theirs')
  return Object.groupBy(names, name => (whole.isInPlaceOf(name, ref) ? 'stray' : whoseIs(name)))
}

/** One of another home, or that is not known here any more, is in no store that we know of: nobody may have read it yet. */
export function whoseAre(going: Going, foreign: readonly string[]): string {
  const { stray = [], other = [] } = byWhose(going, foreign)
  const said = (names: readonly string[], whose: string): string[] => {
    const subject = names.length === foreign.length ? 'They' : names.join(', ')
    const isOne = names.length === 1 && subject !== 'They'
    return names.length === 0 ? [] : [`${subject} ${isOne ? 'is' : 'are'} of ${whose}`]
  }
  const texts = [
    ...said(stray, 'this timeline, which does not know them (was the home put back from an older copy?)'),
    ...said(other, 'another home or timeline of Savepoint'),
  ]
  return texts.length > 0 ? texts.join('; ') : 'They are not of Savepoint'
}

export function sayConsequences(ctx: Context, going: Going, { ours, foreign }: Later, dryRun: boolean): void {
  const { backend } = going
  const goes = dryRun ? 'would go' : 'goes'
  const loses = `--native: ${backend.name} ${dryRun ? 'would lose' : 'loses'}`
  // Also with --quiet: nothing brings that back.
  ctx.alarm(
    `--native: everything in the directory ${goes} back, also what rules exclude or was not captured; \`savepoint undo\` does not bring that back`,
  )
  const own = [...ours.values()].flat().map(({ id }) => id)
  if (own.length > 0)
    ctx.alarm(
      `${loses} ${plural('later snapshot', own.length)} of this timeline; the store has what was captured of them: ${own.join(', ')}`,
    )
  const lost = lostWith(ours)
  if (lost !== '') ctx.alarm(`${loses} with them what the store does not have: ${lost}`)
  const { stray = [], other = [], theirs = [] } = byWhose(going, foreign)
  const alarm = (names: readonly string[], who: string) => {
    if (names.length > 0)
      ctx.alarm(`${loses} ${plural('later snapshot', names.length)} that ${who}: ${names.join(', ')}`)
  }
  alarm(stray, 'this timeline does not know any more')
  alarm(other, 'another home or timeline of Savepoint keeps')
  alarm(theirs, 'somebody else took')
}
