/** `rollback`: brings the target, or some paths of it, back to a snapshot, or to before a run. */
import { SavepointError } from '../errors/errors.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { isInTheWay } from '../targets/dir/hidden.ts'
import { findRun, resolveSnapshot, withHeadOfNow } from '../timeline/resolve-ref.ts'
import { archiveDamage } from './archive-check.ts'
import type { Live } from './capture-live.ts'
import { type Context, type OwnRun, RUN_VARIABLE, withTimelineLock } from './context.ts'
import { sayWhoseIsUnknown } from './edits-before-guards.ts'
import { editsMeanwhile, withLikely } from './edits-meanwhile.ts'
import { nameOf, requireKnown } from './known-path.ts'
import { endUncaptured } from './late-end.ts'
import { withLentLocked, withWanted } from './lent-state.ts'
import { onlyCopies } from './only-copies.ts'
import { overlappingRuns } from './overlapping-runs.ts'
import { isStopped } from './process-tree.ts'
import { sayRepositoryOutside } from './repository-outside.ts'
import { resolvePath } from './resolve-path.ts'
import { type RestoreRequest, restore } from './restore.ts'
import { restoreToDirectory } from './restore-to.ts'
import type { RestoreResult } from './results.ts'
import { closeKilledRuns } from './run-end.ts'
import { supervisorOf } from './run-state.ts'
import type { RestoreOptions } from './savepoint.ts'
import { settleBefore } from './settle.ts'
import { settleVague } from './settle-vague.ts'
import { asForeign, partly, takenBackAlready, takenBackOf } from './taken-back.ts'
import { touchedBy } from './touched-paths.ts'
import { type Doer, doerOf } from './unprotected.ts'

/** `ref` may be a run: then what that run changed is taken back, and what others changed since stays. */
export async function rollback(ctx: Context, ref: string, options: RestoreOptions): Promise<RestoreResult> {
  const scope = scopeOf(ctx, options)
  if (options.to !== undefined) {
    if (options.run !== undefined) requireRun(ctx, options.run)
    const snapshot = resolveSnapshot(ctx.db, ref)
    const { to } = options
    return withLentLocked(ctx, snapshot, async lent => {
      await requireKnown(ctx, lent, options.paths?.length ? (scope ?? []) : [])
      return restoreToDirectory(ctx, lent, to, scope, options)
    })
  }
  return withTimelineLock(ctx, 'roll back', async () => {
    await settleBefore(ctx, 'rollback', options)
    const meant = withHeadOfNow(ctx.db, ref)
    await closeKilledRuns(ctx)
    const named = options.run === undefined ? findRun(ctx.db, ref) : requireRun(ctx, options.run)
    if (named) await endUncaptured(ctx)
    const run = named && ctx.db.runOf(named.id)
    if (run) return rollbackRun(ctx, run, scope, options)
    return withWanted(ctx, resolveSnapshot(ctx.db, meant), { ...options, scope }, async (snapshot, lent) => {
      await requireKnown(ctx, snapshot, options.paths?.length ? (scope ?? []) : [], lent)
      sayDamage(ctx, snapshot)
      return restore(ctx, {
        ...requestOptions(options),
        wanted: snapshot.root,
        lent,
        scope,
        kind: 'rollback',
        summary: `rollback to ${nameOf(snapshot)}${scopeText(scope)}`,
        snapshot,
        headAfter: scope ? undefined : snapshot.id,
      })
    })
  })
}

/** The store has it; but who goes back must know that it is the only one. */
function sayDamage(ctx: Context, snapshot: Snapshot): void {
  const damage = archiveDamage(ctx.timelineDir, snapshot)
  if (damage !== undefined)
    ctx.notice(
      `the archive of ${nameOf(snapshot)} ${damage}: the store is used; \`savepoint verify --repair\` writes it again`,
    )
}

async function rollbackRun(
  ctx: Context,
  run: Run,
  scope: readonly Raw[] | undefined,
  options: RestoreOptions,
): Promise<RestoreResult> {
  const [before, after] = [run.before, run.after].map(id => (id === undefined ? undefined : ctx.db.snapshot(id)))
  // Only the run itself knows all that it has done until now.
  const own = ctx.session?.run === run.id ? ctx.session : undefined
  if (!before || !(after || own)) {
    throw new SavepointError(
      'snapshot.unknown',
      `Cannot take back ${run.id}: its ${before ? 'final' : 'first'} snapshot does not exist`,
      {
        hint: before
          ? `${run.endedAt === undefined ? unanswered(ctx, run) : ''}${wholeWayBack(before.id)}`
          : '`savepoint snapshots` lists what there is',
      },
    )
  }
  const doer = doerOf(ctx, run.id)
  const states = after && { before: before.root, after: after.root }
  const others = states && [...overlappingRuns(ctx, run.id), ...onlyCopies(ctx, run, states)]
  const taken = states && takenBackOf(ctx, run.id, states, scope, others!)
  sayWhoseIsUnknown(ctx, run.id)
  sayRepositoryOutside(ctx, run.id)
  const refuseNothing = ({ changes, leftAlone }: RestoreResult) => {
    if (taken && changes.length === 0 && !leftAlone.some(isInTheWay)) throw takenBackAlready(ctx, run, taken, before.id)
  }
  const result = await restore(ctx, {
    ...requestOptions(options),
    wanted: before.root,
    base: after?.root,
    others: taken ? [...others!, asForeign(taken, states)] : others,
    soFar: after ? undefined : live => soFar(ctx, own!, before, live, doer),
    doer,
    hasPurged: doer?.hasPurged,
    scope,
    kind: 'rollback',
    summary: `take back ${run.id}${after ? '' : ' so far'}${scopeText(scope)}`,
    snapshot: before,
    headIfSame: before.id,
    onNothing: refuseNothing,
    detail: { run: run.id, ...((scope || options.withoutGit) && partly) },
  })
  refuseNothing(result)
  // What lies in the same places as work of another run that was taken back is none of this one's.
  const isOwn = touchedBy(ctx, run.id) ?? (() => true)
  if (taken?.paths.some(isOwn))
    ctx.notice(`a part of it was taken back before, by ${taken.by.id} (${taken.by.summary}): what is there now stays`)
  return result
}

/** What is there now stands for the state after it. */
async function soFar(
  ctx: Context,
  { run, traceSoFar }: OwnRun,
  before: Snapshot,
  { root }: Live,
  doer: Doer | undefined,
): Promise<Pick<RestoreRequest, 'base' | 'others' | 'doer'>> {
  const touches = await traceSoFar()
  const known = touches && { touches, endedAt: ctx.now() }
  const states = { before: before.root, after: root }
  const likely = touches ? settleVague(ctx, run, states, touches) : []
  const { others, mixed } = withLikely(editsMeanwhile(ctx, states, known), likely)
  return {
    base: root,
    others: [
      ...overlappingRuns(ctx, run, { root, isTraced: touches !== undefined, others }),
      ...onlyCopies(ctx, ctx.db.runOf(run)!, states),
    ],
    doer: doer && { ...doer, mixed },
  }
}

/** From a run whose end is not known: what it did cannot be told from what others did. */
export const wholeWayBack = (before: string): string =>
  `\`savepoint rollback ${before}\` goes back to the state before it, whoever has changed what since`

function unanswered(ctx: Context, run: Run): string {
  const supervisor = supervisorOf(ctx, run)
  return supervisor !== undefined && isStopped(supervisor)
    ? 'It is suspended, and does not answer: `fg` in its shell wakes it; '
    : 'It goes on, and does not answer; '
}

/** From a run that has not ended, which is no operation yet. `isReached`: this process is of it, or is its supervisor. */
export function wayBackOf(ctx: Context, run: Run, isReached: boolean): string {
  const { id, before } = run
  if (before === undefined)
    return 'Its state before is not captured; `savepoint log` shows the snapshots that you can roll back to'
  if (!isReached) return unanswered(ctx, run) + wholeWayBack(before)
  const elsewhere = ctx.env[RUN_VARIABLE] === id ? ' in another terminal' : ''
  return `\`savepoint rollback ${id} --keep-running\` takes back what it has done until now; \`savepoint undo\`${elsewhere} stops it and takes it back`
}

export function requireRun(ctx: Context, ref: string): Run {
  const run = findRun(ctx.db, ref)
  if (run) return run
  throw new SavepointError('run.unknown', `Cannot find run "${ref}"`, { hint: '`savepoint runs` lists them' })
}

/** Explicit paths; else the subdirectory that the command was given in, unless everything was asked for. */
export function scopeOf(ctx: Context, options: RestoreOptions): Raw[] | undefined {
  const paths = options.paths?.map(path => resolvePath(ctx, path)) ?? []
  if (paths.length > 0) return paths.includes('') ? undefined : paths
  return ctx.subdirectory === '' || options.all || options.to !== undefined ? undefined : [ctx.subdirectory]
}

const requestOptions = (options: RestoreOptions): Pick<RestoreRequest, 'dryRun' | 'withoutGit' | 'noSafety'> => ({
  dryRun: options.dryRun,
  withoutGit: options.withoutGit,
  noSafety: options.noSafety,
})

const scopeText = (scope: readonly Raw[] | undefined): string => {
  if (!scope) return ''
  return scope.length === 1 ? `, ${showPath(scope[0]!)}` : `, ${scope.length} paths`
}
