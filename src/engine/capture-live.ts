/** Captures the live target into the store. Makes no snapshot: that is the caller's, once it knows what for. */
import { errnoOf, fullWords, isDamage, isNoRoom, isUnwritable, SavepointError } from '../errors/errors.ts'
import { sizeLimitOf } from '../errors/size-limit.ts'
import type { OutsideRules } from '../files/outside-rules.ts'
import type { Id } from '../model/entry.ts'
import { type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { addon } from '../native/addon.ts'
import { DiscardingWriter } from '../store/discarding-writer.ts'
import { failpoint } from '../store/failpoint.ts'
import { keepReserve } from '../store/reserve.ts'
import { needsDamaged } from '../store/whole-content.ts'
import { type CaptureResult, captureDir } from '../targets/dir/capture.ts'
import { isClosedByMode, statDir, withDir } from '../targets/dir/dir-target.ts'
import type { Dirty, HeldFiles } from '../targets/dir/dirty-dirs.ts'
import type { Preserved } from '../targets/dir/preserved.ts'
import type { WrittenFiles } from '../targets/dir/restore-stage.ts'
import { emptyCache, type StatCache } from '../targets/dir/stat-cache.ts'
import { leaveInFile, loadStatCache, saveStatCache } from '../targets/dir/stat-cache-file.ts'
import { checkFloor, checkMargin, checkRoom } from './capture-room.ts'
import { type Context, recordTarget } from './context.ts'
import { gitCacheOf, openGitCache } from './git-facts-cache.ts'
import { openedList } from './opened-modes.ts'
import { isTarget } from './target-dataset.ts'
import { noteMount } from './target-mount.ts'
import { allTargets } from './target-registry.ts'
import { explainMissing, hintOfReplaced } from './unmounted-target.ts'

export interface LiveOptions {
  /** Root trees whose captured paths are captured whatever the rules say. */
  override?: readonly Id[]
  written?: WrittenFiles
  /** Captures this working directory of an interrupted restore too. */
  stage?: Raw
  /** Looks only: nothing is stored, and the result is gone with this process. */
  discard?: boolean
  /** Reads what this user owns although its mode forbids it. */
  readOwned?: boolean
  /** Safety captures and questions may use the part of the disk that is kept free. */
  ignoreFloor?: boolean
  /** With ignoreFloor: that part stays free all the same; only max_store_bytes does not count. */
  keepFloor?: boolean
  /** With ignoreFloor: is given up before the disk is full, by who has another way. */
  leavesRoom?: boolean
  /** Damage was met: everything is read, and what the store cannot give back is stored again. */
  afresh?: boolean
  phase?: string
  /** What a run may have changed since HEAD was captured. Not relied on when that is not what was last seen. */
  dirty?: RunDirty
  /** A run may change the tree meanwhile, and puts aside there what it changes: the state of now is captured. */
  preserved?: Preserved
  /** Files that processes of the run can write unseen. */
  held?: HeldFiles
  /** A state that the filesystem keeps is captured, and not what is there now. */
  kept?: KeptState
}

export interface KeptState {
  path: Buffer
  /** When it was the live one. */
  atMs: number
  /** What was mounted in it. */
  mounts: ReadonlySet<Raw>
  /** Rules that are not in it; undefined: as they are now. */
  outside: OutsideRules | undefined
  /** What may differ from the state that the last capture saw; undefined: anything. */
  dirtySince(cache: StatCache): Dirty | undefined
}

export interface RunDirty extends Dirty {
  touchedSince(): Promise<Raw[] | undefined>
}

export interface Live extends CaptureResult {
  /** Bytes added to the store. */
  newBytes: number
  /** The newest event that was known when it began. */
  eventsAt: number
  /** Where not all of it is stored: the tree with all of it, as long as this process lives. */
  seenTree?: Id
}

/**
 * The target must exist and be the one that the timeline belongs to. Trees of the last capture that the store has lost do
 * not stand in the way.
 */
export async function captureLive(ctx: Context, options: LiveOptions = {}): Promise<Live> {
  if (!options.kept) checkIdentity(ctx)
  if (!options.ignoreFloor) checkRoom(ctx)
  else if (options.keepFloor) checkFloor(ctx)
  if (!options.discard) recordTarget(ctx)
  if (!options.discard && !options.kept) noteMount(ctx)
  const held = options.held ?? (await ctx.heldFiles?.())
  return orAfresh(options.afresh, afresh => {
    // What a run has changed since can be put aside only once.
    if (afresh && options.preserved?.isStarted)
      throw new SavepointError('store.damaged', 'Cannot capture: the store is damaged', {
        hint: 'Run `savepoint verify`',
      })
    return captureOnce(ctx, { ...options, held, afresh })
  })
}

/** Does it again, with everything read afresh, when it meets damage. That may lie elsewhere: then it meets it again. */
export async function orAfresh<T>(already: boolean | undefined, work: (afresh: boolean) => Promise<T>): Promise<T> {
  try {
    return await work(already ?? false)
  } catch (error) {
    if (already || !isDamage(error)) throw error
    return work(true)
  }
}

async function captureOnce(ctx: Context, options: LiveOptions): Promise<Live> {
  const { discard, afresh } = options
  const eventsAt = discard ? 0 : ctx.db.events.beginCapture()
  // What a look before has kept must not hide that the store has lost it.
  if (!discard) ctx.store.forgetKept()
  // Before: who finds out in the midst that there is a quota has something to give up then.
  if (!discard) remember(() => keepReserve(ctx.store.directory))
  const writer = discard ? new DiscardingWriter(ctx.store) : await ctx.store.writer(ctx.signal, afresh)
  const { made } = ctx.store.index
  // What is still to come may be there already, or compress well: what it takes is not foretold.
  if (!options.ignoreFloor || options.keepFloor) writer.onGrowth = () => checkFloor(ctx)
  else if (options.leavesRoom) writer.onGrowth = () => checkMargin(ctx)
  try {
    return await withDir(options.kept?.path ?? ctx.targetPath, async root => {
      // A kept state has the same files, under the same numbers, on another device.
      const stat = (options.kept && statDir(ctx.targetPath)) ?? addon.statFd(root)
      // The cache speaks of trees that may be lost with their pack: then everything is read, and stored, again.
      const isWhole = writer.lostPacks.size === 0 && !afresh
      const rootKey = rootKeyOf(ctx, stat)
      const gitCache = openGitCache(gitCacheOf(ctx))
      // What is known to be damaged is stored again only by who reads it.
      const isSound = ({ root }: StatCache) => discard || !needsDamaged(ctx.store, root)
      const known = (cache: StatCache | undefined) => (cache && isSound(cache) ? cache : undefined)
      const seen = isWhole ? known(takeSeen(ctx, rootKey)) : undefined
      const mayTrust = seen !== undefined && options.dirty !== undefined
      if (!mayTrust) ctx.seen?.answers?.clear()
      const loadCache = () => seen ?? (isWhole ? known(storedCache(ctx, rootKey)) : undefined) ?? emptyCache(rootKey)
      const cache = options.kept && loadCache()
      const result = await captureDir({
        ...options,
        dirty: cache ? options.kept!.dirtySince(cache) : mayTrust ? options.dirty : undefined,
        touchedSince: mayTrust ? () => options.dirty!.touchedSince() : undefined,
        store: ctx.store,
        writer,
        root,
        rootPath: options.kept?.path ?? ctx.targetPath,
        outerPath: ctx.targetPath,
        outside: options.kept?.outside,
        exclude: excludeConfig(ctx),
        maxFileBytes: ctx.config.snapshots.max_file_bytes,
        loadCache: () => cache ?? loadCache(),
        gitCache,
        env: ctx.env,
        isBackground: options.preserved !== undefined || ctx.heldFiles !== undefined,
        answers: ctx.seen?.answers,
        opening: { list: openedList(ctx), reclosed: ctx.reclosed },
        homeIno: homeIn(ctx, stat.dev),
        onProgress: progress => ctx.progress?.({ phase: options.phase ?? 'capturing', ...progress }),
        onWarning: ctx.warn,
        signal: ctx.signal,
      })
      failpoint('capture:before-commit')
      writer.commit()
      failpoint('capture:committed')
      // The cache names trees: it is worth keeping when they are in the store, as when files were only in doubt. And their
      // contents: after a repair the next snapshot has to store again what was lost of them, which is not read again then.
      const isKept = !writer.hasDiscarded && ctx.store.has(result.root)
      const isStored = !discard || (!options.override && !afresh && isKept)
      if (ctx.seen && !discard && !options.override && options.stage === undefined)
        Object.assign(ctx.seen, { cache: result.cache, made })
      const isSaved = result.changed && options.stage === undefined && isStored && !result.runOnly
      if (isSaved) remember(() => saveStatCache(ctx.timelineDir, result.cache))
      if (ctx.seen?.cache) ctx.seen.cache = leaveInFile(ctx.timelineDir, ctx.seen.cache, isSaved)
      if (!discard || !ctx.unwritable) remember(() => gitCache.save())
      failpoint('capture:cached')
      return { ...result, newBytes: writer.newBytes, eventsAt }
    })
  } catch (error) {
    throw explainCapture(ctx, error)
  } finally {
    writer.close()
  }
}

/** With another cap, what was left out and what was not are others. Another dataset may get the same numbers. */
const rootKeyOf = (ctx: Context, { dev, ino, btimeNs }: ReturnType<typeof addon.statFd>): string =>
  [dev, ino, btimeNs, ctx.config.snapshots.max_file_bytes, ctx.identity.dataset ?? []].flat().join(':')

/** On another filesystem the same number is another directory. */
function homeIn(ctx: Context, dev: bigint): bigint | undefined {
  const home = statDir(Buffer.from(ctx.home))
  return home?.dev === dev ? home.ino : undefined
}

/** What the last capture saw, if it was of this directory. */
export function lastSeen(ctx: Context): StatCache {
  const stat = statDir(ctx.targetPath)
  return ctx.seen?.cache ?? (stat ? storedCache(ctx, rootKeyOf(ctx, stat)) : emptyCache())
}

/** Its trees can be missing when collection has run since, and a power cut has brought an older cache back. */
function storedCache(ctx: Context, rootKey: string): StatCache {
  const cache = loadStatCache(ctx.timelineDir, rootKey)
  return cache.root === '' || ctx.store.has(cache.root) ? cache : emptyCache(rootKey)
}

/** What this run saw last, if that is HEAD. It is not there again when the capture fails: then it may be half changed. */
function takeSeen(ctx: Context, rootKey: string): StatCache | undefined {
  const cache = ctx.seen?.cache
  // A repair may have found that contents of it are lost.
  if (!cache || cache.rootKey !== rootKey || ctx.seen!.made !== ctx.store.index.made) return undefined
  const head = ctx.db.head === undefined ? undefined : ctx.db.snapshot(ctx.db.head)
  if (head?.root !== cache.root) return undefined
  ctx.seen!.cache = undefined
  return cache
}

/**
 * For questions: what is there is only looked at. Its contents are not in the store, so that a snapshot that has them is
 * the one that stores them.
 */
export const lookAtLive = (ctx: Context, options: LiveOptions = {}): Promise<Live> =>
  captureLive(ctx, { ...options, discard: true, ignoreFloor: true, phase: 'looking' })

export const excludeConfig = (ctx: Context) => {
  const { ignore_gitignore, additional, keep } = ctx.config.snapshots.exclude
  return { ignoreGitignore: ignore_gitignore, additional, keep }
}

/** What only saves time the next time: no room for it must not fail a capture whose bytes are stored. */
function remember(save: () => void): void {
  try {
    save()
  } catch (error) {
    if (!isUnwritable(error)) throw error
  }
}

/** Throws when another directory has taken the target's place. */
export function checkIdentity(ctx: Context): void {
  const stat = statDir(ctx.targetPath)
  if (!stat || isTarget(ctx, stat)) return
  // The rollback of a target around this one may have made the directory anew since we looked.
  const recorded = allTargets(ctx.home).find(target => target.id === ctx.timelineId)
  if (recorded && isTarget({ ...ctx, identity: recorded.identity }, stat)) {
    ctx.identity = recorded.identity
    return
  }
  const where = showPath(rawFromBytes(ctx.targetPath))
  throw new SavepointError('target.replaced', `Cannot use ${where}: another directory has taken its place`, {
    hint: hintOfReplaced(ctx),
  })
}

export function explainCapture(ctx: Context, error: unknown): unknown {
  if (error instanceof SavepointError) return explainMissing(ctx, error)
  if (!errnoOf(error)) return error
  if (isNoRoom(error)) {
    return new SavepointError('disk.full', `Cannot capture: ${fullWords(error)}`, {
      hint: 'Free some space (`savepoint gc` frees what was deleted more than 7 days ago). No snapshot was made, and nothing was changed',
      cause: error,
    })
  }
  const limit = sizeLimitOf(error)
  if (limit)
    return new SavepointError('io.failed', `Cannot capture: ${limit.message}`, { hint: limit.hint, cause: error })
  const hint = isClosedByMode(ctx.targetPath) ? `Give yourself access: chmod u+rwx ${shownWord(ctx)}` : undefined
  return new SavepointError('io.failed', `Cannot capture: ${(error as Error).message}`, { hint, cause: error })
}

const shownWord = (ctx: Context): string => quoteWord(showPath(rawFromBytes(ctx.targetPath)))
