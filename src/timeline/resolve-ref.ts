/** Finds the snapshot that a person means: an id, a unique prefix of one, a tag, a label, a run, or HEAD. */
import { SavepointError } from '../errors/errors.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { nearest } from '../model/suggest.ts'
import type { TimelineDb } from './timeline-db.ts'

const MIN_PREFIX = 1
const LISTED = 5

/** Ids win over tags, tags over labels; among equal labels the newest. A run means the state before it. */
export function resolveSnapshot(db: TimelineDb, ref: string): Snapshot {
  const all = db.snapshots(true)
  const live = all.filter(snapshot => snapshot.deletedAt === undefined)
  if (ref === 'HEAD' || ref === '@') return requireHead(db)
  const exact = all.find(snapshot => snapshot.id === ref)
  if (exact) return exact
  const tagged = db.tags().get(ref)
  if (tagged) return db.snapshot(tagged)!
  const labelled = live.filter(snapshot => snapshot.label === ref).at(-1)
  if (labelled) return labelled
  const run = findRun(db, ref)
  if (run?.before) return db.snapshot(run.before)!
  return resolvePrefix(db, ref, live)
}

function resolvePrefix(db: TimelineDb, ref: string, live: Snapshot[]): Snapshot {
  const prefix = ref.startsWith('snap_') ? ref.slice(5) : ref
  const matches = prefix.length >= MIN_PREFIX ? live.filter(snapshot => snapshot.id.startsWith(`snap_${prefix}`)) : []
  if (matches.length === 1) return matches[0]!
  if (matches.length > 1) {
    const ids = matches.slice(0, LISTED).map(snapshot => snapshot.id)
    throw new SavepointError(
      'snapshot.ambiguous',
      `Cannot tell which snapshot "${ref}" is: it fits ${matches.length}`,
      {
        hint: `Write more of the id: ${ids.join(', ')}${matches.length > LISTED ? ', …' : ''}`,
        data: { matches: matches.map(snapshot => snapshot.id) },
      },
    )
  }
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

export function requireHead(db: TimelineDb): Snapshot {
  const head = db.head
  const snapshot = head === undefined ? undefined : db.snapshot(head)
  if (snapshot) return snapshot
  throw new SavepointError('snapshot.unknown', 'Cannot find HEAD: this timeline has no snapshot yet', {
    hint: 'Take one with `savepoint snapshot`',
  })
}

/** A run by id or unique prefix, or undefined. */
export function findRun(db: TimelineDb, ref: string): Run | undefined {
  if (!ref.startsWith('run_')) return undefined
  const matches = db.runs().filter(run => run.id.startsWith(ref))
  return matches.length === 1 || matches[0]?.id === ref ? matches[0] : undefined
}
