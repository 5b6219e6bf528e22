/**
 * What `findHidden` will find after a restore, foreseen: for `--dry-run`, and for the end of a run that hid what it made by
 * ignore rules of its own.
 */
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Id } from '../model/entry.ts'
import { isWithin, joinRaw, type Raw } from '../model/raw-path.ts'
import { pairByName } from '../store/tree-diff.ts'
import { kindOfType } from '../targets/dir/dir-node.ts'
import { statDir, withDir } from '../targets/dir/dir-target.ts'
import { Exclusions } from '../targets/dir/explain-exclusion.ts'
import { Hidden } from '../targets/dir/hidden.ts'
import { planRestore, type RestorePlan } from '../targets/dir/restore-plan.ts'
import { changesRules, plannedView } from '../targets/dir/rule-view.ts'
import { S_IFDIR, S_IFMT, S_IFREG } from '../targets/dir/walk-record.ts'
import { excludeConfig } from './capture-live.ts'
import type { Context } from './context.ts'
import { statLive } from './resolve-path.ts'

/** How many are asked about. */
const MAX_ASKED = 20_000

/** Trees of the target, as it is and as it shall be. */
interface States {
  live: Id
  wanted: Id
  scope?: readonly Raw[]
}

/** Adds to what `plan` reports. */
export async function foreseeHidden(ctx: Context, states: States, plan: RestorePlan): Promise<void> {
  if (!changesRules(ctx.store, plan.actions) || !statDir(ctx.targetPath)) return
  const candidates = runDeep(hiddenIn(ctx, '', states.live, states.wanted, states.scope, [])).slice(0, MAX_ASKED)
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

export const noneHidden: Readonly<Pick<Hidden, 'count' | 'paths'>> = { count: 0, paths: [] }

/** What a run that has ended hid so that taking it back would leave it. */
export async function hiddenByRun(ctx: Context, before: Id, after: Id): Promise<Hidden> {
  const plan = planRestore({ store: ctx.store, live: after, wanted: before, base: after })
  plan.hidden = new Hidden()
  await foreseeHidden(ctx, { live: after, wanted: before }, plan)
  return plan.hidden
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
