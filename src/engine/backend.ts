/**
 * Who keeps a snapshot that somebody asks for: the filesystem, where it can, or the store (`cas`). What was found out once
 * is remembered with the timeline, so that a snapshot costs no probe. A backend that was named is never replaced by another
 * one in silence. What is captured on the way of a run, and the state before a rollback, is always in the store: those know
 * already what changed, or are about to need it.
 */
import { dirname, join } from 'node:path'
import { mountedAt, mountOptionsOf } from '../backends/mounts-below.ts'
import type { NativeBackend, NativeName, Place, Where } from '../backends/native-backend.ts'
import { nativeBackend, type Probed, probeNative } from '../backends/select.ts'
import { SavepointError } from '../errors/errors.ts'
import { hashBytes, idToHex } from '../model/id.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { lookAtDir } from '../targets/dir/dir-target.ts'
import { SNAPSHOTS_BESIDE } from '../targets/dir/whose-store.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import type { Context } from './context.ts'
import { liveRuns } from './live-runs.ts'

/** The key of what is remembered. */
const NATIVE_META = 'native'
const KEY_LENGTH = 8

export interface Chosen {
  backend: NativeBackend
  place: Place
  /** See NativeState. */
  of?: string | undefined
}

interface Remembered {
  backend: string
  place: Place
  of?: string | undefined
  /** What is kept in it moves with it. */
  home: string
  target: string
  which: string
  /** Of the target: it may have moved to another filesystem. */
  device: string
  /** Of its mount: the number of a device is given again, also to another dataset in the same place. */
  source: string
  /** Which that is, where it is known: one may be made anew under the name of another. */
  dataset: string
  /** Of its mount: without `user_subvol_rm_allowed` a user of btrfs could not delete what he keeps. */
  options: string
  uid: number
}

/**
 * Where a filesystem may keep states of the target: in our home, or beside the target. Never inside of it. The same
 * directory may have timelines in several homes. And another one may take its place, on another disk that is mounted there:
 * its states must not be where those of the first are missed, which would then seem to be removed.
 */
export function whereFor(home: string, target: Buffer, timeline: string): Where {
  const whose = `${home}\0${whichAt(target)}`
  const key = `${timeline}-${idToHex(hashBytes(Buffer.from(whose))).slice(0, KEY_LENGTH)}`
  const beside = join(dirname(target.toString()), SNAPSHOTS_BESIDE)
  // The first user has it; another one, with a target in the same directory, has one of his own.
  const own = `${beside}-${process.geteuid?.() ?? 0}`
  return { key, directories: [join(home, 'native'), beside, own].map(place => join(place, key)) }
}

function whichAt(target: Buffer): string {
  const stat = lookAtDir(target)
  return stat ? `${stat.ino}:${stat.btimeNs}` : ''
}

/** undefined: the store, with or without archives. Throws when one is named that does not work here. */
export function chooseNative(ctx: Context): Chosen | undefined {
  const { backend } = ctx.config.snapshots
  if (backend === 'cas' || backend === 'archive') return undefined
  const known = remembered(ctx)
  if (known && (backend === 'auto' || backend === known.backend.name)) return known
  if (backend !== 'auto') return named(ctx, backend)
  const found = probeNative(ctx.targetPath, whereFor(ctx.home, ctx.targetPath, ctx.timelineId))
  return remember(ctx, found.at(-1))
}

function named(ctx: Context, name: NativeName): Chosen {
  const backend = nativeBackend(name)!
  const probe = backend.probe(ctx.targetPath, whereFor(ctx.home, ctx.targetPath, ctx.timelineId))
  if (!probe.works)
    throw new SavepointError('unsupported', `Cannot use backend ${name}: ${probe.reason}`, { hint: probe.fix })
  return remember(ctx, { backend, probe })!
}

function remember(ctx: Context, probed: Probed | undefined): Chosen | undefined {
  if (!probed?.probe.works) return undefined
  const { backend, probe } = probed
  const { place, of } = probe
  const known: Remembered = { backend: backend.name, place, of, ...here(ctx) }
  ctx.db.setMeta(NATIVE_META, JSON.stringify(known))
  return { backend, place, of }
}

/** Of another place, another filesystem there, or another user, nothing is known. */
function remembered(ctx: Context): Chosen | undefined {
  const text = ctx.db.meta(NATIVE_META)
  if (!text) return undefined
  const known = JSON.parse(text) as Remembered
  const backend = nativeBackend(known.backend)
  const isHere = Object.entries(here(ctx)).every(([key, value]) => known[key as keyof Remembered] === value)
  return backend && isHere ? { backend, place: known.place, of: known.of } : undefined
}

/** Where the last one was kept that was asked for here, as far as that is remembered. */
export function knownPlace(db: TimelineDb): Chosen | undefined {
  const text = db.meta(NATIVE_META)
  if (!text) return undefined
  const known = JSON.parse(text) as Remembered
  const backend = nativeBackend(known.backend)
  return backend && { backend, place: known.place }
}

/** Whether the target, as it was last seen, is known to be another directory than the one that a filesystem kept. */
export function isNoLongerKept(ctx: Context): boolean {
  const text = ctx.db.meta(NATIVE_META)
  if (!text) return false
  const { ino, btimeNs } = ctx.identity
  return (JSON.parse(text) as Remembered).which !== `${ino}:${btimeNs}`
}

/** Who keeps what is asked for next. Where that is not known, because nobody has asked here yet, it is found out. */
export function usedBackend(ctx: Context): string {
  const { backend } = ctx.config.snapshots
  if (backend === 'auto') return (ctx.unwritable ? remembered(ctx) : chooseNative(ctx))?.backend.name ?? 'cas'
  if (!ctx.unwritable) sayIfRefused(ctx)
  return backend
}

/** One that is named is not replaced: whoever relies on it must know before he needs a snapshot. */
function sayIfRefused(ctx: Context): void {
  try {
    chooseNative(ctx)
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    ctx.warn(`${error.message}; until that is mended no snapshot can be taken, and no run begun`)
  }
}

/** A run that is at work takes what is asked for itself, into the store: who asks for another one, for this snapshot, gets none. */
export function refuseNamedInRun(ctx: Context): void {
  const [run] = ctx.named === undefined || ctx.named === 'auto' || ctx.named === 'cas' ? [] : liveRuns(ctx)
  if (run)
    throw new SavepointError('busy', `Cannot have ${ctx.named} keep it: ${run.id} is at work here`, {
      hint: 'It takes snapshots into the store: leave --backend out, or wait until it has ended',
    })
}

/** The same where the configuration names one: whoever relies on that must know. */
export function saidWhoKeeps(ctx: Context, taken: Snapshot): Snapshot {
  const { backend } = ctx.config.snapshots
  if (backend !== 'auto' && taken.type === 'manual' && taken.backend !== backend)
    ctx.notice(`${taken.id} is in the store: a run is at work, so ${backend} is not used`)
  return taken
}

/** After a failure: the next one asks anew. */
export const forgetChoice = (ctx: Context): void => ctx.db.deleteMeta(NATIVE_META)

const here = (ctx: Context) => ({
  home: ctx.home,
  target: ctx.targetPath.toString('latin1'),
  which: whichAt(ctx.targetPath),
  device: String(lookAtDir(ctx.targetPath)?.dev),
  source: mountedAt(ctx.targetPath) ?? '',
  dataset: ctx.identity.dataset ?? '',
  options: mountOptionsOf(ctx.targetPath),
  uid: process.geteuid?.() ?? 0,
})
