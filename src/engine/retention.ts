/** Which snapshots may go. Pure: decides from rows, deletes nothing. */
import type { Config } from '../config/config.ts'
import type { Operation, Snapshot, SnapshotType } from '../model/snapshot.ts'
import type { PruneDecision } from './results.ts'

export const DELETED_KEPT_MS = 7 * 24 * 60 * 60 * 1000
const DENSE = 30
const ring: ReadonlySet<SnapshotType> = new Set(['interval', 'change'])
const dvr: ReadonlySet<SnapshotType> = new Set(['git', 'build', 'test', 'idle', 'guard', 'turn', 'final'])
/** Of their own, so that a run which destroys much does not thin out the rest. */
const keptDvr: ReadonlySet<SnapshotType> = new Set(['kept'])

/** Taken on the way of a run, without being asked for. */
export const isAutomatic = ({ type }: Snapshot): boolean =>
  type !== 'final' && [ring, dvr, keptDvr].some(pool => pool.has(type))

/** Their labels are ours: how a build or a test ended, that a guard is no help, what was kept, whose turn it was. */
const selfLabelled: ReadonlySet<SnapshotType> = new Set(['build', 'test', 'guard', 'kept', 'turn'])

export const isNamed = ({ id, type, label }: Snapshot, tagged: ReadonlySet<string>): boolean =>
  type === 'manual' || type === 'import' || (label !== undefined && !selfLabelled.has(type)) || tagged.has(id)

export interface RetentionInput {
  /** All that are not deleted, oldest first. */
  snapshots: Snapshot[]
  /** The nearest ancestor that is not deleted: what makes a root, a leaf and a branch point. */
  parentOf: (snapshot: Snapshot) => string | undefined
  head: string | undefined
  tagged: ReadonlySet<string>
  operations: Operation[]
  /** The states before runs that have no end yet: also of one that is killed later they are the way back. */
  unended: ReadonlySet<string>
  /** Runs that go on, or can be undone or redone. */
  undoable: ReadonlySet<string>
  retention: Config['snapshots']['retention']
  now: number
  /** An explicit limit instead of the pools: this many of the prunable ones stay. */
  keep?: number
  /** Only snapshots of this run may go. */
  run?: string
}

/** One decision per snapshot, newest first, each with the rule that made it. */
export function decideRetention(input: RetentionInput): PruneDecision[] {
  const children = Map.groupBy(input.snapshots, input.parentOf)
  const pinned = new Map(
    input.snapshots.map(snapshot => [snapshot.id, pinRule(snapshot, input, children.get(snapshot.id)?.length ?? 0)]),
  )
  const free = input.snapshots.filter(snapshot => pinned.get(snapshot.id) === undefined).reverse()
  const kept = input.keep === undefined ? keepByPools(free, input) : keepNewest(free, input.keep)
  return [...input.snapshots].reverse().map(snapshot => {
    const pin = pinned.get(snapshot.id)
    return pin
      ? { snapshot, keep: true, isPinned: true, rule: pin }
      : { snapshot, isPinned: false, ...kept.get(snapshot.id)! }
  })
}

function pinRule(snapshot: Snapshot, input: RetentionInput, children: number): string | undefined {
  if (input.run !== undefined && snapshot.run !== input.run) return 'not of this run'
  if (snapshot.id === input.head) return 'HEAD'
  if (input.tagged.has(snapshot.id)) return 'tagged'
  if (isNamed(snapshot, input.tagged)) return snapshot.label === undefined ? 'manual' : 'labelled'
  if (input.unended.has(snapshot.id)) return 'before a run without an end'
  const isInitial = snapshot.type === 'pre-run' || input.parentOf(snapshot) === undefined
  if (isInitial && !input.retention.delete_initial) return snapshot.type === 'pre-run' ? 'pre-run' : 'root'
  if (children > 1) return 'branch point'
  if (snapshot.type === 'safety') return safetyRule(snapshot, input)
  // What was taken up after its run had ended is beside what came next, and no branch that somebody left.
  if (children === 0 && snapshot.type !== 'kept') return 'leaf'
  return snapshot.holdsOthers ? othersRule(snapshot, input) : undefined
}

function safetyRule(snapshot: Snapshot, input: RetentionInput): string | undefined {
  const referring = input.operations.some(
    operation =>
      (operation.state === 'done' || operation.state === 'undone') &&
      (operation.before === snapshot.id || operation.after === snapshot.id),
  )
  if (referring) return 'safety: an operation can be undone with it'
  return input.now - snapshot.createdAt < DELETED_KEPT_MS ? 'safety: younger than 7 days' : undefined
}

/** The undo of the run says that it is in the history. */
function othersRule(snapshot: Snapshot, { undoable, now }: RetentionInput): string | undefined {
  if (undoable.has(snapshot.run!)) return "with somebody else's files: their run can be undone"
  return now - snapshot.createdAt < DELETED_KEPT_MS ? "with somebody else's files: younger than 7 days" : undefined
}

type Verdict = { keep: boolean; rule: string }

function keepNewest(newestFirst: Snapshot[], keep: number): Map<string, Verdict> {
  return new Map(
    newestFirst.map((snapshot, rank) => [
      snapshot.id,
      rank < keep ? { keep: true, rule: `among the newest ${keep}` } : { keep: false, rule: `beyond --keep ${keep}` },
    ]),
  )
}

function keepByPools(newestFirst: Snapshot[], input: RetentionInput): Map<string, Verdict> {
  const verdicts = new Map<string, Verdict>()
  const { auto_max } = input.retention
  const rings = newestFirst.filter(snapshot => ring.has(snapshot.type))
  // HEAD has its place in it although it is pinned: it will not be for long.
  const isHeadInside = input.snapshots.some(({ id, type }) => id === input.head && ring.has(type))
  const room = isHeadInside ? auto_max - 1 : auto_max
  for (const [rank, { id }] of rings.entries()) {
    verdicts.set(id, { keep: rank < room, rule: `ring of auto_max (${auto_max})` })
  }
  for (const pool of [dvr, keptDvr]) {
    const recorded = newestFirst.filter(snapshot => pool.has(snapshot.type))
    for (const [id, verdict] of thinned(recorded)) verdicts.set(id, verdict)
  }
  for (const snapshot of newestFirst) {
    if (!verdicts.has(snapshot.id)) verdicts.set(snapshot.id, { keep: false, rule: initialRule(snapshot) })
  }
  return verdicts
}

const initialRule = (snapshot: Snapshot): string =>
  snapshot.type === 'safety' ? 'safety: older than 7 days, no operation needs it' : 'delete_initial'

/**
 * Dense for the newest, then ever thinner: of those 31, 32 to 63, 64 to 127… snapshots ago the oldest stays. Counted are all
 * that were ever taken, by their numbers: among those that are left, each thinning would move the ranks, and the next one
 * remove what the one before had kept (decision 018).
 */
function* thinned(newestFirst: Snapshot[]): Generator<[id: string, Verdict]> {
  const newest = newestFirst[0]?.seq ?? 0
  const octaves = new Map<number, Snapshot>()
  for (const snapshot of newestFirst.slice(DENSE)) octaves.set(octave(newest - snapshot.seq + 1), snapshot)
  const oldest = new Set(octaves.values())
  for (const [i, snapshot] of newestFirst.entries()) {
    if (i < DENSE) yield [snapshot.id, { keep: true, rule: `among the newest ${DENSE}` }]
    else if (oldest.has(snapshot)) yield [snapshot.id, { keep: true, rule: 'thinning: the oldest of its time' }]
    else yield [snapshot.id, { keep: false, rule: `thinning: beyond the newest ${DENSE}` }]
  }
}

const octave = (ago: number): number => Math.ceil(Math.log2(ago + 1))
