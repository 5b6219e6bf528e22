/**
 * The last resort for a timeline whose database is lost, for what its log does not tell of either: the states themselves are
 * still in the store, as root trees that no history knows and no other tree refers to. They become snapshots again; when they
 * were taken is only known roughly, and why not at all.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import { rawFromBytes } from '../model/raw-path.ts'
import type { Location } from '../store/object-index.ts'
import { OBJECT } from '../store/pack-format.ts'
import { decodeTree } from '../store/tree-codec.ts'
import { allEntries } from '../store/tree-lookup.ts'
import { ROOT_NAME, rootTreeOf } from '../targets/dir/capture.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { type OpenTimeline, rootsOf } from './all-timelines.ts'
import type { Context } from './context.ts'
import { ROOTS_UNKNOWN } from './open-timeline.ts'
import { addWholeState, sizeOf } from './whole-state.ts'

/** A root tree has one entry with at most a few attributes. */
const MAX_ROOT_BYTES = 16 * 1024
const LABEL = 'salvaged'
/** Called with everything locked, after the index was made anew. May be called again: what is known is passed over. */
export function findLostRoots(ctx: Context, timelines: OpenTimeline[], isWhole: (root: Id) => boolean): string[] {
  const unknown = timelines.filter(({ db }) => db.meta(ROOTS_UNKNOWN))
  if (unknown.length === 0) return []
  const lost = lostRoots(ctx, timelines)
  const whole = lost.filter(({ root }) => isWhole(root))
  for (const state of whole) addState(ctx, ownerOf(ctx, unknown, state.root).db, state)
  for (const { db } of unknown) db.deleteMeta(ROOTS_UNKNOWN)
  const rest = lost.length - whole.length
  const more = rest > 0 ? `; ${plural('state', rest)} more could not be, as parts of them are gone` : ''
  return lost.length === 0
    ? []
    : [`${plural('snapshot', whole.length)} found again in the packs, labelled ${LABEL}-1 and so on${more}`]
}

interface State {
  root: Id
  /** When the pack was last written to that it lies in. */
  at: number
}

/** In the order in which they were stored, as far as that can be told. */
function lostRoots(ctx: Context, timelines: OpenTimeline[]): State[] {
  const candidates = new Map<Id, Location>()
  const rows = [...ctx.store.index.rows()].filter(
    ({ kind, length }) => kind === OBJECT.data && length <= MAX_ROOT_BYTES,
  )
  rows.sort((a, b) => a.pack - b.pack || a.block - b.block || a.offset - b.offset)
  for (const { id, ...location } of rows) if (looksLikeRoot(ctx, location)) candidates.set(id, location)
  // A directory may look the same: with nothing but `root/` in it.
  const inside = new Set<Id>()
  for (const root of [...timelines.flatMap(rootsOf), ...candidates.keys()]) noteTreesIn(ctx, root, inside)
  for (const root of timelines.flatMap(rootsOf)) candidates.delete(root)
  for (const tree of inside) candidates.delete(tree)
  const written = new Map(
    ctx.store.index.packs().map(({ id, name }) => [id, timeOf(join(ctx.store.packDirectory, name))]),
  )
  const states = [...candidates].map(([root, { pack }]) => ({ root, at: written.get(pack) ?? 0 }))
  return states.sort((a, b) => a.at - b.at)
}

function looksLikeRoot(ctx: Context, location: Location): boolean {
  try {
    const [entry, ...rest] = decodeTree(ctx.store.readAt(location))
    return entry?.kind === 'dir' && entry.name === ROOT_NAME && rest.length === 0
  } catch {
    return false
  }
}

function noteTreesIn(ctx: Context, root: Id, seen: Set<Id>): void {
  for (const trees = [root]; trees.length > 0; ) {
    for (const { kind, content } of readTree(ctx, trees.pop()!)) {
      if (kind !== 'dir' || seen.has(content)) continue
      seen.add(content)
      trees.push(content)
    }
  }
}

function readTree(ctx: Context, tree: Id): ReturnType<typeof decodeTree> {
  try {
    return ctx.store.tree(tree)
  } catch {
    return []
  }
}

function timeOf(file: string): number {
  try {
    return Math.floor(statSync(file).mtimeMs)
  } catch (error) {
    if (!errnoOf(error)) throw error
    return 0
  }
}

/** Of several, the one whose directory has the most names in common with it. */
function ownerOf(ctx: Context, timelines: readonly OpenTimeline[], root: Id): OpenTimeline {
  if (timelines.length === 1) return timelines[0]!
  const names = new Set(readTree(ctx, rootTreeOf(ctx.store, root)).map(({ name }) => name))
  const common = ({ target }: OpenTimeline): number => {
    try {
      return readdirSync(target.path, 'buffer').filter(name => names.has(rawFromBytes(name))).length
    } catch (error) {
      if (!errnoOf(error)) throw error
      return 0
    }
  }
  return timelines.toSorted((a, b) => common(b) - common(a))[0]!
}

function addState(ctx: Context, db: TimelineDb, { root, at }: State): void {
  const number = db.snapshots(true).filter(({ label }) => label?.startsWith(`${LABEL}-`)).length + 1
  const size = sizeOf(allEntries(ctx.store, rootTreeOf(ctx.store, root)))
  const label = `${LABEL}-${number}`
  const state = { ...size, root, type: 'manual', label, createdAt: at, parent: undefined, sizeDelta: 0 } as const
  addWholeState(ctx.store, db, state, undefined)
}
