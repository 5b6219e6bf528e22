/**
 * A snapshot that its filesystem keeps and that is not read, because the store has no room for it: it can be used all the same.
 * Its trees are in memory, and contents are read where they lie, checked against their ids like any other.
 */
import { existsSync } from 'node:fs'
import { errnoOf, isDiskFull, SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { type Raw, rawToBytes } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import { GC_LOCK_WAIT_MS } from '../store/store.ts'
import { allEntries } from '../store/tree-lookup.ts'
import { unread } from '../targets/dir/capture.ts'
import { captureLive, type Live } from './capture-live.ts'
import { storeWanted } from './capture-sparingly.ts'
import { type Context, withTimelineLock } from './context.ts'
import { ifWritable } from './if-writable.ts'
import { asThen, keptOf, keptState } from './native-ref.ts'
import { sayChanged } from './read-native.ts'

/** Called under the timeline's lock. `work` gets the snapshot with a root that can be used until it has ended. One that is read is given as it is. */
export const withLent = <T>(ctx: Context, snapshot: Snapshot, work: (snapshot: Snapshot) => Promise<T>): Promise<T> =>
  snapshot.root === UNREAD_ROOT ? lend(ctx, snapshot, look => work(asRead(snapshot, look))) : work(snapshot)

/** The same for who only looks, and holds no lock: as long as it is lent nobody else may read what is kept. */
export const withLentLocked = <T>(
  ctx: Context,
  snapshot: Snapshot,
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> =>
  snapshot.root === UNREAD_ROOT
    ? withTimelineLock(ctx, 'read a snapshot', () => withLent(ctx, snapshot, work))
    : work(snapshot)

/**
 * The same for a restore of the target, which may be completed by another process: what it writes is stored before, and what is
 * there already, or out of `scope`, is unknown. `lent` is the tree with all of it.
 */
export function withWanted<T>(
  ctx: Context,
  snapshot: Snapshot,
  {
    scope,
    dryRun,
    withoutGit,
  }: { scope?: readonly Raw[] | undefined; dryRun?: boolean | undefined; withoutGit?: boolean | undefined },
  work: (snapshot: Snapshot, lent?: Id) => Promise<T>,
): Promise<T> {
  if (snapshot.root !== UNREAD_ROOT || dryRun) return withLent(ctx, snapshot, work)
  return lend(ctx, snapshot, async (look, path) => {
    // Collection waits: until the journal is written nobody else names what is stored now.
    const lock = await ctx.store.lock('shared', 'go back', { waitMs: GC_LOCK_WAIT_MS, signal: ctx.signal })
    try {
      const stored = await storeWanted(ctx, { look, path, scope, withoutGit }).catch(error => {
        throw isDiskFull(error) ? withoutRoom(snapshot, error) : error
      })
      failpoint('lent:stored')
      return await work(asRead(snapshot, stored), look.tree)
    } finally {
      lock.release()
    }
  })
}

const asRead = (snapshot: Snapshot, { root, files, bytes, skipped }: Live): Snapshot => ({
  ...snapshot,
  ...{ root, files, bytes, skippedCount: skipped.length },
})

function withoutRoom(snapshot: Snapshot, cause: unknown): SavepointError {
  const { id } = snapshot
  const { backend, ref } = keptOf(snapshot)!
  return new SavepointError('disk.full', `Cannot go back to ${id}: the store's disk has no room for what differs`, {
    hint: `Free some space there. \`savepoint rollback ${id} --to DIR\` needs none, and all that it has lies in ${backend.whereOf(ref)}`,
    cause,
  })
}

const goneMeanwhile = ({ id, backend }: Snapshot, cause: unknown): SavepointError =>
  new SavepointError('snapshot.unknown', `Cannot read ${id}: its ${backend} snapshot was removed meanwhile`, {
    hint: '`savepoint snapshots` lists what there is',
    cause,
  })

async function lend<T>(ctx: Context, snapshot: Snapshot, work: (look: Live, path: Buffer) => Promise<T>): Promise<T> {
  const kept = keptOf(snapshot)
  const state = kept?.backend.open(kept.ref)
  if (!kept || !state) throw unread()
  try {
    const isChanged = state.isChanged()
    if (isChanged) ifWritable(() => sayChanged(ctx, snapshot, isChanged))
    const then = keptState(kept.ref, state.path, () => undefined)
    const options = { kept: then, discard: true, ignoreFloor: true, phase: 'reading the snapshot' }
    const look = await captureLive(asThen(ctx, kept.ref), options)
    for (const { path, entry } of allEntries(ctx.store, look.tree))
      if (entry.kind === 'file') ctx.store.lend(entry.content, Buffer.concat([state.path, SLASH, rawToBytes(path)]))
    return await work(look, state.path)
  } catch (error) {
    throw errnoOf(error) && !existsSync(state.path) ? goneMeanwhile(snapshot, error) : error
  } finally {
    ctx.store.takeBackLent()
    state.close()
  }
}

const SLASH = Buffer.from('/')
