/**
 * What `findHidden` will find after a restore, foreseen: for `--dry-run`, and for the end of a run that hid what it made by
 * ignore rules of its own.
 */
import { errnoOf, isDamage } from '../errors/errors.ts'
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Id } from '../model/entry.ts'
import { isWithin, joinRaw, type Raw } from '../model/raw-path.ts'
import type { Skipped } from '../model/snapshot.ts'
import { pairByName } from '../store/tree-diff.ts'
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
  const found = unexpectedIn(ctx, live.tree, rootTreeOf(ctx.store, wanted), scope)
  for (const path of await withoutRules(ctx, found, () => plan)) plan.hidden.add(path)
}

type Left = Pick<RunResult, 'hidden' | 'uncaptured'>
export const nothingLeft: Left = { hidden: { count: 0, paths: [] }, uncaptured: [] }

/** What a run that has ended made, and taking it back would leave: hidden by its own rules, or too large. Roots around it. */
export async function leftByRun(ctx: Context, before: Id, after: Id): Promise<Left> {
  const [wanted, live] = [before, after].map(root => rootTreeOf(ctx.store, root))
  const found = unexpectedIn(ctx, live!, wanted!, undefined)
  const hidden = new Hidden()
  const plan = () => planRestore({ store: ctx.store, live: live!, wanted: wanted!, base: live })
  try {
    for (const path of await withoutRules(ctx, found, plan)) hidden.add(path)
  } catch (error) {
    // The command has ended, and how is the answer, whatever became of the disk.
    if (!isDamage(error) && !errnoOf(error)) throw error
  }
  return { hidden, uncaptured: found.filter(({ reason }) => reason === 'too-large') }
}

/** Those that would be captured with the rules that hold after the plan. */
async function withoutRules(ctx: Context, found: Skipped[], planned: () => RestorePlan): Promise<Raw[]> {
  const excluded = found.filter(({ reason }) => reason === 'excluded').slice(0, MAX_ASKED)
  // Most find nothing, and need no plan.
  if (excluded.length === 0 || !statDir(ctx.targetPath)) return []
  const { actions } = planned()
  if (!changesRules(ctx.store, actions)) return []
  return withDir(ctx.targetPath, async root => {
    const view = plannedView(root, ctx.store, actions)
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

/** Trees. What is excluded or too large now, and the wanted state does not have. */
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
      const reason = now.reason === 'excluded' || now.reason === 'too-large' ? now.reason : undefined
      if (reason && !expected && isInside) found.push({ path, reason })
    } else if (now.kind === 'dir' && (isInside || scope.some(part => isWithin(part, path))))
      yield* call(findIn(ctx, path, now.content, expected?.kind === 'dir' ? expected.content : undefined, scope, found))
  }
}
