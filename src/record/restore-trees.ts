/**
 * The three trees that a restore is planned from, of the paths of a bundle below one directory: how they are (`live`), how they shall be
 * (`wanted`), and how the command left them (`base`). What else lies in a directory is `unknown` there, so that it is left alone.
 */
import { createHash } from 'node:crypto'
import { closeSync, constants, readdirSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import { blankEntry, type Entry, type Id, type KnownKind } from '../model/entry.ts'
import { Hasher } from '../model/id.ts'
import { joinRaw, parentOf, type Raw, rawFromBytes } from '../model/raw-path.ts'
import { addon, type Stat } from '../native/addon.ts'
import { readWindows } from '../store/read-windows.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { EMPTY_TREE, encodeTree } from '../store/tree-codec.ts'
import { SafeDirs } from '../targets/dir/safe-dirs.ts'
import type { BundleFile } from './bundle.ts'
import type { BundleContents } from './bundle-contents.ts'
import { keepXattrs, toEntry } from './entries.ts'
import { ownEntry } from './own-entry.ts'
import { sortedChildren, type TrieNode } from './path-trie.ts'
import { openToRead, readXattrs } from './shut-file.ts'

export type Side = 'before' | 'after'
export type NotRestored =
  | 'in-the-way'
  | 'not-stored'
  | 'only-in-git'
  | 'not-in-git'
  | 'special'
  | 'unseen'
  | 'left-behind'
  | 'set-aside'
  | 'ours'
  | 'mounted'

const TYPE_BITS = 0o170000
const kinds = new Map<number, KnownKind>([
  [0o100000, 'file'],
  [0o040000, 'dir'],
  [0o120000, 'link'],
  [0o010000, 'fifo'],
  [0o020000, 'char'],
  [0o060000, 'block'],
])
/** A content that is nowhere: equal to none but itself. */
const nowhere = (sha256: string | undefined): Id => (sha256 ?? '').padEnd(64, '0').slice(0, 32)

export class RestoreTrees {
  private readonly root: number
  /** What is shut to its own owner is opened while it is looked at. */
  private readonly safe: SafeDirs
  private readonly writer: StoreWriter
  private readonly contents: BundleContents
  private readonly wantedSide: Side
  private resumes = false
  private readonly lives = new Map<TrieNode, Entry | undefined>()
  /** What is live or wanted, by its hash: so that a state without content can be told to be the same. */
  private readonly bySha = new Map<string, Id>()
  private readonly byId = new Map<Id, string>()
  /** What is live and has several names; after `wanted`, without files whose wanted contents are not stored. */
  readonly linked = new Set<Raw>()
  /** What gets the user's group instead of its own, or no set-id bit. */
  readonly otherOwned: Raw[] = []
  readonly notRestored: { path: Raw; why: NotRestored }[] = []

  /** `root`: the directory, open. */
  constructor(root: number, writer: StoreWriter, contents: BundleContents, wantedSide: Side) {
    this.root = root
    this.safe = new SafeDirs(root)
    this.writer = writer
    this.contents = contents
    this.wantedSide = wantedSide
  }

  /** The hash of a content that is live or wanted. */
  readonly shaOf = (content: Id): string | undefined => this.byId.get(content)

  live(top: TrieNode): Id {
    try {
      return this.liveBelow(top, '')
    } finally {
      this.safe.close()
    }
  }

  private liveBelow(node: TrieNode, path: Raw): Id {
    const entries = sortedChildren(node).flatMap(child => this.liveEntry(child, joinRaw(path, child.name)) ?? [])
    const isGoing = node.file !== undefined && node.file[this.wantedSide].type !== 'directory'
    if (isGoing) entries.push(...this.others(node, path))
    return this.put(entries)
  }

  private liveEntry(node: TrieNode, path: Raw): Entry | undefined {
    const entry = this.look(node.name, path)
    if (entry?.kind === 'dir') entry.content = this.liveBelow(node, path)
    this.lives.set(node, entry)
    return entry
  }

  /** What else is in a directory that is to go: it stays, and the directory with it. */
  private others(node: TrieNode, path: Raw): Entry[] {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
    const fd = this.safe.in([path], () => addon.openAt(this.root, path, flags, 0))
    try {
      return readdirSync(`/proc/self/fd/${fd}`, 'buffer')
        .map(rawFromBytes)
        .filter(name => !node.children.has(name))
        .map(name => ({ ...blankEntry(name, 'unknown'), reason: 'excluded' as const }))
    } finally {
      closeSync(fd)
    }
  }

  private look(name: Raw, path: Raw): Entry | undefined {
    let stat: Stat
    try {
      stat = this.safe.in([parentOf(path)], () => addon.statAt(this.root, path))
    } catch (error) {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined
      throw error
    }
    const kind = kinds.get(stat.mode & TYPE_BITS)
    if (kind === undefined) return { ...blankEntry(name, 'unknown'), reason: 'socket' }
    const entry = { ...blankEntry(name, kind), mode: stat.mode & 0o7777, uid: stat.uid, gid: stat.gid }
    const xattrs = kind === 'link' ? undefined : readXattrs(this.root, path, stat)
    if (xattrs && xattrs.length > 0) entry.xattrs = xattrs
    if (kind !== 'dir') entry.mtimeNs = stat.mtimeNs
    if (kind === 'link') entry.target = rawFromBytes(addon.readlinkAt(this.root, path))
    if (kind === 'link') entry.size = entry.target.length
    if (kind === 'char' || kind === 'block') [entry.rdevMajor, entry.rdevMinor] = [stat.rdevMajor, stat.rdevMinor]
    if (kind !== 'dir' && stat.nlink > 1) this.linked.add(path)
    if (kind !== 'file') return entry
    return this.withContent(entry, path)
  }

  private withContent(entry: Entry, path: Raw): Entry {
    let fd: number
    try {
      fd = openToRead(flags => addon.openAt(this.root, path, flags, 0))
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      return { ...blankEntry(entry.name, 'unknown'), reason: 'unreadable' }
    }
    try {
      const [id, sha256] = [new Hasher(), createHash('sha256')]
      for (const { bytes } of readWindows(fd)) {
        id.update(bytes)
        sha256.update(bytes)
        entry.size += bytes.length
      }
      entry.content = id.digest()
      this.know(sha256.digest('hex'), entry.content)
      return entry
    } finally {
      closeSync(fd)
    }
  }

  /** After `live`. Stores what is needed for it. */
  async wanted(top: TrieNode): Promise<Id> {
    return (await this.sideBelow(top, '', this.wantedSide)).tree
  }

  /** After `wanted`: stores nothing. `resumes`: things may be as a restore that was killed has left them on its way. */
  async base(top: TrieNode, resumes: boolean): Promise<Id> {
    this.resumes = resumes
    return (await this.sideBelow(top, '', this.wantedSide === 'before' ? 'after' : 'before')).tree
  }

  private async sideBelow(node: TrieNode, path: Raw, side: Side): Promise<{ tree: Id; count: number }> {
    // Thousands of directories inside one another are not thousands of calls.
    await undefined
    const entries: Entry[] = []
    for (const child of sortedChildren(node)) {
      const entry = await this.sideEntry(child, joinRaw(path, child.name), side)
      if (entry) entries.push(entry)
    }
    return { tree: this.put(entries), count: entries.length }
  }

  private async sideEntry(node: TrieNode, path: Raw, side: Side): Promise<Entry | undefined> {
    const live = this.lives.get(node)
    const { file } = node
    if (!file) return this.wayTo(node, path, side, live)
    const state = file[side]
    if (this.resumes && live?.kind === 'dir' && file[this.wantedSide].type === 'directory')
      return { ...live, content: (await this.sideBelow(node, path, side)).tree }
    // What it had taken away, and not yet put something in the place of, is not an edit of anybody.
    if (this.resumes && !live) return undefined
    const entry = toEntry(file, state)
    if (!entry) {
      // A socket, which only a program can make, and which no snapshot could give back: what came is not deleted either.
      if (state.exists || live?.reason === 'socket') this.note(side, path, 'special')
      return state.exists ? live : undefined
    }
    if (live?.kind === entry.kind) keepXattrs(entry, live, state, file[side === 'before' ? 'after' : 'before'])
    if (ownEntry(entry, live) && side === this.wantedSide) this.otherOwned.push(path)
    if (entry.kind === 'dir') return { ...entry, content: (await this.sideBelow(node, path, side)).tree }
    if (entry.kind === 'char' || entry.kind === 'block') {
      this.note(side, path, 'special')
      return live
    }
    return entry.kind === 'file' ? this.fileEntry(file, entry, path, side, live) : entry
  }

  private async fileEntry(file: BundleFile, entry: Entry, path: Raw, side: Side, live: Entry | undefined) {
    const { sha256 } = file[side]
    if (side !== this.wantedSide) return { ...entry, content: (sha256 && this.bySha.get(sha256)) ?? nowhere(sha256) }
    const known = sha256 === undefined ? undefined : this.bySha.get(sha256)
    const isLive = known !== undefined && live?.content === known
    if (isLive && !this.linked.has(path)) return { ...entry, content: known }
    const content = await this.contents.store(file, side)
    if (typeof content !== 'string') {
      this.linked.delete(path)
      if (isLive) return { ...entry, content: known }
      this.note(side, path, content.why)
      return live
    }
    if (sha256 !== undefined) this.know(sha256, content)
    return { ...entry, content }
  }

  /** A directory that is only on the way: as it is, or made for what is to be in it. */
  private async wayTo(node: TrieNode, path: Raw, side: Side, live: Entry | undefined): Promise<Entry | undefined> {
    if (live && live.kind !== 'dir') {
      // Nothing is replaced that the bundle says nothing of, and nothing is written through a link.
      if (side === this.wantedSide) this.notRestored.push({ path, why: 'in-the-way' })
      return live
    }
    const { tree, count } = await this.sideBelow(node, path, side)
    if (live) return { ...live, content: tree }
    const owner = { uid: process.geteuid!(), gid: process.getegid!() }
    const made = { ...blankEntry(node.name, 'dir'), mode: 0o755, ...owner, content: tree }
    return count === 0 ? undefined : made
  }

  private know(sha256: string, content: Id): void {
    this.bySha.set(sha256, content)
    this.byId.set(content, sha256)
  }

  private note(side: Side, path: Raw, why: NotRestored): void {
    if (side === this.wantedSide) this.notRestored.push({ path, why })
  }

  private put(entries: Entry[]): Id {
    if (entries.length === 0) return EMPTY_TREE
    return this.writer.put(encodeTree(entries.sort((a, b) => (a.name < b.name ? -1 : 1))))
  }
}
