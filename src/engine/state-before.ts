/**
 * The state before a run whose capture was killed while the run had already begun: what is there now, with the changes of
 * the run taken back one by one, the last one first, as the log beside it tells them (native/helper/before.h).
 */
import { existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { blankEntry, type Entry } from '../model/entry.ts'
import { isWithin, joinRaw, nameOf, type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Run, Snapshot } from '../model/snapshot.ts'
import { type Branch, branchOf, EditableTree } from '../store/editable-tree.ts'
import { encodeTree } from '../store/tree-codec.ts'
import { rootEntryOf } from '../targets/dir/capture.ts'
import { kindOfType, linkGroupNumber, unknownEntry } from '../targets/dir/dir-node.ts'
import { statDir, withDir } from '../targets/dir/dir-target.ts'
import { Exclusions } from '../targets/dir/explain-exclusion.ts'
import { stateChanges } from '../targets/dir/state-changes.ts'
import * as record from '../targets/dir/walk-record.ts'
import { type BeforeChange, copyOf, type EntryBefore, type MoveBefore, readBeforeLog } from '../tracers/before-log.ts'
import { captureLive, excludeConfig, type Live } from './capture-live.ts'
import type { Context } from './context.ts'
import { addSnapshot } from './snapshot.ts'
import { type Spooled, spoolLog, spoolOf, storeSpooled } from './spool.ts'

/**
 * Makes that snapshot, if the log has what it needs. Called under the timeline's lock.
 */
export async function snapshotBefore(ctx: Context, run: Run): Promise<Snapshot | undefined> {
  const before = madeBefore(ctx, run) ?? (await putTogether(ctx, run))
  if (before) ctx.db.setRunState(run.id, 'before', before.id)
  return before
}

/** Whether it can be made. */
export const canHaveBefore = (ctx: Context, run: Run): boolean =>
  madeBefore(ctx, run) !== undefined || changesIn(ctx, spoolOf(ctx, run.id)) !== undefined

/** Killed when it was there, and not yet noted. */
const madeBefore = (ctx: Context, run: Run): Snapshot | undefined =>
  ctx.db.snapshots().find(({ type, run: of }) => type === 'pre-run' && of === run.id)

const changesIn = (ctx: Context, spool: string): BeforeChange[] | undefined =>
  existsSync(spool) && statDir(ctx.targetPath) ? readBeforeLog(spoolLog(spool)) : undefined

async function putTogether(ctx: Context, run: Run): Promise<Snapshot | undefined> {
  const spool = spoolOf(ctx, run.id)
  const changes = changesIn(ctx, spool)
  if (!changes) return undefined
  const live = await captureLive(ctx, { ignoreFloor: true })
  const writer = await ctx.store.writer(ctx.signal)
  try {
    const contents = await storeSpooled(ctx, writer, spool, copiesOf(spool, changes))
    const root = rootEntryOf(ctx.store, live.root)
    const tree = new EditableTree(ctx.store, root.content)
    await new TakeBack(ctx, tree, contents, live).all(changes)
    const id = writer.put(encodeTree([{ ...root, content: tree.write(writer) }]))
    writer.commit()
    const state = { ...live, root: id, ...contentOf(ctx, live, id), newBytes: live.newBytes + writer.newBytes }
    const then = { ...ctx, now: () => run.startedAt }
    return addSnapshot(then, state, { type: 'pre-run', run: run.id, command: quoteCommand(run.command) })
  } finally {
    writer.close()
  }
}

function* copiesOf(spool: string, changes: BeforeChange[]): Generator<{ name: string; size: number }> {
  for (const change of changes) {
    const name = copyOf(change)
    const stat = name === undefined ? undefined : lstatSync(join(spool, name), { throwIfNoEntry: false })
    if (stat) yield { name: name!, size: stat.size }
  }
}

/** How much is in a state that differs from the live one. */
function contentOf(ctx: Context, live: Live, root: string): Pick<Live, 'files' | 'bytes'> {
  let { files, bytes } = live
  const count = (entry: Entry | undefined, sign: 1 | -1) => {
    if (!entry || entry.kind === 'dir' || entry.kind === 'unknown') return
    files += sign
    bytes += sign * entry.size
  }
  for (const { before, after } of stateChanges(ctx.store, live.root, root)) {
    count(before, -1)
    count(after, 1)
  }
  return { files, bytes }
}

class TakeBack {
  private readonly ctx: Context
  private readonly target: Raw
  private readonly tree: EditableTree
  private readonly contents: ReadonlyMap<string, Spooled>
  private readonly live: Live
  /** Names of one file are one thing, as long as its number is known. */
  private readonly inodes = new Map<Branch, bigint>()
  /** Directories that are not captured where they went, because somebody moved them on since or rules say so now. */
  private readonly away = new Map<Raw, Raw>()

  constructor(ctx: Context, tree: EditableTree, contents: ReadonlyMap<string, Spooled>, live: Live) {
    this.ctx = ctx
    this.target = rawFromBytes(ctx.targetPath)
    this.tree = tree
    this.contents = contents
    this.live = live
  }

  async all(changes: BeforeChange[]): Promise<void> {
    this.findLinked(new Set(changes.flatMap(change => ('was' in change ? (change.was?.ino ?? []) : []))))
    const { ctx } = this
    await withDir(ctx.targetPath, async root => {
      const rules = await Exclusions.open({ root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env })
      for (const change of changes.toReversed()) {
        if ('was' in change) await this.entry(change, rules)
        else this.move(change)
      }
    })
    this.groupLinked()
    for (const [path, to] of this.away)
      ctx.notice(
        `${showPath(path)} was moved to ${showPath(to)}, and is not captured there now: undo does not bring it back`,
      )
  }

  private relative(path: Raw): Raw | undefined {
    return isWithin(path, this.target) && path !== this.target ? path.slice(this.target.length + 1) : undefined
  }

  private async entry({ path: place, was }: EntryBefore, rules: Exclusions): Promise<void> {
    const path = this.relative(place)
    const now = path === undefined ? undefined : this.tree.get(path)
    // What is not captured was not before, either.
    if (now?.entry?.kind === 'unknown' && !(path !== undefined && this.away.delete(path))) return
    if (!was) {
      if (path !== undefined) this.tree.remove(path)
      return
    }
    const content = this.contents.get(was.copy ?? '')
    const isDirectory = (was.mode & record.S_IFMT) === record.S_IFDIR
    const size = content?.size ?? 0
    const isExcluded = path !== undefined && !now && (await rules.of(path, { isDirectory, size })) !== undefined
    const entry = this.entryOf(place, was, content, isExcluded, now?.entry)
    const branch = isDirectory && now ? { ...now, entry } : branchOf(entry)
    if (path !== undefined) this.tree.put(path, branch)
    if (was.ino === undefined) return
    for (const [other, ino] of this.inodes)
      if (ino === was.ino && other.entry) other.entry = { ...entry, name: other.entry.name }
    if (path !== undefined) this.inodes.set(branch, was.ino)
  }

  private entryOf(
    place: Raw,
    was: NonNullable<EntryBefore['was']>,
    content: Spooled | undefined,
    isExcluded: boolean,
    now: Entry | undefined,
  ): Entry {
    const name = nameOf(place)
    const kind = kindOfType.get(was.mode & record.S_IFMT)
    const limit = this.ctx.config.snapshots.max_file_bytes
    if (isExcluded) return unknownEntry(name, 'excluded', kind)
    if (content && content.size > limit) return unknownEntry(name, 'too-large', kind, limit)
    const entry = { ...blankEntry(name, kind ?? 'unknown'), mode: was.mode & 0o7777, uid: was.uid, gid: was.gid }
    if (kind === 'dir' && now?.kind === 'dir') return { ...entry, xattrs: now.xattrs, content: now.content }
    if (kind === 'dir') return entry
    if (kind === 'link') return { ...entry, target: was.target, size: was.target.length, mtimeNs: was.mtimeNs }
    if (kind === 'fifo') return { ...entry, mtimeNs: was.mtimeNs }
    if (kind !== 'file' || !content) return unknownEntry(name, kind ? 'vanished' : 'socket', kind)
    const isSame = now?.kind === 'file' && now.content === content.content
    return {
      ...entry,
      ...content,
      mtimeNs: was.mtimeNs,
      sparse: isSame ? now.sparse : content.sparse,
      linkGroup: now?.kind === 'file' ? now.linkGroup : 0n,
    }
  }

  private move({ from, to, isExchange }: MoveBefore): void {
    const [old, now] = [this.relative(from), this.relative(to)]
    const [atOld, atNew] = [old, now].map(path => (path === undefined ? undefined : this.tree.get(path)))
    const isCaptured = (branch: Branch | undefined) => branch !== undefined && branch.entry?.kind !== 'unknown'
    if (isExchange) {
      if (old !== undefined && now !== undefined && isCaptured(atOld) && isCaptured(atNew)) {
        this.tree.put(old, atNew!)
        this.tree.put(now, atOld!)
      }
      return
    }
    // It failed, or was never let go: its file is where it was.
    if (atOld) return
    // Where it is now nothing is captured. Of a file there is a copy, which comes next.
    const branch = isCaptured(atNew) ? atNew! : branchOf(unknownEntry('', 'vanished', 'dir'))
    if (old !== undefined) this.tree.put(old, branch)
    if (old !== undefined && !isCaptured(atNew)) this.away.set(old, now ?? to)
    if (now !== undefined && isCaptured(atNew)) this.tree.remove(now)
  }

  /** Which entries are names of these files now, and of all that have several: a group is named after its first path. */
  private findLinked(inodes: ReadonlySet<bigint>): void {
    for (const [directory, { records }] of this.live.cache.dirs) {
      record.forEachRecord(records, at => {
        const ino = record.recordIno(records, at)
        if (record.recordType(records, at) !== record.S_IFREG) return
        if (record.recordNlink(records, at) === 1 && !inodes.has(ino)) return
        const branch = this.tree.get(joinRaw(directory, record.recordName(records, at)))
        if (branch?.entry && branch.entry.kind !== 'unknown') this.inodes.set(branch, ino)
      })
    }
  }

  private groupLinked(): void {
    const names = Map.groupBy([...this.tree.loaded()], ([, branch]) => this.inodes.get(branch))
    for (const [ino, members] of names) {
      if (ino === undefined) continue
      const [first = ''] = members.map(([path]) => path).sort()
      const linkGroup = members.length > 1 ? linkGroupNumber(first) : 0n
      for (const [, branch] of members) if (branch.entry?.kind === 'file') branch.entry = { ...branch.entry, linkGroup }
    }
  }
}
