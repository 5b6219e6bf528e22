/** Work that concerns the whole store needs every timeline: all are locked, then the store, always in this order. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { idFromHex } from '../model/id.ts'
import { UNREAD_ROOT } from '../model/snapshot.ts'
import { type FileLock, lockFile } from '../store/file-lock.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { type Context, releaseObjects } from './context.ts'
import { readJournal } from './journal.ts'
import { holdsHistory, openTimeline, openTimelineRepaired } from './open-timeline.ts'
import { operationsWithStates, recordedRoot } from './operations.ts'
import { allTargets, type RegisteredTarget } from './target-registry.ts'

const WAIT_MS = 5_000

export interface OpenTimeline {
  target: RegisteredTarget
  db: TimelineDb
}

/** Nobody captures or restores anywhere while `work` runs. With `repair`, timelines that are damaged are made anew. */
export async function withEverythingLocked<T>(
  ctx: Context,
  purpose: string,
  work: (timelines: OpenTimeline[]) => Promise<T> | T,
  repair = false,
): Promise<T> {
  const { targets, locks } = await lockEverything(ctx, purpose)
  const timelines: OpenTimeline[] = []
  try {
    for (const target of targets)
      timelines.push({ target, db: target.id === ctx.timelineId ? ctx.db : openOther(ctx, target, repair) })
    return await work(timelines)
  } finally {
    for (const { db } of timelines) if (db !== ctx.db) db.close()
    releaseAll(locks)
  }
}

const openOther = (ctx: Context, { directory }: RegisteredTarget, repair: boolean): TimelineDb =>
  repair ? openTimelineRepaired(directory, ctx.notice) : openTimeline(directory)

/** A timeline made while we waited would not be locked, and its snapshots would count as nobody's: then once more. */
async function lockEverything(
  ctx: Context,
  purpose: string,
): Promise<{ targets: RegisteredTarget[]; locks: FileLock[] }> {
  for (;;) {
    const targets = knownTargets(ctx.home)
    releaseObjects(ctx)
    const locks: FileLock[] = []
    const wait = { waitMs: WAIT_MS, signal: ctx.signal }
    try {
      for (const target of targets)
        locks.push(await lockFile(join(target.directory, 'lock'), 'exclusive', purpose, wait))
      locks.push(await ctx.store.lock('exclusive', purpose, wait))
      if (knownTargets(ctx.home).length === targets.length) return { targets, locks }
    } catch (error) {
      releaseAll(locks)
      throw error
    }
    releaseAll(locks)
  }
}

const releaseAll = (locks: FileLock[]): void => {
  for (const lock of locks.reverse()) lock.release()
}

/** In the order in which they are locked. One that cannot be read has snapshots too: without it nothing may be freed. */
function knownTargets(home: string): RegisteredTarget[] {
  const directory = join(home, 'timelines')
  // First: one that is being made gets its record before it holds anything.
  const histories = readdirSync(directory).filter(id => holdsHistory(join(directory, id)))
  const targets = allTargets(home).sort((a, b) => (a.id < b.id ? -1 : 1))
  const known = new Set(targets.map(target => target.id))
  const unreadable = histories.find(id => !known.has(id))
  if (unreadable === undefined) return targets
  throw new SavepointError(
    'store.damaged',
    `Cannot go over all timelines: ${join(directory, unreadable, 'target.json')} cannot be read`,
    {
      hint: `Nothing was deleted. Mend that file, or move ${join(directory, unreadable)} away if its snapshots are not needed`,
    },
  )
}

/** Root trees that this timeline still needs: of its snapshots, of operations that can be undone, of an open journal. */
export function rootsOf({ target, db }: OpenTimeline): Id[] {
  const roots = db
    .snapshots(true)
    .map(snapshot => snapshot.root)
    .filter(root => root !== UNREAD_ROOT)
  for (const operation of operationsWithStates(db)) {
    for (const key of ['before_root', 'after_root'] as const) {
      const root = recordedRoot(operation.detail, key)
      if (root !== undefined) roots.push(root)
    }
  }
  const journal = readJournal(target.directory)
  for (const root of [journal?.wanted, journal?.base, journal?.safetyRoot])
    if (root !== undefined) roots.push(idFromHex(root))
  return roots
}

export const cannotCollect = (cause: unknown): SavepointError =>
  new SavepointError('store.damaged', 'Cannot collect: a list that says what is needed cannot be read', {
    hint: 'Nothing in the store was deleted. `savepoint verify` tells what is damaged. `savepoint verify --repair` mends what it can, and names the snapshots that stay damaged; delete those first',
    cause,
  })
