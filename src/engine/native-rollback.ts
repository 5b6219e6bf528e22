/**
 * `rollback --native`: the filesystem itself goes back, with all that rules exclude, and destroys what it kept later. First the
 * files are brought back as ever, with a safety snapshot and an operation: that is what `undo` takes back. Only when asked
 * for, and never without saying what it means.
 */
import { mountsBelow } from '../backends/mounts-below.ts'
import type { WholeRollback } from '../backends/native-backend.ts'
import { SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { resolveSnapshot } from '../timeline/resolve-ref.ts'
import { type Context, refuseInsideRun, withTimelineLock } from './context.ts'
import { liveRuns } from './live-runs.ts'
import { noteForgotten, removeGoing } from './native-going.ts'
import { type Kept, keptOf, stateOf } from './native-ref.ts'
import type { RestoreResult } from './results.ts'
import { rollback } from './rollback.ts'
import type { RestoreOptions } from './savepoint.ts'

export async function rollbackNatively(ctx: Context, ref: string, options: RestoreOptions): Promise<RestoreResult> {
  refuseInsideRun(ctx, 'roll back natively')
  if (options.paths || options.to !== undefined || options.run !== undefined || options.withoutGit)
    throw new SavepointError('usage', 'Cannot roll back natively: a filesystem goes back as a whole', {
      hint: 'Leave --native out to bring back a part',
    })
  const snapshot = resolveSnapshot(ctx.db, ref)
  const kept = keptOf(snapshot)
  const whole = kept?.backend.wholeRollback
  if (!kept || !whole)
    throw new SavepointError('unsupported', `Cannot roll back natively: ${snapshot.backend} keeps ${snapshot.id}`, {
      hint: 'Only snapshots that zfs keeps go back like that; leave --native out',
    })
  const [run] = liveRuns(ctx)
  if (run)
    throw new SavepointError('busy', `Cannot roll back natively: ${run.id} is at work`, {
      hint: 'Wait until it has ended, or leave --native out',
    })
  const names = whole.later(kept.ref)
  const later = laterThan(ctx, kept, names)
  if (!whole.isAt(ctx.targetPath, kept.ref)) throw notThere(ctx, kept)
  refuseToDestroy(whole.madeOf(kept.ref, names))
  sayConsequences(ctx, kept, later, options.dryRun === true)
  if (later.foreign.length > 0 && !ctx.force && !options.dryRun)
    throw new SavepointError('backend.failed', `Cannot roll back natively: ${later.foreign.join(', ')} would be lost`, {
      hint: 'They are not of Savepoint. --force destroys them; without --native all of them stay',
    })
  refuseToHide(ctx, kept, options.dryRun === true)
  const result = await rollback(ctx, ref, { ...options, all: true })
  if (options.dryRun) return result
  await withTimelineLock(ctx, 'roll back natively', async () => {
    ctx.db.transaction(() => {
      for (const { id } of later.ours) ctx.db.native.setStored(id)
      noteForgotten(ctx.db, later.ours)
    })
    failpoint('native:before-rollback')
    goBack(whole, kept)
    removeGoing(ctx.timelineDir, ctx.db, ctx.warn)
  })
  ctx.notice(`--native: done, the filesystem is back at ${kept.backend.whereOf(kept.ref)}`)
  return result
}

/** Also with --force: a clone is a filesystem that somebody works in. */
function refuseToDestroy(clones: readonly string[]): void {
  if (clones.length === 0) return
  throw new SavepointError('backend.failed', `Cannot roll back natively: ${clones.join(', ')} would be lost`, {
    hint: 'That is a clone of a later snapshot: destroy or promote it first, or leave --native out',
  })
}

function goBack(whole: WholeRollback, { ref }: Kept): void {
  try {
    whole.go(ref)
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    throw new SavepointError(error.code, error.message, {
      hint: 'The files are back, as without --native (`savepoint undo` takes that back); what rules exclude is as it was',
    })
  }
}

/** Also with --force: what is there now is not protected here, and no snapshot of it was taken before. */
const notThere = ({ targetPath }: Context, { backend, ref }: Kept): SavepointError =>
  new SavepointError(
    'backend.failed',
    `Cannot roll back natively: what ${backend.name} would bring back is not mounted at ${showPath(rawFromBytes(targetPath))} any more (${backend.whereOf(ref)})`,
    { hint: 'Leave --native out: the store has what was in it' },
  )

/** A directory that was made to mount something on goes with the rest, and what is mounted there cannot be reached. */
function refuseToHide(ctx: Context, { ref }: Kept, dryRun: boolean): void {
  const since = mountsBelow(ctx.targetPath).filter(path => !ref.mounts.includes(path))
  if (since.length === 0) return
  const names = since.map(path => showPath(path)).join(', ')
  ctx.notice(`--native: what is mounted since then cannot be reached afterwards: ${names}`)
  if (dryRun || ctx.force) return
  throw new SavepointError('backend.failed', `Cannot roll back natively: ${names} would be out of reach`, {
    hint: 'Unmount it first, or leave --native out. --force does it nevertheless',
  })
}

interface Later {
  ours: Snapshot[]
  /** Of others, and of other homes. */
  foreign: string[]
}

/** What is ours must be in the store before it goes. */
function laterThan(ctx: Context, { backend }: Kept, names: readonly string[]): Later {
  const kept = ctx.db.snapshots(true).filter(snapshot => snapshot.backend === backend.name && snapshot.nativeRef)
  const whereOf = (snapshot: Snapshot) => backend.whereOf(stateOf(snapshot)!)
  const ours = kept.filter(snapshot => names.includes(whereOf(snapshot)))
  const unread = ours.find(({ root }) => root === UNREAD_ROOT)
  if (unread)
    throw new SavepointError('backend.failed', `Cannot roll back natively: ${unread.id} is not read yet`, {
      hint: 'Mend what the notice says; the next command reads it',
    })
  const known = new Set(ours.map(whereOf))
  return { ours, foreign: names.filter(name => !known.has(name)) }
}

function sayConsequences(ctx: Context, { backend }: Kept, { ours, foreign }: Later, dryRun: boolean): void {
  const goes = dryRun ? 'would go' : 'goes'
  ctx.notice(
    `--native: everything in the directory ${goes} back, also what rules exclude; \`savepoint undo\` does not bring that back`,
  )
  if (ours.length > 0)
    ctx.notice(
      `--native: ${backend.name} ${dryRun ? 'would lose' : 'loses'} ${plural('later snapshot', ours.length)} of this timeline; the store has them: ${ours.map(({ id }) => id).join(', ')}`,
    )
  if (foreign.length > 0)
    ctx.notice(
      `--native: ${backend.name} ${dryRun ? 'would lose' : 'loses'} ${plural('later snapshot', foreign.length)} that somebody else took: ${foreign.join(', ')}`,
    )
}
