/**
 * What a run made and destroyed between two snapshots is in neither. The tracer keeps such files in a spool; here they
 * become a snapshot of their own, of type `kept`: HEAD with those files where they were. All that works on snapshots works
 * on it. A spool that a killed run left is taken up when the run is closed.
 */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import { PURGED } from '../model/hide-words.ts'
import { isWithin, joinRaw, nameOf, parentOf, type Raw, rawToText, showPath } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { sameContent } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import { rewriteTree } from '../store/tree-rewrite.ts'
import { rootEntryOf, rootTreeOf } from '../targets/dir/capture.ts'
import { statDir, withDir } from '../targets/dir/dir-target.ts'
import { Exclusions } from '../targets/dir/explain-exclusion.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import type { NameChange } from '../timeline/event-rows.ts'
import { copyOf, pathOf, readBeforeLog } from '../tracers/before-log.ts'
import { type KeptFile, readKeptLog } from '../tracers/kept-log.ts'
import { excludeConfig } from './capture-live.ts'
import type { Context } from './context.ts'
import { chooseVersions, type Destroyed } from './kept-choice.ts'
import { contentOfEntry, contentOfKept, isFile, targetOf } from './kept-content.ts'
import { fittingIn, roomIn } from './kept-room.ts'
import { sizeOf, spooled } from './kept-spool.ts'
import { isOthers, layersOf, type Version } from './kept-versions.ts'
import { NamesOverTime } from './names-over-time.ts'
import { pinHolding } from './pin-version.ts'
import type { Kept } from './results.ts'
import { readAncestor } from './shown-snapshot.ts'
import { addSnapshot } from './snapshot.ts'
import { spoolLog, spoolOf, spoolTarget, storeSpooled } from './spool.ts'

/** Of runs that go on, or were killed: what was at the path, or below it, is not to become a snapshot. */
export function purgeKept(ctx: Context, path: Raw): void {
  for (const { id } of ctx.db.runs()) {
    const spool = spoolOf(ctx, id)
    if (!existsSync(spool)) continue
    const place = joinRaw(spoolTarget(spool), path)
    const log = spoolLog(spool)
    const copies = (readBeforeLog(log) ?? []).map(change => ({ path: pathOf(change), name: copyOf(change) }))
    for (const { path: lost, name } of [...readKeptLog(log).kept, ...copies])
      if (name !== undefined && isWithin(lost, place)) rmSync(join(spool, name), { force: true })
  }
}

/**
 * Adds snapshots of what is in the spool, and removes it there: a part at a time where the store has no room for all of it. What
 * it has no room for stays in the spool (left-spools.ts). HEAD is the last of them; where the run is `over`, others have come
 * after what it destroyed, and HEAD stays. Called under the timeline's lock.
 */
export async function addKept(ctx: Context, run: string, over?: 'over'): Promise<void> {
  const head = readAncestor(ctx, ctx.db.head)
  const spool = spoolOf(ctx, run)
  const files = spooled(spool)
  if (!head || files.length === 0) return
  const wanted = await withoutExcluded(ctx, run, spool, files)
  const root = rootEntryOf(ctx.store, head.root)
  const judged = wanted.map(file => ({ ...file, isOthers: isOthers(ctx, run, file) }))
  pinHolding(ctx, head, judged)
  // What is not going to be in a snapshot would only wait in the store for the next collection.
  let left = await chooseVersions(
    judged,
    file => contentOfKept(spool, file),
    path => contentOfEntry(entryAt(ctx.store, root.content, path)),
  )
  removeBut(spool, files, left)
  for (;;) {
    const fitting = fittingIn(roomIn(ctx), left, ({ name }) => sizeOf(join(spool, name)) ?? 0)
    if (fitting.size === 0) return
    const chosen = left.filter(({ name }) => fitting.has(name))
    await addVersions(ctx, { run, spool, head, isOver: over !== undefined }, chosen)
    left = left.filter(({ name }) => !fitting.has(name))
    removeBut(spool, chosen, left)
  }
}

/** One file may have been destroyed under several names. */
function removeBut(spool: string, files: readonly KeptFile[], kept: readonly KeptFile[]): void {
  const names = new Set(kept.map(({ name }) => name))
  for (const { name } of files) if (!names.has(name)) rmSync(join(spool, name), { force: true })
}

interface Taking {
  run: string
  spool: string
  head: Snapshot
  isOver: boolean
}

async function addVersions(
  ctx: Context,
  { run, spool, head, isOver }: Taking,
  chosen: (KeptFile & Destroyed)[],
): Promise<void> {
  const root = rootEntryOf(ctx.store, head.root)
  const writer = await ctx.store.writer(ctx.signal)
  try {
    const versions = (await ingest(ctx, writer, spool, chosen)).filter(({ path, entry }) => {
      const known = entryAt(ctx.store, root.content, path)
      return !known || !sameContent(known, entry)
    })
    let counted = 0
    for (const { versions: layer, news, holdsOthers } of layersOf(versions)) {
      const edits = new Map([...missingDirs(ctx, writer, root.content, layer), ...layer.map(withPath)])
      const tree = rewriteTree(ctx.store, writer, root.content, edits)
      const id = writer.put(encodeTree([{ ...root, content: tree }]))
      writer.commit()
      // What destroyed these files is what the next snapshot differs by.
      const eventsAt = ctx.db.events.nextStart ?? ctx.db.events.newest()
      const state = {
        ...head,
        root: id,
        newBytes: writer.newBytes - counted,
        emptyDirs: 0,
        eventsAt,
        ...contentWith(ctx, head, layer),
      }
      counted = writer.newBytes
      const label = labelOf(news.map(({ path }) => path))
      const live = ctx.db.head
      ctx.db.transaction(() => {
        addSnapshot(ctx, state, { type: 'kept', run, label, command: commandOf(ctx, run, news), holdsOthers })
        if (isOver) ctx.db.setHead(live)
      })
    }
  } finally {
    writer.close()
  }
}

/** How much HEAD has together with these. */
function contentWith(ctx: Context, head: Snapshot, layer: Version[]): Pick<Snapshot, 'files' | 'bytes'> {
  let { files, bytes } = head
  for (const { path, entry } of layer) {
    const known = entryAt(ctx.store, rootTreeOf(ctx.store, head.root), path)
    const isThere = known !== undefined && known.kind !== 'dir' && known.kind !== 'unknown'
    files += isThere ? 0 : 1
    bytes += entry.size - (isThere ? known.size : 0)
  }
  return { files, bytes }
}

/** What of it is there for a run. */
export function keptBy(ctx: Context, run: string): Kept {
  const snapshots = ctx.db.snapshots().filter(snapshot => snapshot.type === 'kept' && snapshot.run === run)
  const paths = new Set(snapshots.flatMap(snapshot => keptIn(ctx, snapshot)))
  return { files: paths.size, snapshots: snapshots.map(({ id }) => id) }
}

/** The files that a snapshot of this type was made for, as far as they were not purged. */
function keptIn(ctx: Context, snapshot: Snapshot): Raw[] {
  let state: Snapshot | undefined = snapshot
  while (state?.type === 'kept') state = readAncestor(ctx, state.parent)
  const changes = [...stateChanges(ctx.store, state?.root, snapshot.root)]
  return changes.flatMap(({ path, after }) => (after?.kind === 'file' || after?.kind === 'link' ? [path] : []))
}

const withPath = ({ path, entry }: Version): [Raw, Entry] => [path, entry]

/** Directories that went with what was in them, as they were; of those further above nobody knows better. */
function missingDirs(ctx: Context, writer: StoreWriter, tree: Id, layer: Version[]): Map<Raw, Entry> {
  const made = new Map<Raw, Entry>()
  const empty = writer.put(encodeTree([]))
  writer.commit()
  for (const { path, directory } of layer) {
    for (let at = parentOf(path); directory && at !== '' && !made.has(at); at = parentOf(at)) {
      if (entryAt(ctx.store, tree, at)?.kind === 'dir') break
      const { mode, uid, gid } = directory
      made.set(at, { ...blankEntry(nameOf(at), 'dir'), mode: mode & 0o7777, uid, gid, content: empty })
    }
  }
  return made
}

/** With their paths relative to the target. What the run has moved to where nothing is captured has the name that it had before. */
async function withoutExcluded(ctx: Context, run: string, spool: string, files: KeptFile[]): Promise<KeptFile[]> {
  const target = spoolTarget(spool)
  const inside = files
    .filter(({ path }) => isWithin(path, target))
    .map(file => ({ ...file, path: file.path.slice(target.length + 1), size: sizeOf(join(spool, file.name)) ?? 0 }))
    .filter(({ size }) => size <= ctx.config.snapshots.max_file_bytes)
  // The rules went with it.
  if (!statDir(ctx.targetPath)) return inside
  return withDir(ctx.targetPath, async root => {
    const rules = await Exclusions.open({ root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env })
    const wanted: KeptFile[] = []
    const earlierNames = earlierNamesIn(ctx, run)
    for (const { size, ...file } of inside) {
      const isWanted = async (path: Raw) => !(await rules.of(path, { isDirectory: false, size }))
      let path: Raw | undefined = file.path
      for (const names = earlierNames(file); path !== undefined && !(await isWanted(path)); ) path = names.next().value
      if (path !== undefined) wanted.push({ ...file, path })
    }
    return wanted
  })
}

/** A call is looked at within less. */
const MOMENT_MS = 5

/** To be asked in the order of time. */
function earlierNamesIn({ db }: Context, run: string): (file: KeptFile) => Generator<Raw, undefined> {
  const names = new NamesOverTime()
  // At once: an open statement would keep this process from writing.
  let changes: NameChange[] | undefined
  let noted = 0
  return function* ({ path, at }) {
    changes ??= Array.from(db.events.nameChangesOf([run]))
    const isBefore = (change: NameChange) => change.at <= at && !isItself(change, path, at)
    for (; noted < changes.length && isBefore(changes[noted]!); noted++) names.note({ ...changes[noted]!, by: run })
    for (const { name } of names.namesOf(path)) yield name
    return undefined
  }
}

/** Whether it is the destruction itself, which is told a moment before the file is kept. */
const isItself = (change: NameChange, path: Raw, at: number): boolean =>
  change.path !== undefined && change.at > at - MOMENT_MS && isWithin(path, change.path)

/** In the order of the destruction. */
async function ingest(
  ctx: Context,
  writer: StoreWriter,
  spool: string,
  files: (KeptFile & Destroyed)[],
): Promise<Version[]> {
  const sized = files.filter(isFile).map(({ name }) => ({ name, size: sizeOf(join(spool, name)) ?? 0 }))
  const stored = await storeSpooled(ctx, writer, spool, sized)
  return files.flatMap(file => {
    const { name, path, exec, directory, mode, uid, gid, mtimeNs, isOthers } = file
    const content = isFile(file) ? stored.get(name) : { target: targetOf(join(spool, name)) }
    if (!content) return []
    const kind = isFile(file) ? 'file' : 'link'
    const entry = { ...blankEntry(nameOf(path), kind), mode: mode & 0o7777, uid, gid, mtimeNs, ...content }
    return [{ path, exec, entry, directory, isOthers }]
  })
}

const labelOf = (paths: Raw[]): string => (paths.length === 1 ? showPath(paths[0]!) : `${paths.length} destroyed files`)

/** After a purge. */
export function keptLabel(ctx: Context, snapshot: Snapshot): string {
  const paths = keptIn(ctx, snapshot)
  return paths.length === 0 ? PURGED : labelOf(paths)
}

/** When one command destroyed them all. */
function commandOf(ctx: Context, run: string, news: Version[]): string | undefined {
  const [exec, ...others] = new Set(news.map(version => version.exec))
  const execution = others.length === 0 && exec ? ctx.db.trace.execution(run, exec) : undefined
  return execution && quoteCommand(execution.argv.map(rawToText))
}
