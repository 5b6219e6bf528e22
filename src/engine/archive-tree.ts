/**
 * Puts the entries of an archive together to a tree. Every path is checked here, so that a tree can never name anything
 * outside itself. Entries come in any order; missing parents are made (0755, owned as the directory around them).
 * The result does not depend on the order: a hard-link group is numbered after its first path, as a capture does.
 */
import { blankEntry, type Entry, type Id } from '../model/entry.ts'
import { formatCount } from '../model/format.ts'
import { joinRaw, type Raw } from '../model/raw-path.ts'
import type { StoreWriter } from '../store/store-writer.ts'
import { encodeTree, isSafeName } from '../store/tree-codec.ts'
import { ROOT_NAME } from '../targets/dir/capture.ts'
import { linkGroupNumber, unknownEntry } from '../targets/dir/dir-node.ts'
import type { UnknownName } from './archive-unknown.ts'
import { type ImportLimits, unsafeArchive } from './archive-unsafe.ts'

const IMPLIED_MODE = 0o755

interface Dir {
  entry: Entry
  /** Not in the archive itself (yet): made for what lies below. */
  isImplied: boolean
  entries: Map<Raw, Entry>
  dirs: Map<Raw, Dir>
}

interface LinkGroup {
  firstPath: Raw
  members: Entry[]
}

export class ArchiveTree {
  files = 0
  contentBytes = 0
  private readonly root: Dir = newDir(ROOT_NAME)
  private readonly groups = new Map<Entry, LinkGroup>()
  private readonly limits: ImportLimits
  private count = 0
  private metadataBytes = 0
  /** Most entries follow another one of their directory. */
  private lastParent: { path: Raw; dir: Dir } = { path: '', dir: this.root }

  constructor(limits: ImportLimits) {
    this.limits = limits
  }

  /** The components of a path of the archive: none for the root itself. Throws for a path that is not safe. */
  parts(path: Raw): Raw[] {
    if (path.startsWith('/')) throw unsafeArchive('is an absolute path', path)
    const parts = path.split('/').filter(part => part !== '' && part !== '.')
    if (path === '' || parts.includes('..')) throw unsafeArchive('leads out of the archive', path)
    if (!parts.every(isSafeName)) throw unsafeArchive('has a name that no file can have', path)
    if (parts.length > this.limits.depth)
      throw unsafeArchive(
        `lies ${formatCount(parts.length)} levels deep; an import takes ${formatCount(this.limits.depth)}`,
        path,
      )
    return parts
  }

  /** `entry` without its name; of kind dir for the root. */
  add(path: Raw, entry: Entry): void {
    const parts = this.parts(path)
    const name = parts.pop()
    if (entry.kind === 'dir') {
      this.addDir(path, name === undefined ? this.root : this.childDir(this.dirAt(parts, path), name, path), entry)
      return
    }
    if (name === undefined) throw unsafeArchive('is no directory', path)
    this.put(this.dirAt(parts, path), { ...entry, name }, path)
    this.files++
    this.contentBytes += entry.size
  }

  addUnknown(path: Raw, { name, reason, found, limit }: UnknownName): void {
    this.put(this.dirAt(this.parts(path), path), unknownEntry(name, reason, found, limit), joinRaw(path, name))
  }

  /** One more name for a file that the archive already had. */
  addHardLink(path: Raw, target: Raw): void {
    const original = this.fileAt(target)
    if (!original) throw unsafeArchive('is a hard link to something that does not stand before it', path)
    const member = { ...original.entry }
    this.add(path, member)
    const added = this.fileAt(path)!
    const group = this.groups.get(original.entry) ?? { firstPath: original.path, members: [original.entry] }
    group.members.push(added.entry)
    if (added.path < group.firstPath) group.firstPath = added.path
    for (const entry of [original.entry, added.entry]) this.groups.set(entry, group)
  }

  /** Writes all directories, and the tree of a snapshot's root. `root`: what it is like when the archive does not say. */
  write(writer: StoreWriter, root: Entry): Id {
    for (const { firstPath, members } of new Set(this.groups.values())) {
      for (const member of members) member.linkGroup = linkGroupNumber(firstPath)
    }
    if (this.root.isImplied) this.root.entry = { ...root, name: ROOT_NAME }
    // Children before parents; not recursive, because it may be thousands of directories deep.
    const order = [this.root]
    for (let i = 0; i < order.length; i++) {
      const { entry, dirs } = order[i]!
      for (const dir of dirs.values()) {
        if (dir.isImplied) Object.assign(dir.entry, { uid: entry.uid, gid: entry.gid })
        order.push(dir)
      }
    }
    for (const dir of order.reverse()) dir.entry.content = this.writeDir(writer, dir)
    return writer.put(encodeTree([this.root.entry]))
  }

  private writeDir(writer: StoreWriter, { entry, entries, dirs }: Dir): Id {
    const all = [...entries.values(), ...[...dirs.values()].map(dir => dir.entry)]
    const encoded = encodeTree(all.sort((a, b) => (a.name < b.name ? -1 : 1)))
    if (encoded.length > this.limits.treeBytes)
      throw unsafeArchive(`has too many entries in one directory (${all.length})`, entry.name)
    return writer.put(encoded)
  }

  private addDir(path: Raw, dir: Dir, entry: Entry): void {
    if (!dir.isImplied) throw unsafeArchive('stands in it twice', path)
    this.spend(0, entry, path)
    dir.isImplied = false
    dir.entry = { ...entry, name: dir.entry.name }
  }

  private put(dir: Dir, entry: Entry, path: Raw): void {
    if (dir.entries.has(entry.name) || dir.dirs.has(entry.name)) throw unsafeArchive('stands in it twice', path)
    this.spend(1, entry, path)
    dir.entries.set(entry.name, entry)
  }

  private dirAt(parts: readonly Raw[], path: Raw): Dir {
    const parent = parts.join('/')
    if (parent === this.lastParent.path) return this.lastParent.dir
    let dir = this.root
    for (const name of parts) dir = this.childDir(dir, name, path)
    this.lastParent = { path: parent, dir }
    return dir
  }

  private childDir(dir: Dir, name: Raw, path: Raw): Dir {
    const known = dir.dirs.get(name)
    if (known) return known
    const other = dir.entries.get(name)
    if (other) throw unsafeArchive(`is a directory or lies below one, where the archive has a ${other.kind}`, path)
    const made = newDir(name)
    this.spend(1, made.entry, path)
    dir.dirs.set(name, made)
    return made
  }

  private fileAt(path: Raw): { path: Raw; entry: Entry } | undefined {
    const parts = this.parts(path)
    const plain = parts.join('/')
    const name = parts.pop()
    let dir: Dir | undefined = this.root
    for (const part of parts) dir = dir?.dirs.get(part)
    const entry = name === undefined ? undefined : dir?.entries.get(name)
    return entry?.kind === 'file' ? { path: plain, entry } : undefined
  }

  private spend(count: number, entry: Entry, path: Raw): void {
    this.count += count
    this.metadataBytes += entry.name.length + entry.target.length + (entry.xattrs?.length ?? 0)
    if (this.count > this.limits.entries)
      throw unsafeArchive(`is one of more than ${this.limits.entries} entries`, path)
    if (this.metadataBytes > this.limits.metadataBytes) throw unsafeArchive('has too many long names and attributes')
  }
}

const newDir = (name: Raw): Dir => ({
  entry: { ...blankEntry(name, 'dir'), mode: IMPLIED_MODE },
  isImplied: true,
  entries: new Map(),
  dirs: new Map(),
})
