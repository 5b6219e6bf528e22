/** `revert`: brings one path back, as the snapshot that is named has it, or as it last was on the way to the present. */
import { SavepointError } from '../errors/errors.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { resolveSnapshot, withHeadOfNow } from '../timeline/resolve-ref.ts'
import { type Context, withTimelineLock } from './context.ts'
import { lookInto } from './kept-paths.ts'
import { hasCaptured, isCapturable, nameOf, requireKnown, unknownPath } from './known-path.ts'
import { withLent, withWanted } from './lent-state.ts'
import { resolvePath, typedPath } from './resolve-path.ts'
import { restore } from './restore.ts'
import type { RestoreResult } from './results.ts'
import { closeKilledRuns } from './run-end.ts'
import { settleBefore } from './settle.ts'

export async function revert(
  ctx: Context,
  path: string,
  options: { from?: string; dryRun?: boolean },
): Promise<RestoreResult> {
  return withTimelineLock(ctx, 'revert', async () => {
    await settleBefore(ctx, 'revert', options)
    const from = options.from === undefined ? undefined : withHeadOfNow(ctx.db, options.from)
    await closeKilledRuns(ctx)
    const raw = resolvePath(ctx, path)
    const { dryRun } = options
    const found = from === undefined ? await lastVersion(ctx, raw) : resolveSnapshot(ctx.db, from)
    return withWanted(ctx, found, { scope: [raw], dryRun }, async (snapshot, lent) => {
      await requireKnown(ctx, snapshot, [raw], lent)
      return restore(ctx, {
        dryRun,
        wanted: snapshot.root,
        lent,
        scope: [raw],
        kind: 'revert',
        summary: `revert ${raw === '' ? '.' : showPath(raw)} to ${nameOf(snapshot)}`,
        snapshot,
      })
    })
  })
}

/**
 * The newest snapshot with the path among HEAD and its ancestors. Newest in time would often be what the user has just
 * gone back from: a safety snapshot, or a run that was undone. Those are looked at only when nothing else has the path.
 */
async function lastVersion(ctx: Context, path: Raw): Promise<Snapshot> {
  const line = lineOfHead(ctx)
  const inLine = new Set(line.map(({ id }) => id))
  const beside = ctx.db
    .snapshots()
    .filter(({ id }) => !inLine.has(id))
    .reverse()
  const candidates = [...safetyLast(line), ...safetyLast(beside)].filter(({ deletedAt }) => deletedAt === undefined)
  const found = await firstWith(ctx, candidates, path)
  if (!found) throw await nowhere(ctx, path)
  if (!inLine.has(found.id)) {
    ctx.notice(
      `neither HEAD nor what it descends from has ${showPath(path)}: it comes from ${nameOf(found)}, which is on another branch`,
    )
  }
  return found
}

async function firstWith(ctx: Context, snapshots: readonly Snapshot[], path: Raw): Promise<Snapshot | undefined> {
  for (const snapshot of snapshots) if (path === '' || (await hasIt(ctx, snapshot, path))) return snapshot
  return undefined
}

/** One that is not read may have it as well; it is looked at as a whole only if it does. Where it is away, nobody can tell. */
async function hasIt(ctx: Context, snapshot: Snapshot, path: Raw): Promise<boolean> {
  if (snapshot.root === UNREAD_ROOT && lookInto(snapshot, path) === false) return false
  try {
    return await withLent(ctx, snapshot, async ({ root }) => hasCaptured(ctx, root, path))
  } catch (error) {
    if ((error as SavepointError).code !== 'backend.failed') throw error
    return false
  }
}

const safetyLast = (snapshots: Snapshot[]): Snapshot[] =>
  snapshots.toSorted((a, b) => Number(a.type === 'safety') - Number(b.type === 'safety'))

/** HEAD and its ancestors, newest first, deleted ones included. */
function lineOfHead(ctx: Context): Snapshot[] {
  const all = new Map(ctx.db.snapshots(true).map(snapshot => [snapshot.id, snapshot]))
  const line: Snapshot[] = []
  for (let id = ctx.db.head; id !== undefined; id = all.get(id)?.parent) {
    const snapshot = all.get(id)
    if (snapshot) line.push(snapshot)
  }
  return line
}

/** Nobody asked for it to go: that is said with the snapshot in which it did not exist. */
async function nowhere(ctx: Context, path: Raw): Promise<SavepointError> {
  if (ctx.db.head === undefined || !(await isCapturable(ctx, path))) return unknownPath(ctx, path, 'no snapshot has it')
  return new SavepointError('path.unknown', `Cannot revert ${showPath(path)}: no snapshot has it`, {
    hint: `\`savepoint revert ${typedPath(ctx, path)} --from SNAPSHOT\` removes it, as it did not exist then; \`savepoint snapshot\` captures it`,
  })
}
