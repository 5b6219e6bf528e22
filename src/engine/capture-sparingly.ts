/**
 * The states around a restore when the disk is nearly full: only what the restore will write or delete is stored. What
 * else is not in the store yet is `unknown` in the captured tree, so that nothing is ever restored from it, and is listed.
 */
import { fullWords, isDiskFull, isNoRoom, SavepointError } from '../errors/errors.ts'
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Entry, Id } from '../model/entry.ts'
import { formatBytes, plural } from '../model/format.ts'
import { isGitInternal, joinRaw, parentOf, type Raw, showPath } from '../model/raw-path.ts'
import { freeBytes } from '../store/reserve.ts'
import type { Store } from '../store/store.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { differingEntries } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { unknownEntry } from '../targets/dir/dir-node.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { Ingest } from '../targets/dir/ingest.ts'
import { captureLive, explainCapture, type Live, type LiveOptions } from './capture-live.ts'
import { isBelowFloor } from './capture-room.ts'
import type { Context } from './context.ts'

/** Kept for trees, the row of the snapshot, the journal and the operation when what fits is chosen by size. */
const SPARE_BYTES = 512 * 1024
const LISTED = 5

/** What a restore will touch at most. Root trees. */
export interface Touched {
  wanted: Id
  base?: Id
  scope?: readonly Raw[]
}

interface Part {
  scope?: readonly Raw[] | undefined
  withoutGit?: boolean | undefined
}

interface LiveFile {
  path: Raw
  entry: Entry
}

/** Everything when there is room, otherwise what will be touched: `sayWhatHadNoRoom` says it. Throws `disk.full` when not even a part of that fits. */
export async function captureBefore(ctx: Context, touched: Touched, options: LiveOptions): Promise<Live> {
  const whole = await captureIfRoom(ctx, options)
  if (whole) return whole
  const look = await captureLive(ctx, { ...options, discard: true })
  const files = unstoredFiles(ctx, look, touched)
  return storeAsFits(ctx, look, files)
}

/** Of a state before that has become a snapshot. What is not in it may be in another one: nobody has looked. */
export function sayWhatHadNoRoom(ctx: Context, { skipped }: Pick<Live, 'skipped'>): void {
  const left = skipped.filter(({ reason }) => reason === 'no-room').length
  if (left > 0)
    ctx.notice(
      `for want of room the state before has only what is about to change: ${plural('file', left)} of now ${left === 1 ? 'is' : 'are'} not in it`,
    )
}

/** All of it, or else what fits. */
async function storeAsFits(ctx: Context, look: Live, files: LiveFile[]): Promise<Live> {
  try {
    return await store(ctx, look, files)
  } catch (error) {
    if (!isNoRoom(error)) throw error
  }
  return store(ctx, look, whatFits(files, roomIn(ctx))).catch(error => {
    if (!isNoRoom(error)) throw explainCapture(ctx, error)
    const needed = files.reduce((sum, { entry }) => sum + entry.size, SPARE_BYTES)
    throw new SavepointError('disk.full', `Cannot capture: ${fullWords(error)}; ${formatBytes(needed)} are enough`, {
      hint: 'Free some space (`savepoint gc` frees what was deleted more than 7 days ago)',
      cause: error,
    })
  })
}

/** Undefined when there is no room for everything; nor was there for what is lent. */
async function captureIfRoom(ctx: Context, options: LiveOptions): Promise<Live | undefined> {
  try {
    return isBelowFloor(ctx) || ctx.store.isLending
      ? undefined
      : await captureLive(ctx, { ...options, leavesRoom: true })
  } catch (error) {
    if (!isDiskFull(error)) throw error
    return undefined
  }
}

/** What a restore has left behind: the contents that it wrote are in the store already. */
export async function captureAfter(ctx: Context, options: LiveOptions): Promise<Live> {
  const whole = await captureIfRoom(ctx, options)
  if (whole) return whole
  const look = await captureLive(ctx, { ...options, discard: true })
  return store(ctx, look, []).catch(error => {
    throw explainCapture(ctx, error)
  })
}

/**
 * Of a restore that is only tried: what it may have to leave alone. Compression may make it fit after all. What is lent would be
 * stored before, and without room for all of that nothing is done.
 */
export function sayWhatMayNotFit(ctx: Context, look: Live, touched: Touched & Part): void {
  const room = roomIn(ctx)
  const lent = lentBytes(ctx, look, touched)
  if (lent > 0 && lent > room)
    ctx.notice(
      `the store's disk may have no room for the ${formatBytes(lent)} that differ, which it has to take first: without that nothing is done`,
    )
  // Then it refuses as a whole.
  if (room < lent) return
  const files = unstoredFiles(ctx, look, touched)
  const fitting = new Set(whatFits(files, room - lent))
  const others = files.filter(file => !fitting.has(file)).map(({ path }) => showPath(path))
  if (others.length === 0) return
  const more = others.length > LISTED ? ` and ${others.length - LISTED} more` : ''
  ctx.notice(
    `the store's disk may have no room to save the present content of ${others.slice(0, LISTED).join(', ')}${more} first: it would be left alone`,
  )
}

/** A state that lies at `path`, and was only looked at: what a restore of `scope` would write of it is stored. */
export async function storeWanted(
  ctx: Context,
  { look, path, scope, withoutGit }: Part & { look: Live; path: Buffer },
): Promise<Live> {
  const live = await captureLive(ctx, { override: [look.root], readOwned: true, discard: true, ignoreFloor: true })
  const files = unstoredWanted(ctx, live.tree, look.tree, { scope, withoutGit })
  return store(ctx, look, files, path).catch(error => {
    throw explainCapture(ctx, error)
  })
}

function lentBytes(ctx: Context, look: Live, touched: Touched & Part): number {
  if (!ctx.store.isLending) return 0
  const files = unstoredWanted(ctx, look.tree, rootTreeOf(ctx.store, touched.wanted), touched)
  const sizes = new Map(files.map(({ entry }) => [entry.content, entry.size]))
  return [...sizes.values()].reduce((sum, size) => sum + size, 0)
}

const unstoredWanted = ({ store }: Context, live: Id, wanted: Id, { scope, withoutGit }: Part): LiveFile[] =>
  [...differingEntries(store, live, wanted, scope)].flatMap(({ path, after }) =>
    after?.kind === 'file' && !store.has(after.content) && !(withoutGit && isGitInternal(path))
      ? [{ path, entry: after }]
      : [],
  )

const roomIn = (ctx: Context): number => freeBytes(ctx.store.directory) - SPARE_BYTES

const unstoredFiles = (ctx: Context, look: Live, touched: Touched): LiveFile[] =>
  touchedFiles(ctx, look, touched).filter(({ entry }) => !ctx.store.has(entry.content))

/** Live files that differ from what is wanted there, if that is known; of an undo, those that the operation changed. */
function touchedFiles(ctx: Context, look: Live, { wanted, base, scope }: Touched): LiveFile[] {
  const tree = rootTreeOf(ctx.store, wanted)
  const changed =
    base === undefined
      ? undefined
      : new Set([...differingEntries(ctx.store, rootTreeOf(ctx.store, base), tree)].map(({ path }) => path))
  const differing = [...differingEntries(ctx.store, look.tree, tree, scope)].flatMap(({ path, before, after }) =>
    before?.kind === 'file' && after?.kind !== 'unknown' && (!changed || changed.has(path))
      ? [{ path, entry: before }]
      : [],
  )
  return [...differing, ...(scope ?? []).flatMap(path => inTheWayOf(ctx, look, path))]
}

/** A file where a directory was: it is not touched, and named for that only when it is stored. */
function inTheWayOf(ctx: Context, look: Live, path: Raw): LiveFile[] {
  for (let above = parentOf(path); above !== ''; above = parentOf(above)) {
    const entry = entryAt(ctx.store, look.tree, above)
    if (entry?.kind === 'file') return [{ path: above, entry }]
  }
  return []
}

/** The smallest first: the most paths that can be restored. Compression may have made room for more, but that is unsure. */
function whatFits(files: LiveFile[], free: number): LiveFile[] {
  let room = free
  return files
    .toSorted((a, b) => a.entry.size - b.entry.size)
    .filter(({ entry }) => {
      room -= entry.size
      return room >= 0
    })
}

/** Stores these files, and the trees of `look` with what is not stored as unknown. All or nothing. */
async function store(ctx: Context, look: Live, files: LiveFile[], path = ctx.targetPath): Promise<Live> {
  const writer = await ctx.store.writer()
  try {
    await storeFiles(ctx, writer, files, path)
    const noRoom: LiveFile[] = []
    const tree = runDeep(storeTree(ctx.store, writer, look.tree, '', noRoom))
    const root = writer.put(encodeTree([{ ...rootEntryOf(ctx.store, look.root), content: tree }]))
    writer.commit()
    return {
      ...look,
      root,
      tree,
      seenTree: look.tree,
      files: look.files - noRoom.length,
      bytes: look.bytes - noRoom.reduce((sum, { entry }) => sum + entry.size, 0),
      skipped: [...look.skipped, ...noRoom.map(({ path }) => ({ path, reason: 'no-room' as const }))],
      newBytes: writer.newBytes,
      eventsAt: ctx.db.events.beginCapture(),
    }
  } finally {
    writer.close()
  }
}

/** A file that is not any more what was looked at is stored as it is now, which its tree does not name: it stays unknown. */
async function storeFiles(ctx: Context, writer: StoreWriter, files: LiveFile[], path: Buffer): Promise<void> {
  await withDir(path, async root => {
    const ingest = new Ingest(ctx.store, writer, root, undefined, ctx.signal)
    try {
      for (const { path, entry } of files) {
        if (!writer.isStored(entry.content)) ingest.submit({ path, size: entry.size, isCounted: true, done: () => {} })
        await ingest.room()
      }
      await ingest.drain()
      writer.commit()
    } finally {
      await ingest.close()
    }
  })
}

/** A tree that is in the store has everything below it there, too. */
function* storeTree(from: Store, writer: StoreWriter, tree: Id, directory: Raw, noRoom: LiveFile[]): Deep<Id> {
  if (writer.isStored(tree)) return tree
  const entries: Entry[] = []
  for (const entry of from.tree(tree)) {
    const path = joinRaw(directory, entry.name)
    if (entry.kind === 'dir') {
      const content = yield* call(storeTree(from, writer, entry.content, path, noRoom))
      entries.push({ ...entry, content })
    } else if (entry.kind !== 'file' || writer.isStored(entry.content)) entries.push(entry)
    else {
      noRoom.push({ path, entry })
      entries.push(unknownEntry(entry.name, 'no-room'))
    }
  }
  return writer.put(encodeTree(entries))
}
