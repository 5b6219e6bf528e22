/**
 * Captures one large file: cut into content-defined chunks so that an edit stores a few megabytes, or cloned where the
 * store's filesystem shares blocks.
 */
import { closeSync, constants, fsync, openSync, renameSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../../errors/errors.ts'
import type { Id } from '../../model/entry.ts'
import { Hasher } from '../../model/id.ts'
import { addon, type Stat } from '../../native/addon.ts'
import { encodeRecipe, type RecipeItem } from '../../store/recipe.ts'
import type { ChunkReader } from './chunk-reader.ts'
import { hashZeros } from './hash-zeros.ts'
import { READ_RETRIES, type ReadResult } from './ingest-read.ts'
import { S_IFMT, S_IFREG } from './walk-record.ts'

/** Where chunks go. */
export interface ChunkSink extends ChunkReader {
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
      // Something else has taken its place since it was listed.
      if ((before.mode & S_IFMT) !== S_IFREG) return { ...toResult(before, '', false, undefined), unknown: 'vanished' }
      const captured = (await cloneContent(fd, before, sink)) ?? (await chunkContent(fd, before.size, sink))
      const after = addon.statFd(fd)
      if (captured && sameContentStat(before, after)) {
        await captured.publish()
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
  publish(): Promise<void>
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
    if (!(await sink.storeChunks(fd, from, from + length, hasher, items))) return undefined
    at = from + length
  }
  if (at < size) addHole(items, hasher, size - at)
  const id = hasher.digest()
  return {
    id,
    sparse: items.some(item => 'hole' in item),
    publish: async () => sink.storeRecipe(id, encodeRecipe(items)),
    discard: () => {},
  }
}

function addHole(items: RecipeItem[], hasher: Hasher, length: number): void {
  items.push({ hole: length })
  hashZeros(hasher, length)
}

/** Shares the file's blocks with the store and hashes the clone, so that what is hashed is what is kept. */
async function cloneContent(fd: number, before: Stat, sink: ChunkSink): Promise<Captured | undefined> {
  const paths = sink.clonePaths()
  if (!paths) return undefined
  const clone = openSync(paths.temporary, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o600)
  const discard = () => unlinkSync(paths.temporary)
  try {
    addon.cloneFd(fd, clone)
    const { id, size } = await sink.hashFile(clone)
    const sparse = addon.dataSegments(clone, size).length !== 2 && size > 0
    const publish = async () => {
      await sync(clone)
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

const sync = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fsync(fd, error => (error ? reject(error) : resolve())))

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
