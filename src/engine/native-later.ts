/** What a filesystem that goes back as a whole would destroy: whose it is, and what is said of it. */
import type { WholeRollback } from '../backends/native-backend.ts'
import { SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { lostText } from '../model/only-there.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import type { Context } from './context.ts'
import { requireHeldByStore } from './held-by-store.ts'
import { statesToGo } from './native-going.ts'
import { type Kept, stateOf } from './native-ref.ts'

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

/** One of another home is in no store that we know of: its timeline may not have read it yet. */
export function whoseAre({ whole }: Going, foreign: readonly string[]): string {
  const other = foreign.filter(name => whole.isOfSavepoint(name))
  if (other.length === 0) return 'They are not of Savepoint'
  const which =
    other.length === foreign.length ? 'They are' : `${other.join(', ')} ${other.length === 1 ? 'is' : 'are'}`
  return `${which} of another home or timeline of Savepoint`
}

export function sayConsequences(
  ctx: Context,
  { backend, whole }: Going,
  { ours, foreign }: Later,
  dryRun: boolean,
): void {
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
  const { other = [], theirs = [] } = Object.groupBy(foreign, name => (whole.isOfSavepoint(name) ? 'other' : 'theirs'))
  const alarm = (names: readonly string[], who: string) => {
    if (names.length > 0)
      ctx.alarm(`${loses} ${plural('later snapshot', names.length)} that ${who}: ${names.join(', ')}`)
  }
  alarm(other, 'another home or timeline of Savepoint keeps')
  alarm(theirs, 'somebody else took')
}
