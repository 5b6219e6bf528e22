/** `coverage PATH…`: is this file recoverable right now, and if not, why. */
import { isDamage } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { hasLostPart, isLost } from '../store/lost-content.ts'
import { holdsIn } from '../store/tree-holds.ts'
import { entryAt, withAllBelow } from '../store/tree-lookup.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
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
  const lost = ctx.store.lostPacks()
  if (lost.size > 0)
    ctx.notice(
      `${plural('pack', lost.size)} of the store ${lost.size === 1 ? 'is' : 'are'} missing or cut off, with what snapshots had there; savepoint verify names it`,
    )
  const found: CoverageResult[] = []
  for (const raw of raws) found.push(await coverageOf(ctx, raw, live, lost))
  return found
}

async function coverageOf(ctx: Context, raw: Raw, live: Live, lost: ReadonlySet<number>): Promise<CoverageResult> {
  const entry = stateAt(ctx, live.root, raw)
  const found = raw === '' ? 'there' : lookLive(ctx, raw)
  const holders = ctx.db
    .snapshots()
    .reverse()
    .filter(({ root }) => raw === '' || hasCaptured(ctx, root, raw))
    .filter(({ root }) => lost.size === 0 || isWhole(ctx, root, raw, lost))
  const same = await holderOfLive(ctx, raw, holders, entry)
  const isUnknown = entry?.kind === 'unknown'
  const reason = whyNot(ctx, found, entry)
  const leftOut = leftOutBelow(ctx, raw, entry)
  return {
    path: raw,
    exists: found === 'hidden' ? undefined : found === 'there',
    covered: reason === undefined,
    reason,
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

function whyNot(ctx: Context, found: ReturnType<typeof lookLive>, entry: Entry | undefined): CoverageResult['reason'] {
  if (found === 'absent') return 'absent'
  if (entry?.kind === 'unknown') return entry.reason
  if (found === 'hidden') return 'unreadable'
  return ctx.config.snapshots.disabled ? 'disabled' : undefined
}

const stateAt = ({ store }: Context, root: Id, raw: Raw): Entry | undefined =>
  raw === '' ? rootEntryOf(store, root) : entryAt(store, rootTreeOf(store, root), raw)

function leftOutBelow({ store }: Context, raw: Raw, entry: Entry | undefined): LeftOut {
  const found: LeftOut = { count: 0, paths: [] }
  if (entry?.kind !== 'dir') return found
  for (const { path, entry: below } of withAllBelow(store, { path: raw, entry })) {
    // Nothing is lost with a socket. With our own store all snapshots are.
    if (below.kind !== 'unknown' || below.reason === 'socket') continue
    if (++found.count <= LISTED) found.paths.push({ path, reason: below.reason! })
  }
  return found
}

/** The newest that has what is on disk, but for what is left out below it, and which today's rules may keep out of the next snapshot. After a rollback it need not be the last one. */
async function holderOfLive(
  ctx: Context,
  raw: Raw,
  holders: Snapshot[],
  seen: Entry | undefined,
): Promise<Snapshot | undefined> {
  const [latest] = holders
  if (!latest) return undefined
  const isLeftOut = seen?.reason === 'excluded' || seen?.reason === 'too-large'
  const entry = isLeftOut ? await captureAgainstRules(ctx, raw, latest) : seen
  // What is left out whole names nothing below it: then all of it has to be there.
  if (!entry || (isLeftOut && leftOutBelow(ctx, raw, entry).count > 0)) return undefined
  const holds = holdsIn(ctx.store)
  return holders.find(({ root }) => isHeldBy(ctx, root, raw, stored => holds(stored, entry)))
}

/** By a state that the store has lost, or that could not be read yet, nothing is. */
function isHeldBy(ctx: Context, root: Id, raw: Raw, holds: (stored: Entry) => boolean): boolean {
  if (root === UNREAD_ROOT) return false
  try {
    const stored = stateAt(ctx, root, raw)
    return stored !== undefined && holds(stored)
  } catch (error) {
    if (isDamage(error)) return false
    throw error
  }
}

/** Neither it, nor what leads to it, was in a pack that is lost. */
const isWhole = (ctx: Context, root: Id, raw: Raw, lost: ReadonlySet<number>): boolean =>
  isHeldBy(ctx, root, raw, stored => {
    const above = raw.split('/').map((_, i, names) => stateAt(ctx, root, names.slice(0, i).join('/'))?.content ?? '')
    return [root, ...above].every(id => !isLost(ctx.store, lost, id)) && !hasLostPart(ctx.store, lost, stored)
  })

/** What it would be as an entry if everything that `latest` has were captured again. */
async function captureAgainstRules(ctx: Context, raw: Raw, latest: Snapshot): Promise<Entry | undefined> {
  return stateAt(ctx, (await lookAtLive(ctx, { override: [latest.root] })).root, raw)
}

async function ruleFor(ctx: Context, path: string): Promise<string | undefined> {
  const rule = await withDir(ctx.targetPath, root =>
    explainExclusion({ root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env }, path),
  )
  return rule && `${showPath(rule.source)}${rule.line === undefined ? '' : `:${rule.line}`} ${showPath(rule.pattern)}`
}
