/**
 * A target that was a filesystem of its own, or on one, which is not mounted: it is missing, or is the directory that it was
 * mounted on. What is in there is nobody's work, and what is made there stands in the way of mounting it again.
 */
import { datasetAt, mountedAt } from '../backends/mounts-below.ts'
import { SavepointError } from '../errors/errors.ts'
import { rawFromBytes, rawToText, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { statDir } from '../targets/dir/dir-target.ts'
import { isNoLongerKept } from './backend.ts'
import type { Context } from './context.ts'
import { type Kept, keptOf } from './native-ref.ts'
import { isInterrupted } from './run-state.ts'
import { isOtherDataset } from './target-dataset.ts'
import { lastMount, type Mounted, missingMount, mountedOver } from './target-mount.ts'

/** What to do where another directory has taken the target's place. */
export function hintOfReplaced(ctx: Context): string {
  const killed = ctx.unwritable ? undefined : ctx.db.unendedRuns().findLast(run => isInterrupted(ctx, run))
  const hint = hintWithoutRuns(ctx)
  if (!killed) return hint
  return `If ${killed.id} did that, in which Savepoint was killed: savepoint undo. ${hint}`
}

function hintWithoutRuns(ctx: Context): string {
  const meant =
    'if this is meant to be the same workspace: savepoint snapshot --force makes the timeline belong to the new directory'
  const over = mountedOver(ctx)
  if (over) return `${describeOver(over)}: ${hintOfOver(over)}; ${meant}`
  const dataset = datasetAt(ctx.targetPath)
  if (dataset && mountedAt(ctx.targetPath) && isOtherDataset(ctx))
    return `${describeDatasets(ctx, rawToText(dataset))}; ${meant}`
  const last = isNoLongerKept(ctx) ? undefined : lastKept(ctx)
  const mount = last ? undefined : missingMount(ctx)
  if (mount) return `If ${mount.source} was mounted at ${mount.point}, mount it there again; ${meant}`
  if (!last || mountedAt(ctx.targetPath) !== '') return `I${meant.slice(1)}`
  // Only what is mounted at the target goes back as a whole.
  const mounted = lastKept(ctx, ({ backend }) => backend.wholeRollback !== undefined)
  if (mounted?.backend.isAway(ctx.targetPath, mounted.ref))
    return `Nothing is mounted there: mount the filesystem of ${whereOf(mounted)} again`
  if (mounted)
    return `Nothing is mounted there, and what ${whereOf(mounted)} was taken of is gone or mounted elsewhere; ${meant}`
  return `Nothing is mounted there: if the filesystem of ${whereOf(last)} was, mount it again; ${meant}`
}

/** Two may even have the same name. */
function describeDatasets(ctx: Context, now: string): string {
  const before = lastMount(ctx)?.source
  return before === undefined || before === now
    ? `The dataset ${now} that is mounted there is another one than before: mount that again`
    : `The dataset ${now} is mounted there, and not ${before}: zfs unmount ${now}; zfs mount ${before}`
}

/** Throws where the target is missing only because its filesystem is not mounted, or hidden. One that is gone for good needs a word. */
export function refuseAway(ctx: Context): void {
  if (ctx.force) return
  const what = `Cannot make ${wordFor(ctx)} again`
  const over = mountedOver(ctx)
  if (over) throw new SavepointError('target.missing', `${what}: ${describeOver(over)}`, { hint: hintOfOver(over) })
  const away = awayFrom(ctx)
  if (!away) return
  throw new SavepointError('target.missing', `${what}: its filesystem is not mounted`, { hint: hintOfAway(ctx, away) })
}

/** Throws where a run has ended, and what it has left is on a filesystem that is not mounted: what is there instead is not its work. */
export function refuseUnseen(ctx: Context): void {
  if (ctx.force) return
  const what = `Cannot see what a run left in ${wordFor(ctx)}`
  const over = mountedOver(ctx)
  if (over) throw new SavepointError('target.missing', `${what}: ${describeOver(over)}`, { hint: hintOfOver(over) })
  const mount = missingMount(ctx)
  if (!mount) return
  const away = `${mount.source} at ${mount.point}`
  throw new SavepointError('target.missing', `${what}: ${away} is not mounted`, { hint: hintOfAway(ctx, away) })
}

const describeOver = ({ source, point }: Mounted): string => `${source} is mounted over it, at ${point}`
const hintOfOver = ({ point }: Mounted): string => `umount ${quoteWord(point)}`

/** The error of who looks for a target that is missing, with what helps where only its filesystem is. */
export function explainMissing(ctx: Context, error: SavepointError): SavepointError {
  if (error.code !== 'target.missing' || statDir(ctx.targetPath)) return error
  const over = mountedOver(ctx)
  const away = over ? undefined : awayFrom(ctx)
  if (!over && !away) return error
  const hint = over ? `${describeOver(over)}: ${hintOfOver(over)}` : hintOfAway(ctx, away!)
  return new SavepointError(error.code, error.message, { hint, cause: error })
}

/** What is to be mounted, in words. */
function awayFrom(ctx: Context): string | undefined {
  const last = isNoLongerKept(ctx) ? undefined : lastKept(ctx)
  if (last?.backend.isAway(ctx.targetPath, last.ref)) return `the filesystem of ${whereOf(last)}`
  const mount = missingMount(ctx)
  return mount && `${mount.source} at ${mount.point}`
}

const hintOfAway = (ctx: Context, away: string): string =>
  `Mount ${away} again. If it is gone for good: \`savepoint rollback SNAP --force -t ${wordFor(ctx)}\` makes a plain directory; if the files are in another directory by now: \`savepoint status --adopt ${wordFor(ctx)}\`, said there`

const lastKept = ({ db }: Context, isMeant: (kept: Kept) => boolean = () => true): Kept | undefined =>
  db
    .snapshots(true)
    .map(keptOf)
    .findLast(kept => kept !== undefined && isMeant(kept))

const whereOf = ({ backend, ref }: Kept): string => backend.whereOf(ref)

const wordFor = ({ targetPath }: Context): string => quoteWord(showPath(rawFromBytes(targetPath)))
