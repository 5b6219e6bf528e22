/**
 * `rollback --native`: the filesystem itself goes back, with all that rules exclude, and destroys what it kept later. First the
 * files are brought back as ever, with a safety snapshot and an operation: that is what `undo` takes back. Only when asked
 * for, and never without saying what it means.
 */
import { mountsBelow } from '../backends/mounts-below.ts'
import { cancelled, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { statDir } from '../targets/dir/dir-target.ts'
import { resolveSnapshot } from '../timeline/resolve-ref.ts'
import { captureLive } from './capture-live.ts'
import { nothingLeft } from './coming-to-light.ts'
import { type Context, refuseInsideRun, unstoppably, withTimelineLock } from './context.ts'
import { isPassing, noneGone } from './gone-unprotected.ts'
import { liveRuns } from './live-runs.ts'
import { removeOwnGoing } from './native-going.ts'
import {
  type Going,
  type Later,
  laterThan,
  lostOfNow,
  lostWith,
  sayConsequences,
  sayLostOfNow,
  whoseAre,
} from './native-later.ts'
import { type Kept, keptOf } from './native-ref.ts'
import { neighbouringRuns } from './neighbouring-runs.ts'
import { newOperation } from './new-operation.ts'
import { refuseLost } from './open-timeline.ts'
import type { RestoreResult } from './results.ts'
import { rollback } from './rollback.ts'
import type { RestoreOptions } from './savepoint.ts'
import { addSnapshot } from './snapshot.ts'

export async function rollbackNatively(ctx: Context, ref: string, options: RestoreOptions): Promise<RestoreResult> {
  refuseInsideRun(ctx, 'roll back natively')
  if (options.paths || options.to !== undefined || options.run !== undefined || options.withoutGit)
    throw new SavepointError('usage', 'Cannot roll back natively: a filesystem goes back as a whole', {
      hint: 'Leave --native out to bring back a part',
    })
  if (ctx.subdirectory !== '' && !options.all)
    throw new SavepointError('usage', 'Cannot roll back natively: a filesystem goes back as a whole', {
      hint: `--all takes the whole of ${showPath(rawFromBytes(ctx.targetPath))}, also what rules exclude; without --native only ${showPath(ctx.subdirectory)}/ is rolled back`,
    })
  refuseLost(ctx.timelineDir, ctx.db, 'roll back natively')
  const dryRun = options.dryRun === true
  const snapshot = resolveSnapshot(ctx.db, ref)
  const going = goingOf(snapshot)
  // What a killed process left is nobody else's.
  if (!dryRun) await withTimelineLock(ctx, 'roll back natively', async () => removeOwnGoing(ctx))
  const later = laterThan(ctx, going, dryRun)
  refuseWhatIsInTheWay(ctx, going, later)
  sayConsequences(ctx, going, later, dryRun)
  if (later.foreign.length > 0 && !ctx.force && !dryRun)
    throw new SavepointError('backend.failed', `Cannot roll back natively: ${later.foreign.join(', ')} would be lost`, {
      hint: `${whoseAre(going, later.foreign)}. --force destroys them; without --native all of them stay`,
    })
  refuseToHide(ctx, going, dryRun)
  await sayLostOfNow(ctx, going, snapshot, dryRun)
  const result = withoutExceptions(await rollback(ctx, ref, { ...options, all: true }))
  if (dryRun) return result
  // Where no file had to change nothing has begun that must be completed.
  if (ctx.signal?.aborted && result.changes.length === 0 && !result.safety) throw cancelled()
  await unstoppably(ctx, unstoppable => goBackAsWell(unstoppable, going, later, snapshot, options.noSafety === true))
  ctx.notice(`--native: done, the filesystem is back at ${going.backend.whereOf(going.ref)}`)
  return result
}

/** What only a restore of files leaves as it is, or away. */
const withoutExceptions = (result: RestoreResult): RestoreResult => ({
  ...result,
  ...nothingLeft,
  uncaptured: result.uncaptured.filter(({ reason }) => reason === 'mount' || isPassing(reason)),
  gone: noneGone,
})

async function goBackAsWell(
  ctx: Context,
  going: Going,
  later: Later,
  snapshot: Snapshot,
  noSafety: boolean,
): Promise<void> {
  const lost: string[] = []
  let isBack = true
  try {
    await withTimelineLock(ctx, 'roll back natively', async () => {
      // That took its time, in which others have worked.
      isBack = ctx.db.head === snapshot.id
      if (!isBack) throw changedMeanwhile()
      refuseWhatCame(going, later)
      refuseWhatIsInTheWay(ctx, going, later)
      const head = ctx.db.head
      await goBack(ctx, going, later, lost, async () => {
        if (!noSafety) await keepEdits(ctx, going, ctx.db.snapshot(snapshot.id) ?? snapshot)
      })
      ctx.db.setHead(head)
    })
  } catch (error) {
    if (!(error instanceof SavepointError) || !isBack) throw error
    // Whoever refused has said that nothing was changed, which was so before the files were brought back.
    const hint = (error.hint ?? '').replace(/^Nothing was changed\. (See `savepoint doctor`.*)?/, '')
    const gone = lost.length > 0 ? `${going.backend.name} has lost ${lost.join(', ')}.` : ''
    const rest =
      error.data?.isDone === 'unknown' ? 'what rules exclude may be so, too' : 'what rules exclude is as it was'
    throw new SavepointError(error.code, error.message, {
      hint: [`${FILES_ARE_BACK}; ${rest}.`, gone, hint].filter(Boolean).join(' '),
    })
  }
}

/** Where it is by now: its dataset may have another name. */
function goingOf(snapshot: Snapshot): Going {
  const kept = keptOf(snapshot)
  const whole = kept?.backend.wholeRollback
  if (!kept || !whole)
    throw new SavepointError('unsupported', `Cannot roll back natively: ${snapshot.backend} keeps ${snapshot.id}`, {
      hint: 'Only snapshots that zfs keeps go back like that; leave --native out',
    })
  const found = kept.backend.find(kept.ref)
  if (found) return { ...kept, whole, ref: { ...kept.ref, ...found } }
  throw new SavepointError('backend.failed', `Cannot find ${kept.backend.whereOf(kept.ref)}: somebody has removed it`, {
    hint: 'The store has what was in it: leave --native out',
  })
}

function refuseWhatIsInTheWay(ctx: Context, going: Going, later: Later): void {
  // One of a directory inside or around works in the same files.
  const [run] = [...liveRuns(ctx), ...neighbouringRuns(ctx, undefined)]
  if (run)
    throw new SavepointError('busy', `Cannot roll back natively: ${run.id} is at work`, {
      hint: 'Wait until it has ended, or leave --native out',
    })
  if (!going.whole.isAt(ctx.targetPath, going.ref)) throw notThere(ctx, going)
  refuseOwnHome(ctx)
  refuseToDestroy(going.whole.madeOf(going.ref, later.names))
  const [held] = going.whole.held(later.names)
  if (held === undefined) return
  throw new SavepointError('backend.failed', `Cannot roll back natively: ${held} is held, and cannot be destroyed`, {
    hint: `See \`zfs holds ${held}\` and \`zfs release\`, or leave --native out`,
  })
}

/** Also with --force: all that was captured since, the state before included, would be gone with the home, and `undo`, too. */
function refuseOwnHome(ctx: Context): void {
  const device = statDir(ctx.targetPath)?.dev
  const inside = [ctx.home, ctx.store.directory, ctx.timelineDir].find(
    path => statDir(Buffer.from(path))?.dev === device,
  )
  if (inside === undefined) return
  throw new SavepointError(
    'backend.failed',
    `Cannot roll back natively: ${inside}, where Savepoint keeps what it captured, would go back, too`,
    {
      hint: 'Leave --native out, or move the home to another filesystem (SAVEPOINT_HOME)',
    },
  )
}

const changedMeanwhile = (): SavepointError =>
  new SavepointError('busy', 'Cannot roll back natively: another command has changed the files meanwhile', {
    hint: 'See `savepoint log --operations`; the same command again goes back to it',
  })

/** Of whomever: what was not said to be lost is not lost. */
function refuseWhatCame({ whole, ref }: Going, later: Later): void {
  const now = whole.later(ref)
  // Somebody else may have destroyed some already.
  later.names = later.names.filter(name => now.includes(name))
  const came = now.filter(name => !later.names.includes(name))
  if (came.length === 0) return
  throw new SavepointError('backend.failed', `Cannot roll back natively: ${came.join(', ')} came meanwhile`, {
    hint: 'The same command again says what would be lost now',
  })
}

/** What somebody wrote while the files were brought back, or was left alone by that, would go with the rest. */
async function keepEdits(ctx: Context, going: Going, snapshot: Snapshot): Promise<void> {
  const { id } = snapshot
  const live = await captureLive(ctx, {
    ...{ override: [snapshot.root], readOwned: true, ignoreFloor: true },
    phase: 'saving what changed meanwhile',
  })
  if (ctx.db.snapshots().some(other => other.root === live.root)) return
  const kept = addSnapshot(ctx, live, { type: 'safety', command: `rollback to ${id} --native` })
  const lost = lostOfNow(ctx, going, snapshot, live)
  const but = lost === '' ? '' : `, but for ${lost}`
  ctx.notice(`--native: what differed from ${id} before the filesystem went back is kept in ${kept.id}${but}`)
}

/** Also with --force: a clone is a filesystem that somebody works in. */
function refuseToDestroy(clones: readonly string[]): void {
  if (clones.length === 0) return
  throw new SavepointError('backend.failed', `Cannot roll back natively: ${clones.join(', ')} would be lost`, {
    hint: 'That is a clone of a later snapshot: destroy or promote it first, or leave --native out',
  })
}

const FILES_ARE_BACK = 'The files are back, as without --native (`savepoint undo` takes that back)'

/** What is said to be in the store alone is so, whatever happens: each is noted in `lost` when it is gone. */
async function goBack(
  ctx: Context,
  { backend, whole, ref }: Going,
  { names, ours }: Later,
  lost: string[],
  keep: () => Promise<void>,
): Promise<void> {
  await keep()
  failpoint('native:before-rollback')
  for (const name of names) {
    whole.destroy(ref, name)
    failpoint('native:destroyed')
    if (!whole.isProbe(name)) lost.push(name)
    for (const { id } of ours.get(name) ?? []) ctx.db.native.setStored(id)
  }
  // That may have taken a while, too.
  if (names.length > 0) await keep()
  whole.go(ref)
  failpoint('native:gone-back')
  const losing = lost.length > 0 ? `; ${backend.name} has lost ${lost.join(', ')}` : ''
  const onlyThere = lostWith(new Map([...ours].filter(([name]) => lost.includes(name))))
  const without = onlyThere === '' ? '' : `, with what only that had: ${onlyThere}`
  const summary = `the filesystem went back to ${backend.whereOf(ref)}${losing}${without}`
  ctx.db.addOperation({ ...newOperation(ctx, 'retention', summary), state: 'fixed', rule: '--native' })
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
