/**
 * Captures one large file: cut into content-defined chunks so that an edit stores a few megabytes, or cloned where the
 * store's filesystem shares blocks. Reads in windows, so that memory does not depend on the size.
 */
import { closeSync, constants, fsyncSync, openSync, readSync, renameSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../../errors/errors.ts'
import type { Id } from '../../model/entry.ts'
import { Hasher, hashBytes } from '../../model/id.ts'
import { addon, type Stat } from '../../native/addon.ts'
import { hashFile } from '../../store/read-windows.ts'
import { encodeRecipe, type RecipeItem } from '../../store/recipe.ts'
import { hashZeros } from './hash-zeros.ts'
import { READ_RETRIES, type ReadResult } from './ingest-read.ts'

const CHUNK_MIN_BYTES = 256 * 1024
const CHUNK_AVERAGE_BYTES = 1024 * 1024
const CHUNK_MAX_BYTES = 4 * 1024 * 1024
const WINDOW_BYTES = CHUNK_MAX_BYTES + CHUNK_AVERAGE_BYTES

/** Where chunks go. `claim` answers whether the chunk at that place is new and must be stored. */
export interface ChunkSink {
  claim(ids: Id[]): Promise<boolean[]>
  store(id: Id, bytes: Uint8Array): void
  storeRecipe(id: Id, bytes: Uint8Array): void
  /** Where a clone of this content lies, and a private name to make it under; undefined when clones do not work here. */
  clonePaths(): { temporary: string; final(id: Id): string } | undefined
  storeClone(id: Id, size: number): void
}

/** Reads the file until it holds still (bounded), then returns its result; content '' and `unstable` when it never does. */
export async function captureLargeFile(root: number, path: string, sink: ChunkSink): Promise<ReadResult> {
  const fd = openForReading(root, path)
  try {
    for (let attempt = 0; ; attempt++) {
      const before = addon.statFd(fd)
      const captured = (await cloneContent(fd, before, sink)) ?? (await chunkContent(fd, before.size, sink))
      const after = addon.statFd(fd)
      if (captured && sameContentStat(before, after)) {
        captured.publish()
        return toResult(after, captured.id, captured.sparse, addon.getXattrs(root, path))
      }
      captured?.discard()
      if (attempt >= READ_RETRIES) return { ...toResult(after, '', false, undefined), unknown: 'unstable' }
    }
  } finally {
    addon.close(fd)
  }
}

function openForReading(root: number, path: string): number {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  try {
    return addon.openAt(root, path, flags | constants.O_NOATIME, 0)
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error
    return addon.openAt(root, path, flags, 0)
  }
}

interface Captured {
  id: Id
  sparse: boolean
  publish(): void
  discard(): void
}

/** undefined when the file ended before `size` (it shrank while it was read). */
async function chunkContent(fd: number, size: number, sink: ChunkSink): Promise<Captured | undefined> {
  const hasher = new Hasher()
  const items: RecipeItem[] = []
  const segments = addon.dataSegments(fd, size)
  let at = 0
  for (let i = 0; i < segments.length; i += 2) {
    const [from, length] = [segments[i]!, segments[i + 1]!]
    if (from > at) addHole(items, hasher, from - at)
    if (!(await chunkSegment(fd, from, from + length, hasher, items, sink))) return undefined
    at = from + length
  }
  if (at < size) addHole(items, hasher, size - at)
  const id = hasher.digest()
  return {
    id,
    sparse: items.some(item => 'hole' in item),
    publish: () => sink.storeRecipe(id, encodeRecipe(items)),
    discard: () => {},
  }
}

function addHole(items: RecipeItem[], hasher: Hasher, length: number): void {
  items.push({ hole: length })
  hashZeros(hasher, length)
}

async function chunkSegment(
  fd: number,
  from: number,
  to: number,
  hasher: Hasher,
  items: RecipeItem[],
  sink: ChunkSink,
): Promise<boolean> {
  const window = Buffer.allocUnsafeSlow(Math.min(WINDOW_BYTES, to - from))
  let filled = 0
  let position = from
  while (position < to || filled > 0) {
    while (filled < window.length && position < to) {
      const count = readSync(fd, window, filled, Math.min(window.length - filled, to - position), position)
      if (count === 0) return false
      filled += count
      position += count
    }
    const ends = addon.chunk(window, 0, filled, CHUNK_MIN_BYTES, CHUNK_AVERAGE_BYTES, CHUNK_MAX_BYTES, position >= to)
    const consumed = await storeChunks(window, ends, items, sink)
    hasher.update(window.subarray(0, consumed))
    window.copy(window, 0, consumed, filled)
    filled -= consumed
  }
  return true
}

async function storeChunks(window: Buffer, ends: Uint32Array, items: RecipeItem[], sink: ChunkSink): Promise<number> {
  let start = 0
  const chunks: { id: Id; bytes: Buffer }[] = []
  for (const end of ends) {
    const bytes = window.subarray(start, end)
    const id = hashBytes(bytes)
    chunks.push({ id, bytes })
    items.push({ chunk: id, length: bytes.length })
    start = end
  }
  const wanted = await sink.claim(chunks.map(chunk => chunk.id))
  chunks.forEach((chunk, i) => {
    if (wanted[i]) sink.store(chunk.id, chunk.bytes)
  })
  return start
}

/** Shares the file's blocks with the store and hashes the clone, so that what is hashed is what is kept. */
async function cloneContent(fd: number, before: Stat, sink: ChunkSink): Promise<Captured | undefined> {
  const paths = sink.clonePaths()
  if (!paths) return undefined
  const clone = openSync(paths.temporary, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o600)
  const discard = () => unlinkSync(paths.temporary)
  try {
    addon.cloneFd(fd, clone)
    const { id, size } = hashFile(clone)
    const sparse = addon.dataSegments(clone, size).length !== 2 && size > 0
    const publish = () => {
      fsyncSync(clone)
      renameSync(paths.temporary, paths.final(id))
      closeSync(clone)
      sink.storeClone(id, before.size)
    }
    return {
      id,
      sparse,
      publish,
      discard: () => {
        closeSync(clone)
        discard()
      },
    }
  } catch (error) {
    closeSync(clone)
    discard()
    if (['EOPNOTSUPP', 'ENOTSUP', 'EXDEV', 'EINVAL', 'ENOTTY', 'EBADF', 'ETXTBSY'].includes(errnoOf(error) ?? ''))
      return undefined
    throw error
  }
}

const sameContentStat = (a: Stat, b: Stat): boolean =>
  a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs && a.ino === b.ino

const toResult = (stat: Stat, content: Id, sparse: boolean, xattrs: Buffer | undefined): ReadResult => ({
  errno: 0,
  unknown: undefined,
  mode: stat.mode,
  nlink: stat.nlink,
  uid: stat.uid,
  gid: stat.gid,
  size: stat.size,
  mtimeNs: stat.mtimeNs,
  ctimeNs: stat.ctimeNs,
  ino: stat.ino,
  content,
  target: '',
  xattrs: xattrs && xattrs.length > 0 ? xattrs : undefined,
  sparse,
  rdevMajor: 0,
  rdevMinor: 0,
})
