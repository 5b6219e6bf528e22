/**
 * What `findHidden` will find after a restore, foreseen: for `--dry-run`, and for the end of a run that hid what it made by
 * ignore rules of its own.
 */
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Id } from '../model/entry.ts'
import { isWithin, joinRaw, type Raw } from '../model/raw-path.ts'
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
  if (!changesRules(ctx.store, plan.actions) || !statDir(ctx.targetPath)) return
  const then = rootTreeOf(ctx.store, wanted)
  const candidates = runDeep(hiddenIn(ctx, '', live.tree, then, scope, [])).slice(0, MAX_ASKED)
  if (candidates.length === 0) return
  await withDir(ctx.targetPath, async root => {
    const view = plannedView(root, ctx.store, plan.actions)
    const options = { root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env, view }
    const rules = await Exclusions.open(options)
    for (const path of candidates) {
      const stat = statLive(ctx, path)
      if (!stat) continue
      const [type, size] = [stat.mode & S_IFMT, stat.size]
      const isCapturable = kindOfType.has(type) && !(type === S_IFREG && size > ctx.config.snapshots.max_file_bytes)
      if (isCapturable && !(await rules.of(path, { isDirectory: type === S_IFDIR, size }))) plan.hidden.add(path)
    }
  })
}

type Left = Pick<RunResult, 'hidden' | 'uncaptured'>
export const nothingLeft: Left = { hidden: { count: 0, paths: [] }, uncaptured: [] }

/** What a run that has ended made, and taking it back would leave: hidden by its own rules, or too large. Roots around it. */
export async function leftByRun(ctx: Context, before: Id, after: Id): Promise<Left> {
  const [wanted, live] = [before, after].map(root => rootTreeOf(ctx.store, root))
  const plan = planRestore({ store: ctx.store, live: live!, wanted: wanted!, base: live })
  const report = { ...plan, hidden: new Hidden() }
  await foreseeHidden(ctx, { wanted: before }, { tree: live! }, report)
  return { hidden: report.hidden, uncaptured: report.uncaptured.filter(({ reason }) => reason === 'too-large') }
}

/** What rules exclude now, and the wanted state does not have. */
function* hiddenIn(
  ctx: Context,
  directory: Raw,
  live: Id,
  wanted: Id | undefined,
  scope: readonly Raw[] | undefined,
  found: Raw[],
): Deep<Raw[]> {
  if (live === wanted) return found
  const then = wanted === undefined ? [] : ctx.store.entries(wanted)
  for (const [now, expected] of pairByName(ctx.store.entries(live), then)) {
    if (!now) continue
    const path = joinRaw(directory, now.name)
    const isInside = !scope || scope.some(part => isWithin(path, part))
    if (now.kind === 'unknown') {
      if (now.reason === 'excluded' && !expected && isInside) found.push(path)
    } else if (now.kind === 'dir' && (isInside || scope.some(part => isWithin(part, path))))
      yield* call(
        hiddenIn(ctx, path, now.content, expected?.kind === 'dir' ? expected.content : undefined, scope, found),
      )
  }
  return found
}
