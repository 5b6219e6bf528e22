/** `coverage PATH…`: is this file recoverable right now, and if not, why. */
import { isDamage } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { holdsIn } from '../store/tree-holds.ts'
import { entryAt, withAllBelow } from '../store/tree-lookup.ts'
import { type Wholeness, wholenessOf } from '../store/whole-content.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { explainExclusion } from '../targets/dir/explain-exclusion.ts'
import { excludeConfig, type Live, lookAtLive, orAfresh } from './capture-live.ts'
import type { Context } from './context.ts'
import { keptCopies, mayHave } from './kept-copies.ts'
import { hasCaptured } from './known-path.ts'
import { lookLive, resolvePath } from './resolve-path.ts'
import type { CoverageResult, LeftOut } from './results.ts'

/** How many that are left out are listed. */
const LISTED = 10

/** One answer per path, in their order; the target is looked at once for all. Damage that is met is no reason for none. */
export async function coverage(ctx: Context, paths: readonly string[]): Promise<CoverageResult[]> {
  const raws = paths.map(path => resolvePath(ctx, path))
  return orAfresh(undefined, async afresh => {
    const live = await lookAtLive(ctx, { afresh })
    const isDoubted = afresh || ctx.store.hasKnownDamage()
    if (isDoubted)
      ctx.notice(
        'the store is damaged, and only what it can still give back counts here; savepoint verify names the rest',
      )
    const look = { live, afresh, whole: isDoubted ? wholenessOf(ctx.store) : undefined }
    const found: CoverageResult[] = []
    for (const raw of raws) found.push(await coverageOf(ctx, raw, look))
    return found
  })
}

interface Look {
  live: Live
  /** Everything is read: the store could not give back what the last capture saw. */
  afresh: boolean
  /** Where the store is known to be damaged. */
  whole: Wholeness | undefined
}

async function coverageOf(ctx: Context, raw: Raw, look: Look): Promise<CoverageResult> {
  const entry = stateAt(ctx, look.live.root, raw)
  const found = raw === '' ? 'there' : lookLive(ctx, raw)
  const snapshots = ctx.db.snapshots().reverse()
  const holders = snapshots
    .filter(({ root }) => root !== UNREAD_ROOT && (raw === '' || hasCaptured(ctx, root, raw)))
    .filter(({ root }) => !look.whole || isWhole(ctx, root, raw, look.whole))
  const same = await holderOfLive(ctx, raw, holders, { seen: entry, afresh: look.afresh })
  const latest = same ?? holders[0]
  if (latest && !look.whole) requireKnown(ctx, latest.root, raw)
  const isUnknown = entry?.kind === 'unknown'
  const reason = whyNot(ctx, found, entry)
  const leftOut = leftOutBelow(ctx, raw, entry)
  // Of what is gone, too: it tells why no snapshot has it.
  const rule = found === 'absent' || (isUnknown && entry.reason === 'excluded') ? await ruleFor(ctx, raw) : undefined
  const passedOver = reason === undefined ? [] : snapshots.filter(each => !holders.includes(each))
  const mayBeIn = mayHave(ctx, passedOver, raw)
  return {
    path: raw,
    exists: found === 'hidden' ? undefined : found === 'there',
    covered: reason === undefined,
    reason,
    rule,
    leftOut,
    latest,
    versions: holders.length,
    notRead: snapshots.filter(({ root }) => root === UNREAD_ROOT).length,
    mayBeIn,
    kept: mayBeIn.length > 0 ? keptCopies(ctx, [raw]).get(raw) : undefined,
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
  { seen, afresh }: { seen: Entry | undefined; afresh: boolean },
): Promise<Snapshot | undefined> {
  const [latest] = holders
  if (!latest) return undefined
  const isLeftOut = seen?.reason === 'excluded' || seen?.reason === 'too-large'
  const entry = isLeftOut ? await captureAgainstRules(ctx, raw, { latest, afresh }) : seen
  // What is left out whole names nothing below it: then all of it has to be there.
  if (!entry || (isLeftOut && leftOutBelow(ctx, raw, entry).count > 0)) return undefined
  const holds = holdsIn(ctx.store)
  return holders.find(({ root }) => isHeldBy(ctx, root, raw, stored => holds(stored, entry)))
}

/** By a state that the store has lost, nothing is. */
function isHeldBy(ctx: Context, root: Id, raw: Raw, holds: (stored: Entry) => boolean): boolean {
  try {
    const stored = stateAt(ctx, root, raw)
    return stored !== undefined && holds(stored)
  } catch (error) {
    if (isDamage(error)) return false
    throw error
  }
}

/** It, and what leads to it, the store can give back. */
const isWhole = (ctx: Context, root: Id, raw: Raw, whole: Wholeness): boolean =>
  isHeldBy(ctx, root, raw, stored => idsTo(ctx, root, raw).every(whole.hasObject) && whole.hasAllOf(stored))

/** The root, and the directories that a path leads through. */
function idsTo(ctx: Context, root: Id, raw: Raw): Id[] {
  const names = raw === '' ? [] : raw.split('/')
  return [root, ...names.map((_, i) => stateAt(ctx, root, names.slice(0, i).join('/'))!.content)]
}

/** Throws if a tree was lost, which may be remembered all the same, or a content that the index does not find since a repair. */
function requireKnown(ctx: Context, root: Id, raw: Raw): void {
  for (const id of idsTo(ctx, root, raw)) ctx.store.requireKept(id)
  for (const { entry } of withAllBelow(ctx.store, { path: raw, entry: stateAt(ctx, root, raw)! }))
    if (entry.kind === 'dir') ctx.store.requireKept(entry.content)
    else if (entry.content !== '') ctx.store.requireFound(entry.content)
}

/** What it would be as an entry if everything that `latest` has were captured again. */
async function captureAgainstRules(
  ctx: Context,
  raw: Raw,
  { latest, afresh }: { latest: Snapshot; afresh: boolean },
): Promise<Entry | undefined> {
  return stateAt(ctx, (await lookAtLive(ctx, { override: [latest.root], afresh })).root, raw)
}

async function ruleFor(ctx: Context, path: string): Promise<string | undefined> {
  const rule = await withDir(ctx.targetPath, root =>
    explainExclusion({ root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env }, path),
  )
  return rule && `${showPath(rule.source)}${rule.line === undefined ? '' : `:${rule.line}`} ${showPath(rule.pattern)}`
}
