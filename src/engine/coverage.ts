/** `coverage PATH`: is this file recoverable right now, and if not, why. */
import { showPath } from '../model/raw-path.ts'
import { sameContent, sameMetadata } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { explainExclusion } from '../targets/dir/explain-exclusion.ts'
import { excludeConfig, lookAtLive } from './capture-live.ts'
import type { Context } from './context.ts'
import { existsLive, resolvePath } from './resolve-path.ts'
import type { CoverageResult } from './results.ts'
import { hasCaptured } from './rollback.ts'

export async function coverage(ctx: Context, path: string): Promise<CoverageResult> {
  const raw = resolvePath(ctx, path)
  const live = await lookAtLive(ctx)
  const entry = raw === '' ? undefined : entryAt(ctx.store, live.tree, raw)
  const exists = raw === '' || existsLive(ctx, raw)
  const holders = ctx.db
    .snapshots()
    .reverse()
    .filter(snapshot => raw === '' || hasCaptured(ctx, snapshot.root, raw))
  const latest = holders[0]
  const stored = latest && raw !== '' ? entryAt(ctx.store, rootTreeOf(ctx.store, latest.root), raw) : undefined
  const isUnknown = entry?.kind === 'unknown'
  return {
    path: raw,
    exists,
    covered: exists && !isUnknown,
    reason: !exists ? 'absent' : isUnknown ? entry.reason : undefined,
    rule: isUnknown && entry.reason === 'excluded' ? await ruleFor(ctx, raw) : undefined,
    latest,
    versions: holders.length,
    current:
      raw === ''
        ? latest?.root === live.root
        : !!entry &&
          !!stored &&
          sameContent(entry, stored) &&
          sameMetadata(entry, stored) &&
          entry.content === stored.content,
  }
}

async function ruleFor(ctx: Context, path: string): Promise<string | undefined> {
  const rule = await withDir(ctx.targetPath, root =>
    explainExclusion({ root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env }, path),
  )
  return rule && `${showPath(rule.source)}${rule.line === undefined ? '' : `:${rule.line}`} ${showPath(rule.pattern)}`
}
