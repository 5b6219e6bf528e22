/**
 * Which of the states that filesystems keep has what was not captured: everything that was in the directory is in there. No
 * command of ours brings it back, but whoever misses it can copy it. Nothing is made for that, so no lock is needed.
 */
import { lstatSync } from 'node:fs'
import { isCutOff, stoppably } from '../backends/run-program.ts'
import { errnoOf, isDamage, SavepointError } from '../errors/errors.ts'
import type { UnknownReason } from '../model/entry.ts'
import { isWithin, joinRaw, parentOf, type Raw, rawFromText, rawToBytes, showPath } from '../model/raw-path.ts'
import { type Skipped, type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import { COARSE_SLACK_MS } from '../targets/dir/racy.ts'
import type { Context } from './context.ts'
import { statInKept } from './kept-paths.ts'
import { type Kept, keptOf } from './native-ref.ts'
import { statLive } from './resolve-path.ts'
import type { KeptCopy, UncapturedPath } from './results.ts'

/** How many states are looked into: an old one is seldom what somebody misses, and `zfs` is asked about each. */
const MAX_LOOKED_INTO = 20
/** Of how many that stay as they are it is asked. */
const MAX_STAYING = 100
/** What btrfs has in a snapshot where a nested subvolume was: an empty directory. No other inode has this number. */
const STUB_INO = 2n
const NS_PER_MS = 1_000_000n

/** Why something lies in the directory, and so in what a filesystem keeps of it, and is not captured. */
const PASSED_OVER: ReadonlySet<UnknownReason | undefined> = new Set([
  'excluded',
  'too-large',
  'unreadable',
  'unstable',
  'no-room',
])

/** Of each path that one of them has: in the newest, of those until `untilMs`. A backend that did not answer is not asked again. */
export function keptCopies(ctx: Context, paths: readonly Raw[], untilMs = Infinity): Map<Raw, KeptCopy> {
  const found = new Map<Raw, KeptCopy>()
  const silent = new Set<string>()
  let looked = 0
  for (const snapshot of paths.length > 0 ? ctx.db.snapshots().reverse() : []) {
    if (found.size === paths.length || looked === MAX_LOOKED_INTO) break
    const kept = snapshot.createdAt <= untilMs ? keptOf(snapshot) : undefined
    if (!kept || silent.has(kept.backend.name)) continue
    const wanted = paths.filter(path => !found.has(path) && isInKept(ctx, snapshot, path) !== 'no')
    if (wanted.length === 0) continue
    looked++
    const place = orNone(
      () => placeOf(kept),
      error => {
        if (!isCutOff(error)) return
        silent.add(kept.backend.name)
        ctx.warn(`${kept.backend.name} may keep a copy of what is not captured, but does not say so: ${error.message}`)
      },
    )
    for (const path of place ? wanted : []) {
      const copy = orNone(() => copyIn(ctx, snapshot, kept, place!, path))
      if (copy) found.set(path, copy)
    }
  }
  return found
}

/** Of what stays as it is, although it may have been another one in the snapshot. */
export function withCopies(ctx: Context, staying: readonly Skipped[], snapshot: Snapshot): UncapturedPath[] {
  const listed = staying.slice(0, MAX_STAYING).map(({ path }) => path)
  const found = keptCopies(ctx, listed, snapshot.createdAt)
  return staying.map(each => {
    const kept = found.get(each.path)
    return kept && !isUnchanged(ctx, each.path, kept) ? { ...each, kept } : each
  })
}

/** What a filesystem keeps has its inode and its times. Where it cannot be looked at: whether it was changed since. */
function isUnchanged(ctx: Context, path: Raw, { file, snapshot }: KeptCopy): boolean {
  const now = statLive(ctx, path)
  if (!now) return false
  const kept = file === undefined ? ctx.db.snapshot(snapshot) : undefined
  if (kept) return now.ctimeNs < BigInt(keptOf(kept)!.ref.atMs - COARSE_SLACK_MS) * NS_PER_MS
  const then = file === undefined ? undefined : orNone(() => lstatSync(rawToBytes(file), { bigint: true }))
  return then !== undefined && now.ino === then.ino && now.ctimeNs === then.ctimeNs
}

/** For who cannot have it otherwise: where it is, '' when nothing has it. */
export function keptCopyHint(ctx: Context, path: Raw, snapshot: Snapshot): string {
  const kept = keptCopies(ctx, [path], snapshot.createdAt).get(path)
  if (!kept) return ''
  const place = kept.file === undefined ? `, in ${kept.where}` : `: ${showPath(kept.file)}`
  return `${kept.snapshot}, which ${kept.backend} keeps, has it as it was then${place}. `
}

/** Those that a filesystem keeps, and by what was read of them may have it, although they did not capture it. */
export const mayHave = (ctx: Context, snapshots: readonly Snapshot[], path: Raw): Snapshot[] =>
  snapshots.filter(snapshot => keptOf(snapshot) && isInKept(ctx, snapshot, path) !== 'no')

function isInKept(ctx: Context, { root }: Snapshot, path: Raw): 'yes' | 'maybe' | 'no' {
  if (path === '') return 'no'
  if (root === UNREAD_ROOT) return 'maybe'
  try {
    const tree = rootTreeOf(ctx.store, root)
    const entry = entryAt(ctx.store, tree, path)
    if (entry?.kind !== 'unknown' || !PASSED_OVER.has(entry.reason)) return 'no'
    // What is left out whole names nothing below it.
    const above = parentOf(path)
    return above === '' || entryAt(ctx.store, tree, above)?.kind === 'dir' ? 'yes' : 'maybe'
  } catch (error) {
    if (isDamage(error)) return 'maybe'
    throw error
  }
}

interface KeptPlace {
  where: string
  /** See `directoryOf`. */
  directory: string | undefined
}

/** Ctrl-C ends the question: what is looked for is only said besides. */
const placeOf = ({ backend, ref }: Kept): KeptPlace | undefined =>
  stoppably(() => {
    const state = backend.find(ref)
    return state && { where: backend.whereOf(state), directory: backend.directoryOf(state) }
  })

function copyIn(ctx: Context, snapshot: Snapshot, kept: Kept, place: KeptPlace, path: Raw): KeptCopy | undefined {
  const { where, directory } = place
  if (kept.ref.mounts.some(mount => isWithin(path, mount))) return undefined
  const copy = { snapshot: snapshot.id, backend: kept.backend.name, where }
  if (directory === undefined) return isInKept(ctx, snapshot, path) === 'yes' ? { ...copy, file: undefined } : undefined
  const stat = statInKept(Buffer.from(directory), path)
  if (!stat || stat.ino === STUB_INO) return undefined
  return { ...copy, file: joinRaw(rawFromText(directory), path) }
}

/** What cannot be looked into, because its disk is away, or this user may not, is of no help. */
function orNone<T>(look: () => T, onError?: (error: Error) => void): T | undefined {
  try {
    return look()
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    onError?.(error as Error)
    return undefined
  }
}
