/** `coverage PATH…`: is this file recoverable right now, and if not, why. */
import type { Entry, UnknownReason } from '../model/entry.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { sameContent, sameMetadata } from '../store/tree-diff.ts'
import { allEntries, entryAt, withAllBelow } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { explainExclusion } from '../targets/dir/explain-exclusion.ts'
import { excludeConfig, type Live, lookAtLive } from './capture-live.ts'
import type { Context } from './context.ts'
import { hasCaptured } from './known-path.ts'
import { lookLive, resolvePath } from './resolve-path.ts'
import type { CoverageResult, LeftOut } from './results.ts'

/** How many that are left out are listed. */
const LISTED = 10

/** One answer per path, in their order; the target is looked at once for all. */
export async function coverage(ctx: Context, paths: readonly string[]): Promise<CoverageResult[]> {
  const raws = paths.map(path => resolvePath(ctx, path))
  const live = await lookAtLive(ctx)
  const found: CoverageResult[] = []
  for (const raw of raws) found.push(await coverageOf(ctx, raw, live))
  return found
}

async function coverageOf(ctx: Context, raw: Raw, live: Live): Promise<CoverageResult> {
  const entry = raw === '' ? undefined : entryAt(ctx.store, live.tree, raw)
  const found = raw === '' ? 'there' : lookLive(ctx, raw)
  const holders = ctx.db
    .snapshots()
    .reverse()
    .filter(snapshot => raw === '' || hasCaptured(ctx, snapshot.root, raw))
  const same = await holderOfLive(ctx, raw, holders, live)
  const isUnknown = entry?.kind === 'unknown'
  const leftOut = leftOutBelow(ctx, raw, entry, live)
  return {
    path: raw,
    exists: found === 'hidden' ? undefined : found === 'there',
    covered: found === 'there' && !isUnknown,
    reason: found === 'absent' ? 'absent' : isUnknown ? entry.reason : found === 'hidden' ? 'unreadable' : undefined,
    // Of what is gone, too: it tells why no snapshot has it.
    rule: found === 'absent' || (isUnknown && entry.reason === 'excluded') ? await ruleFor(ctx, raw) : undefined,
    leftOut,
    latest: same ?? holders[0],
    versions: holders.length,
    isUpToDate: same !== undefined,
    current: same !== undefined && leftOut.count === 0,
    isBeforeFirst: ctx.db.head === undefined,
  }
}

/** A socket has no content, and our own store is not the user's: nothing is lost with them. */
const needless: ReadonlySet<UnknownReason | undefined> = new Set(['socket', 'store'])

function leftOutBelow({ store }: Context, raw: Raw, entry: Entry | undefined, { tree }: Live): LeftOut {
  const found: LeftOut = { count: 0, paths: [] }
  if (raw !== '' && entry?.kind !== 'dir') return found
  for (const { path, entry: below } of entry ? withAllBelow(store, { path: raw, entry }) : allEntries(store, tree)) {
    if (below.kind !== 'unknown' || needless.has(below.reason)) continue
    if (++found.count <= LISTED) found.paths.push({ path, reason: below.reason! })
  }
  return found
}

/** The newest that has what is on disk, but for what is left out below it, and which today's rules may keep out of the next snapshot. After a rollback it need not be the last one. */
async function holderOfLive(ctx: Context, raw: Raw, holders: Snapshot[], live: Live): Promise<Snapshot | undefined> {
  const [latest] = holders
  if (!latest || raw === '') return holders.find(({ root }) => root === live.root)
  const seen = entryAt(ctx.store, live.tree, raw)
  const isLeftOut = seen?.reason === 'excluded' || seen?.reason === 'too-large'
  const entry = isLeftOut ? await captureAgainstRules(ctx, raw, latest) : seen
  return entry && holders.find(({ root }) => isSame(entry, entryAt(ctx.store, rootTreeOf(ctx.store, root), raw)))
}

const isSame = (entry: Entry, stored: Entry | undefined): boolean =>
  !!stored && sameContent(entry, stored) && sameMetadata(entry, stored) && entry.content === stored.content

/** What it would be as an entry if everything that `latest` has were captured again. */
async function captureAgainstRules(ctx: Context, raw: Raw, latest: Snapshot): Promise<Entry | undefined> {
  const live = await lookAtLive(ctx, { override: [latest.root] })
  return entryAt(ctx.store, live.tree, raw)
}

async function ruleFor(ctx: Context, path: string): Promise<string | undefined> {
  const rule = await withDir(ctx.targetPath, root =>
    explainExclusion({ root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env }, path),
  )
  return rule && `${showPath(rule.source)}${rule.line === undefined ? '' : `:${rule.line}`} ${showPath(rule.pattern)}`
}
