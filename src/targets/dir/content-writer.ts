/**
 * Writes file contents from the store to new files, grouped by the block they lie in so that each block is unpacked
 * once. A few blocks are written here; many are spread over worker threads.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, type PathLike, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { errnoOf, SavepointError } from '../../errors/errors.ts'
import type { Entry } from '../../model/entry.ts'
import { Hasher } from '../../model/id.ts'
import { type Raw, showPath } from '../../model/raw-path.ts'
import { addon, META, META_FLAG } from '../../native/addon.ts'
import type { Location } from '../../store/object-index.ts'
import { readWindows } from '../../store/read-windows.ts'
import { recipeSize, wrongContent } from '../../store/recipe.ts'
import type { Store } from '../../store/store.ts'
import { givenMode, SET_GROUP_ID } from './given-mode.ts'
import { hashZeros } from './hash-zeros.ts'
import { type BlockFiles, writeBlockFiles } from './restore-block.ts'
import { encodeSpecs } from './restore-spec.ts'
import type { WriteReply, WriteTask } from './restore-worker.ts'
import { STAGE_PREFIX } from './stage-mark.ts'
import { startWorker } from './start-worker.ts'

const COPY_BYTES = 1024 * 1024

const WORKERS = 2
const DEPTH = 3
/** Fewer blocks than this are not worth starting threads. */
const INLINE_BLOCKS = 6

interface Item {
  path: Raw
  entry: Entry
  location: Location
  done(stat: WrittenStat): void
}

/** What the new file's stat is, so that a later capture need not read it again. */
export interface WrittenStat {
  ino: bigint
  ctimeNs: bigint
  /** Owner, mode or xattrs that the system refused to set. */
  refused: boolean
}

export class ContentWriter {
  private readonly store: Store
  private readonly root: number
  private readonly blocks = new Map<string, Item[]>()
  private readonly large: Omit<Item, 'location'>[] = []
  private readonly onProgress: (files: number, bytes: number) => void

  constructor(store: Store, root: number, onProgress: (files: number, bytes: number) => void) {
    this.store = store
    this.root = root
    this.onProgress = onProgress
  }

  /** Queues a regular file that does not exist yet. */
  add(path: Raw, entry: Entry, done: (stat: WrittenStat) => void): void {
    const source = this.store.contentSource(entry.content)
    if (source.kind !== 'object') {
      this.large.push({ path, entry, done })
      return
    }
    const key = `${source.location.pack}:${source.location.block}`
    const items = this.blocks.get(key)
    const item = { path, entry, location: source.location, done }
    if (items) items.push(item)
    else this.blocks.set(key, [item])
  }

  async write(): Promise<void> {
    const groups = [...this.blocks.values()].sort(
      (a, b) => a[0]!.location.pack - b[0]!.location.pack || a[0]!.location.block - b[0]!.location.block,
    )
    if (groups.length <= INLINE_BLOCKS) for (const items of groups) this.writeHere(items)
    else await this.writeInWorkers(groups)
    for (const item of this.large) this.writeLarge(item)
  }

  private writeHere(items: Item[]): void {
    const { pack, block } = items[0]!.location
    const { bytes, header } = this.store.packs.packedBlock(pack, block)
    this.finish(items, writeBlockFiles(this.root, bytes, encodeItems(items, header.rawBytes)))
  }

  private async writeInWorkers(groups: Item[][]): Promise<void> {
    const workers = Array.from({ length: WORKERS }, () => startWorker('restore-worker'))
    try {
      await this.spread(groups, workers)
    } finally {
      await Promise.all(workers.map(worker => worker.terminate()))
    }
  }

  private spread(groups: Item[][], workers: Worker[]): Promise<void> {
    return new Promise((resolve, reject) => {
      let next = 0
      let open = 0
      const dispatch = (worker: Worker) => {
        if (next >= groups.length) {
          if (open === 0) resolve()
          return
        }
        worker.postMessage(this.toTask(next, groups[next]!))
        next++
        open++
      }
      for (const worker of workers) {
        worker.on('error', reject)
        worker.on('message', (reply: WriteReply) => {
          open--
          try {
            if ('error' in reply) throw fromWorker(reply.error)
            this.finish(
              groups[reply.task]!,
              Buffer.from(reply.meta.buffer, reply.meta.byteOffset, reply.meta.byteLength),
            )
            dispatch(worker)
          } catch (error) {
            reject(error as Error)
          }
        })
        for (let i = 0; i < DEPTH; i++) dispatch(worker)
      }
    })
  }

  private toTask(task: number, items: Item[]): WriteTask {
    const { pack, block } = items[0]!.location
    const packFile = join(this.store.packDirectory, this.store.index.pack(pack)!.name)
    const { totalBytes, rawBytes } = this.store.packs.blockHeader(pack, block)
    return { task, root: this.root, packFile, offset: block, bytes: totalBytes, files: encodeItems(items, rawBytes) }
  }

  private finish(items: Item[], meta: Buffer): void {
    let bytes = 0
    for (const [i, { path, entry, done }] of items.entries()) {
      const at = i * META.size_
      const errno = meta.readInt32LE(at + META.errno)
      if (errno !== 0) throw cannotWrite(path, errno)
      const flags = meta.readUInt32LE(at + META.flags)
      const refused = (flags & (META_FLAG.ownerFailed | META_FLAG.modeFailed | META_FLAG.xattrsFailed)) !== 0
      done({ ino: meta.readBigUInt64LE(at + META.ino), ctimeNs: meta.readBigInt64LE(at + META.ctimeNs), refused })
      bytes += entry.size
    }
    this.onProgress(items.length, bytes)
  }

  // --- large files: chunks one after another ---

  private writeLarge({ path, entry, done }: Omit<Item, 'location'>): void {
    const fd = addon.openAt(
      this.root,
      path,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    )
    try {
      const hasher = new Hasher()
      const source = this.store.contentSource(entry.content)
      if (source.kind === 'clone') cloneOrCopy(source.file, fd, hasher)
      else if (source.kind === 'recipe') {
        if (recipeSize(source.items) !== entry.size) throw wrongContent()
        let at = 0
        for (const item of source.items) {
          if ('hole' in item) {
            hashZeros(hasher, item.hole)
            at += item.hole
            continue
          }
          const bytes = this.store.readAt(this.store.locate(item.chunk))
          hasher.update(bytes)
          writeFully(fd, bytes, at)
          at += bytes.length
        }
        ftruncateSync(fd, entry.size)
      }
      if (hasher.digest() !== entry.content) throw wrongContent()
    } finally {
      addon.close(fd)
    }
    const refused = applyMetadata(this.root, path, entry)
    const stat = addon.statAt(this.root, path)
    done({ ino: stat.ino, ctimeNs: stat.ctimeNs, refused })
    this.onProgress(1, entry.size)
  }
}

/** Owner, mode, xattrs and times of something that exists. Returns whether anything was refused. */
export function applyMetadata(root: number, path: Raw, entry: Entry): boolean {
  let refused = false
  let mode = entry.mode
  const stat = addon.statAt(root, path)
  if ((stat.uid !== entry.uid || stat.gid !== entry.gid) && !chown(root, path, entry.uid, entry.gid)) {
    // A group that we are in can have it all the same: its rights would be those of another one.
    const hasGroup = stat.gid === entry.gid || (stat.uid !== entry.uid && chown(root, path, stat.uid, entry.gid))
    mode = givenMode(entry, hasGroup)
    refused = true
  }
  // xattrs before the mode: user.* on a read-only file is refused even to its owner.
  const wanted = entry.xattrs ?? Buffer.alloc(0)
  if (!addon.getXattrs(root, path).equals(wanted)) {
    if (entry.kind !== 'link' && (stat.mode & 0o200) === 0) addon.chmodAt(root, path, (stat.mode & 0o777) | 0o200)
    refused = addon.setXattrs(root, path, wanted) !== 0 || refused
  }
  if (entry.kind !== 'link') addon.chmodAt(root, path, mode)
  // Of a group that we are not in the system drops it without a word.
  if ((mode & SET_GROUP_ID) !== 0 && (addon.statAt(root, path).mode & SET_GROUP_ID) === 0) refused = true
  if (entry.kind !== 'dir') addon.utimesAt(root, path, entry.mtimeNs)
  return refused
}

/** Whether it was permitted. EINVAL: an id that our user namespace does not map. */
function chown(root: number, path: Raw, uid: number, gid: number): boolean {
  try {
    addon.chownAt(root, path, uid, gid)
    return true
  } catch (error) {
    if (errnoOf(error) !== 'EPERM' && errnoOf(error) !== 'EINVAL') throw error
    return false
  }
}

/** `rawBytes`: the unpacked size of the block; xattrs lie behind it in the data. */
function encodeItems(items: Item[], rawBytes: number): BlockFiles {
  let xattrAt = rawBytes
  const specs = items.map(({ path, entry, location }) => {
    const spec = { path, entry, offset: location.offset, xattrOffset: xattrAt }
    xattrAt += entry.xattrs?.length ?? 0
    return spec
  })
  return {
    spec: encodeSpecs(specs),
    ids: items.map(item => item.entry.content).join(''),
    ranges: Uint32Array.from(items.flatMap(({ location }) => [location.offset, location.length])),
    xattrs: Buffer.concat(items.flatMap(item => item.entry.xattrs ?? [])),
  }
}

/** An error that crossed from a worker, where only its text and code do. */
function fromWorker({ message, code }: { message: string; code?: string }): Error {
  return code === 'store.damaged' ? wrongContent() : Object.assign(new Error(message), { code })
}

function cloneOrCopy(file: PathLike, destination: number, hasher: Hasher): void {
  const source = openSync(file, 'r')
  try {
    try {
      addon.cloneFd(source, destination)
    } catch {
      copyWithHoles(source, destination, hasher)
      return
    }
    for (const { bytes } of readWindows(source)) hasher.update(bytes)
  } finally {
    closeSync(source)
  }
}

/** To another filesystem, which may have no room for what are holes here. */
function copyWithHoles(source: number, destination: number, hasher: Hasher): void {
  const { size } = fstatSync(source)
  const segments = addon.dataSegments(source, size)
  const window = Buffer.allocUnsafeSlow(COPY_BYTES)
  let at = 0
  for (let i = 0; i < segments.length; i += 2) {
    const from = segments[i]!
    hashZeros(hasher, from - at)
    for (at = from; at < from + segments[i + 1]!; ) {
      const count = readSync(source, window, 0, Math.min(window.length, from + segments[i + 1]! - at), at)
      if (count === 0) throw wrongContent()
      hasher.update(window.subarray(0, count))
      writeFully(destination, window.subarray(0, count), at)
      at += count
    }
  }
  hashZeros(hasher, size - at)
  ftruncateSync(destination, size)
}

function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, position + done)
}

function cannotWrite(path: Raw, errno: number): Error {
  const full = errno === 28 ? 'the disk is full' : errno === 122 ? 'the quota is used up' : undefined
  const where = path.startsWith(STAGE_PREFIX) ? 'anything in the target' : showPath(path)
  return new SavepointError(full ? 'disk.full' : 'io.failed', `Cannot write ${where}: ${full ?? `error ${errno}`}`, {
    hint: full && 'Free some space and try again; nothing in the target was changed',
    data: { errno },
  })
}
