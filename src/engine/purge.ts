/** `purge PATH`: removes a path from all history and all traces, so that its bytes are really gone. Cannot be undone. */
import { nativeBackend } from '../backends/select.ts'
import { SavepointError } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import { type HideWords, hidePath } from '../model/hide-words.ts'
import { idToHex } from '../model/id.ts'
import { lostText } from '../model/only-there.ts'
import { nameOf, type Raw, rawFromBytes, rawFromShown, showPath } from '../model/raw-path.ts'
import type { Operation, Snapshot } from '../model/snapshot.ts'
import { failpoint } from '../store/failpoint.ts'
import type { Store } from '../store/store.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { allEntries, entryAt } from '../store/tree-lookup.ts'
import { rewriteTree } from '../store/tree-rewrite.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { unknownEntry } from '../targets/dir/dir-node.ts'
import type { NewOperation } from '../timeline/timeline-rows.ts'
import { withEverythingLocked } from './all-timelines.ts'
import { usedBackend } from './backend.ts'
import { type Context, refuseInsideRun, requireWritable, withTimelineLock } from './context.ts'
import { collect } from './gc.ts'
import { requireHeldByStore } from './held-by-store.ts'
import { purgeKept } from './kept-files.ts'
import { isInKept } from './kept-paths.ts'
import { leftByPurge, notRemoved } from './left-by-purge.ts'
import { keptBeside, leaveNativeToStore, removeAllGoing } from './native-going.ts'
import { newOperation } from './new-operation.ts'
import { refuseLosses } from './open-timeline.ts'
import { operationRoots, operationsWithStates } from './operations.ts'
import { keptElsewhere, sameElsewhere } from './purge-elsewhere.ts'
import { purgeTraceFiles, purgeTraceRows } from './purge-traces.ts'
import { detailWithout, hasChanged, setPurgedStates } from './purged-rows.ts'
import { readOthers } from './read-others.ts'
import { recoverPending } from './recover.ts'
import { existsLive, resolvePath } from './resolve-path.ts'
import type { PurgedTraces, PurgeResult } from './results.ts'
import type { OpenOptions, Savepoint } from './savepoint.ts'
import { sayStray, straysWith, whereOf } from './stray-states.ts'

/** Set while history has forgotten the path but the store may still have its bytes. */
const PENDING = 'purge_pending'

/** `open`: how another timeline is opened. */
export async function purge(
  ctx: Context,
  path: string,
  open: (options: OpenOptions) => Promise<Savepoint>,
): Promise<PurgeResult> {
  refuseInsideRun(ctx, 'purge')
  const raw = resolvePath(ctx, path)
  if (raw === '')
    throw new SavepointError('usage', 'Cannot purge the whole target', { hint: 'Delete its snapshots instead' })
  await withTimelineLock(ctx, 'purge', () => recoverPending(ctx))
  // Once the store has forgotten a content, nobody finds it again in what others have not read.
  await readOthers(ctx, open)
  return withEverythingLocked(ctx, 'purge', timelines => {
    refuseLosses(timelines, 'purge')
    const kept = keptBeside(ctx.db)
    const isLive = ({ deletedAt }: Snapshot) => deletedAt === undefined
    requireHeldByStore(ctx, 'purge', kept.filter(isLive))
    const contents = contentsAt(ctx, raw)
    const own = timelines.find(({ db }) => db === ctx.db)!
    const strays = straysWith(ctx.home, own, raw)
    sayStray(ctx, own, strays, `, and that may have ${showPath(raw)}`)
    const traces = ctx.db.purging(() => forgetPath(ctx, raw, kept, contents.snapshots))
    failpoint('purge:forgotten')
    const gone = removeAllGoing(ctx)
    purgeTraceFiles(ctx, hidingOf(ctx, raw))
    purgeKept(ctx, raw)
    const same = sameElsewhere(ctx, timelines, contents.ids)
    const { has, unread } = keptElsewhere(ctx, timelines, raw, same)
    const { freedBytes } = collect(ctx, timelines, true)
    ctx.db.setMeta(PENDING, '')
    if (same.length === 0) assertGone(ctx.store, contents.ids)
    if (existsLive(ctx, raw)) sayStillThere(ctx, raw)
    const counts = { snapshots: contents.snapshots, versions: contents.ids.size, ...traces, freedBytes }
    const left = notRemoved(kept, gone)
    const stay = strays.map(stray => ({ snapshot: stray.name, backend: stray.backend.name, mayBe: whereOf(stray) }))
    const beside = { leftToStore: leftByPurge(kept, raw), ...left, mayBeLeft: [...left.mayBeLeft, ...stay] }
    return { path: raw, ...counts, elsewhere: [...same, ...has], unread, ...beside }
  })
}

/** What a filesystem keeps has all that is there, whatever rules say. */
function sayStillThere(ctx: Context, path: Raw): void {
  const keeper = nativeBackend(usedBackend(ctx))?.name
  const unless = keeper === undefined ? 'unless it goes, or .savepointignore names it,' : 'unless it goes,'
  const also = keeper === undefined ? '' : `, even if .savepointignore names it: ${keeper} keeps everything`
  ctx.notice(`${showPath(path)} is still on disk: ${unless} the next snapshot has it again${also}`)
}

export const isPurgePending = (ctx: Context): boolean => !!ctx.db.meta(PENDING)

/** Frees what a purge that was interrupted had still to free. May be called again. */
export async function completePurge(ctx: Context): Promise<void> {
  if (!isPurgePending(ctx)) return
  requireWritable(ctx)
  await withEverythingLocked(ctx, 'complete a purge', timelines => {
    refuseLosses(timelines, 'complete a purge')
    const path = ctx.db.meta(PENDING)
    if (!path) return
    removeAllGoing(ctx)
    purgeTraceFiles(ctx, hidingOf(ctx, rawFromShown(path)))
    purgeKept(ctx, rawFromShown(path))
    collect(ctx, timelines, true)
    ctx.db.plain.renew()
    // Its end may have been killed before the log was emptied.
    ctx.db.purging(() => ctx.db.setMeta(PENDING, ''))
    ctx.notice(`completed a purge that was interrupted: ${path}`)
  })
}

const hidingOf = (ctx: Context, path: Raw): HideWords => hidePath(rawFromBytes(ctx.targetPath), path)

/** The contents at and below the path, over all snapshots and recorded states. */
function contentsAt(ctx: Context, path: Raw): { ids: Set<Id>; snapshots: number } {
  const ids = new Set<Id>()
  const note = (root: Id): boolean => {
    const entry = entryAt(ctx.store, rootTreeOf(ctx.store, root), path)
    if (!entry || entry.kind === 'unknown') return false
    for (const id of contentIds(ctx.store, entry)) ids.add(id)
    return true
  }
  const snapshots = ctx.db.snapshots(true).filter(snapshot => note(snapshot.root)).length
  for (const operation of operationsWithStates(ctx.db)) for (const root of operationRoots(operation)) note(root)
  return { ids, snapshots }
}

function* contentIds(store: Store, entry: Entry): Generator<Id> {
  if (entry.kind === 'file') yield entry.content
  if (entry.kind === 'dir')
    for (const { entry: child } of allEntries(store, entry.content)) if (child.kind === 'file') yield child.content
}

/** Rewrites every state of the timeline so that the path is unknown in it: neither there nor known to be absent. */
function forgetPath(ctx: Context, path: Raw, kept: readonly Snapshot[], snapshots: number): PurgedTraces {
  const writer = ctx.store.exclusiveWriter()
  const rewritten = new Map<Id, Id>()
  const rewrite = (root: Id): Id => {
    const result = rewritten.get(root) ?? withoutPath(ctx.store, writer, root, path)
    rewritten.set(root, result)
    return result
  }
  try {
    for (const { root } of ctx.db.snapshots(true)) rewrite(root)
    const alive = new Set(operationsWithStates(ctx.db).map(({ id }) => id))
    const operations = ctx.db.operations().map(operation => ({
      id: operation.id,
      detail: rewriteDetail(ctx.store, operation, path, alive.has(operation.id) ? rewrite : undefined),
    }))
    writer.commit()
    return ctx.db.transaction(() => {
      const traces = purgeTraceRows(ctx, hidingOf(ctx, path), path)
      // Last: to look into what a filesystem keeps may take it a while.
      const isAnywhere = snapshots + traces.commands + traces.events > 0 || isInKept(kept, path)
      if (!isAnywhere) throw nothingOf(path)
      ctx.db.setMeta(PENDING, showPath(path))
      setPurgedStates(ctx, path, rewritten)
      leaveNativeToStore(ctx.db)
      for (const { id, detail } of operations) ctx.db.setOperationDetail(id, detail)
      ctx.db.addOperation({ ...operationOf(ctx, path, kept), state: 'fixed' })
      return traces
    })
  } finally {
    writer.close()
  }
}

/** What goes from filesystems had more in it than was captured: the history tells that it went. */
function operationOf(ctx: Context, path: Raw, left: readonly Snapshot[]): NewOperation {
  const summary = `purge ${showPath(path)}`
  if (left.length === 0) return newOperation(ctx, 'purge', summary)
  const was = [...new Set(left.map(({ backend }) => backend))].join(', ')
  const lost = lostText(leftByPurge(left, path))
  const without = lost === '' ? '' : `, without what only that had: ${lost}`
  const text = `${summary}; left ${plural('snapshot', left.length)} to the store alone (was: ${was})${without}`
  return newOperation(ctx, 'purge', text, { snapshots: left.map(({ id }) => id) })
}

const nothingOf = (path: Raw): SavepointError =>
  new SavepointError('path.unknown', `Cannot purge ${showPath(path)}: no snapshot has it, and no trace speaks of it`, {
    hint: '`savepoint history PATH` shows its versions',
  })

function withoutPath(store: Store, writer: StoreWriter, root: Id, path: Raw): Id {
  const tree = rootTreeOf(store, root)
  const entry = entryAt(store, tree, path)
  if (!entry || entry.kind === 'unknown') return root
  const content = rewriteTree(store, writer, tree, new Map([[path, unknownEntry(nameOf(path), 'purged')]]))
  return writer.put(encodeTree([{ ...rootEntryOf(store, root), content }]))
}

/** Without `rewrite`: its states cannot be gone to any more, and may be collected already. */
function rewriteDetail(store: Store, operation: Operation, path: Raw, rewrite: ((root: Id) => Id) | undefined) {
  const { before_root: _before, after_root: _after, ...rest } = detailWithout(operation, path)
  const [before, after] = operationRoots(operation)
  if (!rewrite || before === undefined || after === undefined) return rest
  return {
    ...rest,
    ...(hasChanged(store, path, before, after) && { purged: true }),
    before_root: idToHex(rewrite(before)),
    after_root: idToHex(rewrite(after)),
  }
}

function assertGone(store: Store, ids: ReadonlySet<Id>): void {
  for (const id of ids) {
    if (store.has(id))
      throw new SavepointError('bug', 'Cannot confirm the purge: the store still has the content', {
        hint: 'Run `savepoint gc` and `savepoint verify`',
      })
  }
}
