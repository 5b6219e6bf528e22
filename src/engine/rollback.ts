/** `rollback` and `revert`: bring the target, or some paths of it, back to a snapshot. */
import { isDamage, SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { idFromHex } from '../model/id.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { findRun, resolveSnapshot } from '../timeline/resolve-ref.ts'
import { type Context, withTimelineLock } from './context.ts'
import { existsLive, resolvePath, typedPath } from './resolve-path.ts'
import { type RestoreRequest, restore } from './restore.ts'
import { restoreToDirectory } from './restore-to.ts'
import type { RestoreResult } from './results.ts'
import { closeKilledRuns } from './run.ts'
import type { RestoreOptions } from './savepoint.ts'
import { settleBefore } from './settle.ts'

/** `ref` may be a run: then what that run changed is taken back, and what others changed since stays. */
export async function rollback(ctx: Context, ref: string, options: RestoreOptions): Promise<RestoreResult> {
  const scope = scopeOf(ctx, options)
  if (options.to !== undefined) {
    if (options.run !== undefined) requireRun(ctx, options.run)
    const snapshot = resolveSnapshot(ctx.db, ref)
    requireKnown(ctx, snapshot, options.paths, scope)
    return restoreToDirectory(ctx, snapshot, options.to, scope, options)
  }
  return withTimelineLock(ctx, 'roll back', async () => {
    await settleBefore(ctx, 'rollback', options)
    await closeKilledRuns(ctx)
    const run = options.run === undefined ? findRun(ctx.db, ref) : requireRun(ctx, options.run)
    if (run) return rollbackRun(ctx, run, scope, options)
    const snapshot = resolveSnapshot(ctx.db, ref)
    requireKnown(ctx, snapshot, options.paths, scope)
    return restore(ctx, {
      ...requestOptions(options),
      wanted: snapshot.root,
      scope,
      kind: 'rollback',
      summary: `rollback to ${nameOf(snapshot)}${scopeText(scope)}`,
      snapshot,
      headAfter: scope ? undefined : snapshot.id,
    })
  })
}

export async function revert(
  ctx: Context,
  path: string,
  options: { from?: string; dryRun?: boolean },
): Promise<RestoreResult> {
  return withTimelineLock(ctx, 'revert', async () => {
    await settleBefore(ctx, 'revert', options)
    const raw = resolvePath(ctx, path)
    const snapshot = options.from === undefined ? newestVersion(ctx, raw) : resolveSnapshot(ctx.db, options.from)
    if (!isKnown(ctx, snapshot, raw)) throw unknownPath(ctx, raw, snapshot)
    return restore(ctx, {
      dryRun: options.dryRun,
      wanted: snapshot.root,
      scope: [raw],
      kind: 'revert',
      summary: `revert ${showPath(raw)} to ${nameOf(snapshot)}`,
      snapshot,
    })
  })
}

function rollbackRun(
  ctx: Context,
  run: Run,
  scope: readonly Raw[] | undefined,
  options: RestoreOptions,
): Promise<RestoreResult> {
  const [before, after] = [run.before, run.after].map(id => (id === undefined ? undefined : ctx.db.snapshot(id)))
  if (!before || !after) {
    throw new SavepointError(
      'snapshot.unknown',
      `Cannot take back ${run.id}: its ${before ? 'final' : 'first'} snapshot does not exist`,
      {
        hint: run.endedAt === undefined ? wayBackOf(run) : '`savepoint snapshots` lists what there is',
      },
    )
  }
  return restore(ctx, {
    ...requestOptions(options),
    wanted: before.root,
    base: after.root,
    scope,
    kind: 'rollback',
    summary: `take back ${run.id}${scopeText(scope)}`,
    snapshot: before,
    detail: { run: run.id },
  })
}

/** To the state before a run that has not ended: only then is known what it changed. */
export const wayBackOf = ({ before }: Run): string =>
  before === undefined
    ? 'Its state before is not captured; `savepoint log` shows the snapshots that you can roll back to'
    : `\`savepoint rollback ${before}\` goes back to the state before it, also from inside; \`savepoint undo\` works when it has ended`

export function requireRun(ctx: Context, ref: string): Run {
  const run = findRun(ctx.db, ref)
  if (run) return run
  throw new SavepointError('run.unknown', `Cannot find run "${ref}"`, { hint: '`savepoint runs` lists them' })
}

/** Explicit paths; else the subdirectory that the command was given in, unless everything was asked for. */
function scopeOf(ctx: Context, options: RestoreOptions): Raw[] | undefined {
  const paths = options.paths?.map(path => resolvePath(ctx, path)) ?? []
  if (paths.length > 0) return paths.includes('') ? undefined : paths
  return ctx.subdirectory === '' || options.all || options.to !== undefined ? undefined : [ctx.subdirectory]
}

const requestOptions = (options: RestoreOptions): Pick<RestoreRequest, 'dryRun' | 'withoutGit' | 'noSafety'> => ({
  dryRun: options.dryRun,
  withoutGit: options.withoutGit,
  noSafety: options.noSafety,
})

/** A path that the user named must mean something: captured in the snapshot, or absent there but known somewhere. */
function requireKnown(ctx: Context, snapshot: Snapshot, paths: string[] | undefined, scope: Raw[] | undefined): void {
  if (!paths?.length) return
  for (const path of scope ?? []) if (!isKnown(ctx, snapshot, path)) throw unknownPath(ctx, path, snapshot)
}

/** Whether the snapshot, or any other one, has an opinion on this path. */
function isKnown(ctx: Context, snapshot: Snapshot, path: Raw): boolean {
  if (path === '') return true
  const entry = entryAt(ctx.store, rootTreeOf(ctx.store, snapshot.root), path)
  if (entry) return entry.kind !== 'unknown'
  return existsLive(ctx, path) || ctx.db.snapshots(true).some(other => hasCaptured(ctx, other.root, path))
}

/** A state that the store has lost has nothing any more. */
export function hasCaptured(ctx: Context, root: Id, path: Raw): boolean {
  try {
    const entry = entryAt(ctx.store, rootTreeOf(ctx.store, root), path)
    return entry !== undefined && entry.kind !== 'unknown'
  } catch (error) {
    if (isDamage(error)) return false
    throw error
  }
}

/** The newest snapshot that contains the path; else the newest of all, in which it is known to be absent. */
function newestVersion(ctx: Context, path: Raw): Snapshot {
  const newestFirst = ctx.db.snapshots().reverse()
  const found = newestFirst.find(snapshot => hasCaptured(ctx, snapshot.root, path)) ?? newestFirst[0]
  if (found) return found
  throw unknownPath(ctx, path, undefined)
}

function unknownPath(ctx: Context, path: Raw, snapshot: Snapshot | undefined): SavepointError {
  const where = snapshot ? nameOf(snapshot) : 'any snapshot'
  const typed = typedPath(ctx, path)
  return new SavepointError('path.unknown', `Cannot restore ${showPath(path)}: ${where} does not have it`, {
    hint: `\`savepoint history ${typed}\` shows its versions, \`savepoint coverage ${typed}\` whether it is protected`,
  })
}

const nameOf = (snapshot: Snapshot): string => (snapshot.label ? `${snapshot.id} (${snapshot.label})` : snapshot.id)
const scopeText = (scope: readonly Raw[] | undefined): string => {
  if (!scope) return ''
  return scope.length === 1 ? `, ${showPath(scope[0]!)}` : `, ${scope.length} paths`
}

/** Root trees that an operation recorded. */
export const recordedRoot = (detail: Record<string, unknown>, key: 'before_root' | 'after_root'): Id | undefined =>
  typeof detail[key] === 'string' ? idFromHex(detail[key]) : undefined
