/**
 * Reads what the filesystem keeps of snapshots into the store, so that they can be compared, restored and searched like any
 * other. That costs the change since the last state that was read, where the filesystem tells it, and otherwise a walk; the
 * first time it is a whole capture. It is done by whoever opens the timeline next, in the order of the snapshots; for a mere
 * list only where that costs little.
 */
import type { OpenState } from '../backends/native-backend.ts'
import { isCutOff } from '../backends/run-program.ts'
import { errnoOf, isDiskFull, isDiskGone, SavepointError } from '../errors/errors.ts'
import { plural } from '../model/format.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { freeBytes } from '../store/reserve.ts'
import type { Dirty } from '../targets/dir/dirty-dirs.ts'
import { hasLinks } from '../targets/dir/stale-links.ts'
import type { StatCache } from '../targets/dir/stat-cache.ts'
import { loadStatCacheRoot } from '../targets/dir/stat-cache-file.ts'
import { captureLive } from './capture-live.ts'
import { type Context, requireWritable, withTimelineLock } from './context.ts'
import { type Foreseen, keepWithinLimits, type LeftToStore } from './kept-limit.ts'
import { sayWhatLeft } from './left-history.ts'
import { asThen, type Kept, keptOf, keptState, type NativeRef } from './native-ref.ts'
import { newOperation } from './new-operation.ts'
import { readAncestor, recount } from './shown-snapshot.ts'
import { differencesFrom, explained, unlessDamaged } from './snapshot.ts'
import { retellEvents, withSnapshotEvents } from './snapshot-events.ts'

/**
 * When a timeline is opened. What cannot be read now (no room, its filesystem is not mounted) does not stop who asks about
 * something else.
 */
export async function readAtOpen(ctx: Context, lockWaitMs = ctx.lockWaitMs): Promise<void> {
  if (ctx.db.native.unread().length === 0) return
  try {
    requireWritable(ctx)
    ctx.leftAtOpen = await withTimelineLock({ ...ctx, lockWaitMs }, 'read a snapshot', () => readUnread(ctx))
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    if ((error as SavepointError).code === 'cancelled') throw error
    ctx.warn(`what filesystems keep of snapshots is not read yet: ${(error as Error).message}`)
  }
  ctx.notRead = new Set(ctx.db.native.unread().map(({ id }) => id))
}

/** Whether all of the target would have to be read, which who asks what there is does not wait for. */
export const readsAll = (ctx: Context): boolean =>
  ctx.db.native.unread().length > 0 && loadStatCacheRoot(ctx.timelineDir) === ''

/** Another process may have taken one since. For what could not be read before, nobody waits a second time. */
export async function readSince(ctx: Context): Promise<void> {
  if (ctx.leaveUnread) return
  const isNew = ctx.db.native.unread().some(({ id }) => !ctx.notRead.has(id))
  await readAtOpen(ctx, isNew ? ctx.lockWaitMs : 0)
}

/** Called under the timeline's lock. Answers what was left to the store, because it is beyond the limits. */
export async function readUnread(ctx: Context): Promise<LeftToStore[]> {
  const unread = ctx.db.native.unread()
  const silent = new Set<string>()
  for (const { id } of unread) {
    // As it is by now: one that it came after may just have turned out to be lost.
    const snapshot = ctx.db.snapshot(id)!
    const kept = keptOf(snapshot)
    const state = kept && opened(ctx, snapshot, kept, silent)
    if (state === AWAY) continue
    if (!kept || !state) {
      forgetLost(ctx, snapshot)
      continue
    }
    try {
      await read(ctx, snapshot, kept, state)
    } catch (error) {
      const isForRoom = isDiskFull(error)
      if (!isForRoom && !isDiskGone((error as Error).cause)) throw error
      // What can be read of it is not kept for the whole: the filesystem still has that. The others may be read meanwhile.
      if (isForRoom) sayNotRead(ctx, snapshot, error as Error)
      else if (snapshot.deletedAt === undefined) sayUnreadable(ctx, snapshot, state.path, error as Error)
    } finally {
      state.close()
    }
  }
  if (unread.length === 0) return []
  if (!ctx.leaveBeyond) return keepWithinLimits(ctx)
  ctx.leftBeyond = true
  return []
}

/** What it was opened to leave for later, if anything. Where another command is in the way, that is when the next one is read. */
export async function leaveBeyond(ctx: Context): Promise<void> {
  if (!ctx.leftBeyond) return
  ctx.leftBeyond = false
  await withTimelineLock(ctx, 'keep to the limits', async () => keepWithinLimits(ctx)).catch(error => {
    if ((error as SavepointError).code !== 'busy') throw error
  })
}

/** A dry run says what reading would, and changes nothing. */
export function foreseeReading(ctx: Context): Foreseen {
  const lost = new Set<string>()
  const away = new Set<string>()
  const silent = new Set<string>()
  for (const snapshot of ctx.db.native.unread()) {
    const kept = keptOf(snapshot)
    if (silent.has(snapshot.backend)) {
      away.add(snapshot.id)
      continue
    }
    try {
      if (kept?.backend.find(kept.ref, true)) continue
      lost.add(snapshot.id)
      ctx.notice(lostText(snapshot))
    } catch (error) {
      if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
      away.add(snapshot.id)
      if (isCutOff(error)) silent.add(snapshot.backend)
      if (snapshot.deletedAt === undefined) sayNotRead(ctx, snapshot, error as Error)
    }
  }
  return { lost, away }
}

const AWAY = 'away'

/**
 * Where its filesystem is not mounted, it is read when that is there again: that stops neither the others nor new ones.
 * undefined: somebody has removed it. `silent`: backends that did not answer, which nobody waits for a second time.
 */
function opened(
  ctx: Context,
  snapshot: Snapshot,
  { backend, ref }: Kept,
  silent: Set<string>,
): OpenState | typeof AWAY | undefined {
  if (silent.has(backend.name)) return AWAY
  try {
    return backend.open(ref)
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    if (isCutOff(error)) silent.add(backend.name)
    if (snapshot.deletedAt === undefined) sayNotRead(ctx, snapshot, error)
    return AWAY
  }
}

const sayNotRead = (ctx: Context, { id, backend }: Pick<Snapshot, 'id' | 'backend'>, error: Error): void =>
  ctx.warn(`${id}, which ${backend} keeps, is not read yet: ${error.message}`)

const sayUnreadable = (ctx: Context, { id }: Snapshot, path: Buffer, error: Error): void =>
  ctx.warn(
    `${id} is not read yet: ${error.message}. It is tried again; what can be read of it is in ${showPath(rawFromBytes(path))}`,
  )

async function read(ctx: Context, snapshot: Snapshot, kept: Kept, opened: OpenState): Promise<void> {
  const { ref } = kept
  const state = keptState(ref, opened.path, cache => dirtySince(ctx, kept, cache))
  const options = { kept: state, ignoreFloor: true, keepFloor: true, phase: 'reading the snapshot' }
  let isChanged: ReturnType<OpenState['isChanged']> = false
  const live = await ifRoomSince(ctx, snapshot, () => {
    isChanged = opened.isChanged()
    return captureLive(asThen(ctx, ref), options)
  })
  const parent = readAncestor(ctx, snapshot.parent)
  if (parent) unlessDamaged(() => sayWhatLeft(ctx, parent, live.root))
  const left = live.skipped.length
  if (left > 0)
    ctx.notice(
      `${snapshot.id} is PARTIAL: ${plural('path', left)} not captured; \`savepoint show ${snapshot.id}\` lists them`,
    )
  const then: Context = { ...ctx, now: () => snapshot.createdAt }
  failpoint('native:before-read')
  explained(ctx, () => {
    const differences = differencesFrom(then, parent, { ...live, eventsAt: ref.eventsAt })
    ctx.db.transaction(() => {
      noteMark(ctx, snapshot, ref, opened)
      ctx.db.native.setRead(snapshot.id, { ...live, sizeDelta: live.newBytes, skippedCount: live.skipped.length })
      ctx.db.setCounts(snapshot.id, differences.counts)
      withSnapshotEvents(then, differences, ref.eventsAt, () => snapshot)
      // What was captured meanwhile was counted against the last one that was read then.
      for (const id of childrenOf(ctx, snapshot)) {
        recount(ctx, id)
        unlessDamaged(() => retellEvents(ctx, id))
      }
    })
  })
  if (isChanged) sayChanged(ctx, snapshot, isChanged)
}

/** From now on it is told from whatever gets its name. */
function noteMark(ctx: Context, { nativeRef }: Snapshot, ref: NativeRef, { mark }: OpenState): void {
  if (mark !== ref.mark) ctx.db.native.setMarked(nativeRef!, JSON.stringify({ ...ref, mark } satisfies NativeRef))
}

const NO_ROOM_META = 'reading.no-room'

interface NoRoom {
  id: string
  free: number
  /** What was to stay free then; not in older notes. */
  floor?: number
  /** How much the store had. */
  stored?: number
  said: string
}

/**
 * One for which there was no room is not read until there is more, or less has to stay free, or the store has got something: that would take as long
 * each time.
 */
async function ifRoomSince<T>(ctx: Context, { id }: Snapshot, work: () => Promise<T>): Promise<T> {
  const free = freeBytes(ctx.store.directory)
  const floor = ctx.config.snapshots.min_free_bytes
  const last = JSON.parse(ctx.db.meta(NO_ROOM_META) ?? 'null') as NoRoom | null
  const stored = ctx.store.index.storedBytes()
  const isAsBefore = last?.id === id && last.floor === floor && last.stored === stored && free <= last.free
  if (isAsBefore) throw new SavepointError('disk.full', last.said)
  try {
    const done = await work()
    if (last) ctx.db.deleteMeta(NO_ROOM_META)
    return done
  } catch (error) {
    const said = (error as Error).message
    if (isDiskFull(error))
      ctx.db.setMeta(NO_ROOM_META, JSON.stringify({ id, free, floor, stored, said } satisfies NoRoom))
    throw error
  }
}

/** What may differ from what the last capture saw, when that is a state which the same filesystem keeps. */
function dirtySince(ctx: Context, { backend, ref }: Kept, cache: StatCache): Dirty | undefined {
  if (cache.root === '') return undefined
  const base = ctx.db
    .snapshots(true)
    .toReversed()
    .filter(({ root }) => root === cache.root)
    .map(keptOf)
    .find(kept => kept?.backend === backend && kept.ref.place === ref.place)
  const differing = base && backend.differing(base.ref, ref)
  if (!differing) return undefined
  const { dirs, moved } = differing
  // Of what has several names, only one is told. And what was mounted then or now shows differently.
  for (const [path, dir] of cache.dirs) if (hasLinks(dir)) dirs.add(path)
  for (const path of [...ref.mounts, ...base.ref.mounts]) dirs.add(path.slice(0, Math.max(0, path.lastIndexOf('/'))))
  return { dirs, replaced: new Set(), again: moved }
}

const nameOf = ({ id, label }: Snapshot): string => (label === undefined ? id : `${id} (${showPath(label)})`)

const changedText = (snapshot: Snapshot, isChanged: true | 'perhaps'): string =>
  isChanged === 'perhaps'
    ? `${nameOf(snapshot)} may not be what was captured: its ${snapshot.backend} snapshot is younger than that (somebody has put another one in its place, or a clock was set, before it was read)`
    : `${nameOf(snapshot)} is not what was captured: its ${snapshot.backend} snapshot was changed by somebody else before it was read`

/** What it holds now is all that is left of it. But that is not what was captured, and whoever goes back to it must know. */
export function sayChanged(ctx: Context, snapshot: Snapshot, isChanged: true | 'perhaps'): void {
  const summary = changedText(snapshot, isChanged)
  const isNoted = ctx.db.operations().some(({ rule, summary: noted }) => rule === 'changed' && noted === summary)
  if (!isNoted) ctx.db.addOperation({ ...newOperation(ctx, 'retention', summary), state: 'fixed', rule: 'changed' })
  ctx.alarm(summary)
}

const childrenOf = (ctx: Context, { id }: Snapshot): string[] =>
  ctx.db.snapshots(true).flatMap(child => (child.parent === id ? [child.id] : []))

const lostText = (snapshot: Snapshot): string =>
  `${nameOf(snapshot)} is lost: its ${snapshot.backend} snapshot was removed by somebody else before it was read`

/** Nobody can bring it back. It must not stand in the way of the others. */
function forgetLost(ctx: Context, snapshot: Snapshot): void {
  const { id, parent, label } = snapshot
  const summary = lostText(snapshot)
  ctx.db.transaction(() => {
    if (ctx.db.head === id) ctx.db.setHead(parent)
    const tags = [...ctx.db.tags()].flatMap(([tag, tagged]) => (tagged === id ? [tag] : []))
    for (const tag of tags) ctx.db.setTag(tag, undefined, ctx.now())
    const children = childrenOf(ctx, snapshot)
    ctx.db.forgetSnapshots([id])
    for (const child of children) recount(ctx, child)
    const names = [id, ...(label === undefined ? [] : [label]), ...tags]
    ctx.db.addOperation({ ...newOperation(ctx, 'retention', summary, { names }), state: 'fixed', rule: 'lost' })
  })
  ctx.alarm(summary)
}
