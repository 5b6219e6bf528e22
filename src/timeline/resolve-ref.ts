/** Finds the snapshot that a person means: an id, a unique prefix of one, a tag, a label, a run, or HEAD. */
import { SavepointError } from '../errors/errors.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'
import { nearest } from '../model/suggest.ts'
import type { TimelineDb } from './timeline-db.ts'

/**
 * How much of an id says which one is meant: with `snap_` before it, two characters; without, four. A mistyped option or a
 * tag that is gone must not roll back to whatever id happens to begin with that letter.
 */
const MIN_PREFIX = 2
const MIN_BARE_PREFIX = 4
const LISTED = 5

/** How a snapshot fits a name. */
interface Fit {
  snapshot: Snapshot
  by: 'tag' | 'label' | 'id'
}

/**
 * A whole id is that snapshot; anything else that fits several is an error, whichever way it fits: to take the newest
 * label, or a tag before a label, would now and then roll back to a state that nobody meant. A run means the state
 * before it.
 */
export function resolveSnapshot(db: TimelineDb, ref: string): Snapshot {
  if (isHead(ref)) return requireHead(db)
  const exact = db.snapshot(ref)
  if (exact) return exact
  const beforeRun = findRun(db, ref)?.before
  const state = beforeRun === undefined ? undefined : db.snapshot(beforeRun)
  if (state) return state
  const live = db.snapshots()
  const byName = fitsByName(db, ref, live)
  const byId = fitsById(ref, live)
  const fits = isTooShort(ref, 'snap_') ? byName : [...byName, ...byId]
  if (fits.length === 0 && byId.length > 0)
    throw tooShort(
      'snapshot',
      ref,
      'snap_',
      byId.map(({ snapshot }) => snapshot.id),
    )
  if (new Set(fits.map(({ snapshot }) => snapshot.id)).size > 1) throw ambiguous(ref, fits)
  if (fits[0] && isAlsoLost(db, ref, fits[0])) throw ambiguous(ref, fits, ', and one that is lost')
  return fits[0]?.snapshot ?? unknown(db, ref, live)
}

const isHead = (ref: string): boolean => ref === 'HEAD' || ref === '@'

/** Says by its id what HEAD is now: the end of a run is captured, and then that is HEAD. Any other name stays as it is. */
export const withHeadOfNow = (db: TimelineDb, ref: string): string => (isHead(ref) ? (db.head ?? ref) : ref)

function fitsByName(db: TimelineDb, ref: string, live: Snapshot[]): Fit[] {
  const tag = db.tags().get(ref)
  const tagged = tag === undefined ? undefined : db.snapshot(tag)
  const labelled = live.filter(({ label }) => label === ref).reverse()
  return [
    ...(tagged === undefined ? [] : [{ snapshot: tagged, by: 'tag' as const }]),
    ...labelled.map(snapshot => ({ snapshot, by: 'label' as const })),
  ]
}

function fitsById(ref: string, live: Snapshot[]): Fit[] {
  if (ref === '') return []
  return live.filter(({ id }) => id.startsWith(asId(ref))).map(snapshot => ({ snapshot, by: 'id' }))
}

const asId = (ref: string): string => (ref.startsWith('snap_') ? ref : `snap_${ref}`)

const isTooShort = (ref: string, kind: 'snap_' | 'run_'): boolean =>
  ref.startsWith(kind) ? ref.length < kind.length + MIN_PREFIX : ref.length < MIN_BARE_PREFIX

function tooShort(what: 'snapshot' | 'run', ref: string, kind: 'snap_' | 'run_', ids: string[]): SavepointError {
  const needs = ref.startsWith(kind)
    ? `at least ${MIN_PREFIX} characters after ${kind}`
    : `at least ${MIN_BARE_PREFIX} characters`
  return new SavepointError(
    'snapshot.ambiguous',
    `Cannot tell which ${what} "${ref}" is: it is too short for the beginning of an id`,
    {
      hint: `Write ${needs}: ${listed(ids)}`,
      data: { matches: ids },
    },
  )
}

const listed = (ids: string[]): string => `${ids.slice(0, LISTED).join(', ')}${ids.length > LISTED ? ', …' : ''}`

function ambiguous(ref: string, fits: Fit[], more = ''): SavepointError {
  const ways = Map.groupBy(fits, ({ snapshot }) => snapshot.id)
  const isPrefix = fits.every(({ by }) => by === 'id')
  const shown = [...ways].map(([id, found]) => (isPrefix ? id : `${id} (${found.map(({ by }) => by).join(', ')})`))
  const next = isPrefix ? 'Write more of the id' : 'Write the id of the one that you mean'
  return new SavepointError(
    'snapshot.ambiguous',
    `Cannot tell which snapshot "${ref}" is: it fits ${ways.size}${more}`,
    {
      hint: `${next}: ${listed(shown)}`,
      data: { matches: [...ways.keys()] },
    },
  )
}

function unknown(db: TimelineDb, ref: string, live: Snapshot[]): never {
  if (wasLost(db, ref))
    throw new SavepointError('snapshot.unknown', `Cannot find snapshot "${ref}": it is lost`, {
      hint: '`savepoint log --operations` says why. If it is in its place again, `savepoint verify` names that',
    })
  const names = [
    ...db.tags().keys(),
    ...live.flatMap(snapshot => [snapshot.id, ...(snapshot.label ? [snapshot.label] : [])]),
  ]
  const suggestion = nearest(ref, names)
  throw new SavepointError(
    'snapshot.unknown',
    `Cannot find snapshot "${ref}": no id, tag or label of this timeline fits`,
    {
      hint: suggestion
        ? `Did you mean ${suggestion}? \`savepoint snapshots\` lists all`
        : '`savepoint snapshots` lists what there is',
    },
  )
}

/**
 * Whether the one that had that id, tag or label last, or whose id alone begins so, was found to be missing where its filesystem
 * had kept it. One that was deleted after that had the name, too.
 */
function wasLost(db: TimelineDb, ref: string): boolean {
  const losses = lossesIn(db)
  const last = losses.findLast(loss => namesOf(loss).includes(ref))
  if (last) return !wasNamedAfter(db, ref, last)
  const ids = [...losses.map(loss => namesOf(loss)[0]!), ...db.snapshots(true).map(({ id }) => id)]
  return !isTooShort(ref, 'snap_') && ids.filter(id => id.startsWith(asId(ref))).length === 1
}

/** Whether one that had the same name was there beside it until it was lost. */
function isAlsoLost(db: TimelineDb, ref: string, { snapshot, by }: Fit): boolean {
  const last = by === 'id' ? undefined : lossesIn(db).findLast(loss => namesOf(loss).includes(ref))
  return last !== undefined && snapshot.createdAt < last.at && !wasNamedAfter(db, ref, last)
}

const lossesIn = (db: TimelineDb): Operation[] =>
  db.operations().filter(({ rule, detail }) => rule === 'lost' && Array.isArray(detail.names))

const namesOf = ({ detail }: Operation): string[] => detail.names as string[]

const wasNamedAfter = (db: TimelineDb, ref: string, { seq, at }: Operation): boolean =>
  db.snapshots(true).some(({ label, deletedAt = 0 }) => label === ref && deletedAt >= at) ||
  db.operations().some(({ kind, detail, ...later }) => later.seq > seq && kind === 'tag' && detail.name === ref)

/** Of deleted snapshots, before they are forgotten: their names are not those of lost ones any more. */
export function forgetLostNames(db: TimelineDb, deleted: readonly Snapshot[]): void {
  for (const { id, rule, at, detail } of db.operations()) {
    if (rule !== 'lost' || !Array.isArray(detail.names)) continue
    const later = new Set(deleted.flatMap(({ label, deletedAt = 0 }) => (deletedAt >= at && label ? [label] : [])))
    const names = detail.names.filter(name => !later.has(name))
    if (names.length < detail.names.length) db.setOperationDetail(id, { ...detail, names })
  }
}

export function requireHead(db: TimelineDb): Snapshot {
  const head = db.head
  const snapshot = head === undefined ? undefined : db.snapshot(head)
  if (snapshot) return snapshot
  throw new SavepointError('snapshot.unknown', 'Cannot find HEAD: this timeline has no snapshot yet', {
    hint: 'Take one with `savepoint snapshot`',
  })
}

/** A run by id or unique prefix; undefined when there is none, or `ref` cannot be one. */
export function findRun(db: TimelineDb, ref: string): Run | undefined {
  if (!ref.startsWith('run_')) return undefined
  const matches = db.runs().filter(run => run.id.startsWith(ref))
  const exact = matches.find(run => run.id === ref)
  if (exact || matches.length === 0) return exact
  const ids = matches.map(run => run.id)
  if (isTooShort(ref, 'run_')) throw tooShort('run', ref, 'run_', ids)
  if (matches.length === 1) return matches[0]
  throw new SavepointError('snapshot.ambiguous', `Cannot tell which run "${ref}" is: it fits ${ids.length}`, {
    hint: `Write more of the id: ${listed(ids)}`,
    data: { matches: ids },
  })
}
