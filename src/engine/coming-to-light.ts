/**
 * What `findHidden` will find after a restore, foreseen: for `--dry-run`, and for the end of a run that hid what it made by
 * ignore rules of its own.
 */
import { errnoOf, isDamage } from '../errors/errors.ts'
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import { blankEntry, type Id, type UnknownReason } from '../model/entry.ts'
import { isWithin, joinRaw, nameOf, parentOf, type Raw } from '../model/raw-path.ts'
import type { Skipped } from '../model/snapshot.ts'
import { pairByName } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { kindOfType } from '../targets/dir/dir-node.ts'
import { statDir, withDir } from '../targets/dir/dir-target.ts'
import { Exclusions } from '../targets/dir/explain-exclusion.ts'
import { Hidden } from '../targets/dir/hidden.ts'
import { planRestore, type RestorePlan } from '../targets/dir/restore-plan.ts'
import { changesRules, plannedView } from '../targets/dir/rule-view.ts'
import { S_IFDIR, S_IFMT, S_IFREG } from '../targets/dir/walk-record.ts'
import { excludeConfig, type Live } from './capture-live.ts'
import type { Context } from './context.ts'
import { statLive } from './resolve-path.ts'
import type { RestoreRequest } from './restore.ts'
import type { RunResult } from './results.ts'

/** How many are asked about. */
const MAX_ASKED = 20_000

/** `wanted`: a root. Adds to what `plan` reports. */
export async function foreseeHidden(
  ctx: Context,
  { wanted, scope }: Pick<RestoreRequest, 'wanted' | 'scope'>,
  live: Pick<Live, 'tree'>,
  plan: RestorePlan,
): Promise<void> {
  const tree = rootTreeOf(ctx.store, wanted)
  const found = unexpectedIn(ctx, live.tree, tree, scope)
  for (const path of await withoutRules(ctx, found, tree, () => plan)) plan.hidden.add(path)
}

/** After a restore: what stays hidden by ignore files that are new and exclude themselves, so that they stay, too. */
export async function nameSelfHidden(
  ctx: Context,
  request: Pick<RestoreRequest, 'wanted' | 'scope'>,
  after: Pick<Live, 'tree'>,
  plan: RestorePlan,
): Promise<void> {
  try {
    await foreseeHidden(ctx, request, after, { ...plan, actions: [] })
  } catch (error) {
    // The restore is done, whatever became of the disk.
    if (!isDamage(error) && !errnoOf(error)) throw error
  }
}

type Left = Pick<RunResult, 'hidden' | 'uncaptured'>
export const nothingLeft: Left = { hidden: { count: 0, paths: [] }, uncaptured: [] }

/** What a run that has ended made, and taking it back would leave: hidden by its own rules, too large, mounted, or a subvolume. Roots around it. */
export async function leftByRun(ctx: Context, before: Id, after: Id): Promise<Left> {
  const [wanted, live] = [before, after].map(root => rootTreeOf(ctx.store, root))
  const found = unexpectedIn(ctx, live!, wanted!, undefined)
  const hidden = new Hidden()
  const plan = () => planRestore({ store: ctx.store, live: live!, wanted: wanted!, base: live })
  try {
    for (const path of await withoutRules(ctx, found, wanted!, plan)) hidden.add(path)
  } catch (error) {
    // The command has ended, and how is the answer, whatever became of the disk.
    if (!isDamage(error) && !errnoOf(error)) throw error
  }
  return { hidden, uncaptured: found.filter(({ reason }) => reason !== 'excluded') }
}

/**
 * Those that would be captured with the rules that hold after the plan. An ignore file that excludes itself (`*`) is none
 * that a plan can remove, and still it is not what `wanted`, a tree, says: they are judged without it.
 */
async function withoutRules(ctx: Context, found: Skipped[], wanted: Id, planned: () => RestorePlan): Promise<Raw[]> {
  const excluded = found.filter(({ reason }) => reason === 'excluded').slice(0, MAX_ASKED)
  // Most find nothing, and need no plan.
  if (excluded.length === 0 || !statDir(ctx.targetPath)) return []
  const { actions } = planned()
  const own = excluded.filter(({ path }) => isIgnoreFile(path) && hadDirectory(ctx, wanted, path))
  if (own.length === 0 && !changesRules(ctx.store, actions)) return []
  const gone = own.map(({ path }) => ({ action: 'delete' as const, path, live: blankEntry(nameOf(path), 'file') }))
  return withDir(ctx.targetPath, async root => {
    const view = plannedView(root, ctx.store, [...actions, ...gone])
    const options = { root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env, view }
    const rules = await Exclusions.open(options)
    const captured: Raw[] = []
    for (const { path } of excluded) {
      const stat = statLive(ctx, path)
      if (!stat) continue
      const [type, size] = [stat.mode & S_IFMT, stat.size]
      const isCapturable = kindOfType.has(type) && !(type === S_IFREG && size > ctx.config.snapshots.max_file_bytes)
      if (isCapturable && !(await rules.of(path, { isDirectory: type === S_IFDIR, size }))) captured.push(path)
    }
    return captured
  })
}

const isIgnoreFile = (path: Raw): boolean => /(^|\/)\.(git|savepoint)ignore$/.test(path)

/** One that came with its directory hides nothing that was there before; the report names that directory. */
const hadDirectory = ({ store }: Context, tree: Id, path: Raw): boolean =>
  parentOf(path) === '' || entryAt(store, tree, parentOf(path))?.kind === 'dir'

const named: ReadonlySet<UnknownReason | undefined> = new Set(['excluded', 'too-large', 'mount'])

/** Trees. What is not captured now for one of these reasons, and the wanted state does not have. */
function unexpectedIn(ctx: Context, live: Id, wanted: Id, scope: readonly Raw[] | undefined): Skipped[] {
  const found: Skipped[] = []
  runDeep(findIn(ctx, '', live, wanted, scope, found))
  return found
}

function* findIn(
  ctx: Context,
  directory: Raw,
  live: Id,
  wanted: Id | undefined,
  scope: readonly Raw[] | undefined,
  found: Skipped[],
): Deep<void> {
  if (live === wanted) return
  const then = wanted === undefined ? [] : ctx.store.entries(wanted)
  for (const [now, expected] of pairByName(ctx.store.entries(live), then)) {
    if (!now) continue
    const path = joinRaw(directory, now.name)
    const isInside = !scope || scope.some(part => isWithin(path, part))
    if (now.kind === 'unknown') {
      if (named.has(now.reason) && !expected && isInside) found.push({ path, reason: now.reason! })
    } else if (now.kind === 'dir' && (isInside || scope.some(part => isWithin(part, path))))
      yield* call(findIn(ctx, path, now.content, expected?.kind === 'dir' ? expected.content : undefined, scope, found))
  }
}
