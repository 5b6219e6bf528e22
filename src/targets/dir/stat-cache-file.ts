/**
 * The stat cache on disk: one file with all of it, the base, and beside it one with the directories that are not as that
 * says, so that ten changed files in a large tree do not cost the whole. Losing either costs time, never correctness:
 * they are checksummed, the second names the first, and what is odd is ignored.
 */
import { closeSync, fstatSync, openSync, rmSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Id } from '../../model/entry.ts'
import { hashBytes } from '../../model/id.ts'
import type { Raw } from '../../model/raw-path.ts'
import { writeByRename } from '../../store/durable.ts'
import { readFully } from '../../store/pack-reader.ts'
import { CacheBytes } from './cache-bytes.ts'
import { type Base, type CachedDir, CachedDirs, emptyCache, type StatCache } from './stat-cache.ts'
import { CHECKSUM_BYTES, decode, encode, gone, headerText, isOurs } from './stat-cache-format.ts'
import { StoredDir } from './stored-dir.ts'

/** More than this part of the base is not kept beside it: it is written anew. */
const BESIDE_PART = 8

const NAME = 'statcache'
const fileIn = (directory: string): string => join(directory, NAME)
const besideIn = (directory: string): string => join(directory, `${NAME}.changes`)

/** Not fsynced: after a power cut the checksum tells a torn cache, and the next capture reads everything once. */
export function saveStatCache(directory: string, cache: StatCache): void {
  if (cache.base && saveBeside(directory, cache, cache.base)) return
  const file = fileIn(directory)
  const bytes = encode(cache)
  writeByRename(file, [bytes])
  rmSync(besideIn(directory), { force: true })
  const sum = bytes.toString('latin1', bytes.length - CHECKSUM_BYTES)
  cache.base = { sum, identity: identityOf(statSync(file)), paths: [...cache.dirs.keys()] }
  for (const dir of cache.dirs.values()) dir.base = cache.base
}

/** false when too much is not as the base says, or when another process has written a base of its own. */
function saveBeside(directory: string, { dirs, rootKey, root, bytes }: StatCache, base: Base): boolean {
  const stat = statSync(fileIn(directory), { throwIfNoEntry: false })
  if (!stat || identityOf(stat) !== base.identity) return false
  const changed = new Map<Raw, CachedDir>()
  for (const path of base.paths) if (!dirs.has(path)) changed.set(path, gone)
  for (const [path, dir] of dirs) if (dir.base !== base) changed.set(path, dir)
  if (changed.size > base.paths.length / BESIDE_PART) return false
  writeByRename(besideIn(directory), [encode({ dirs: changed, rootKey: base.sum + rootKey, root, bytes })])
  return true
}

const identityOf = ({ dev, ino, size, mtimeMs }: Stats): string => `${dev}:${ino}:${size}:${mtimeMs}`

/** The cache of a timeline, or an empty one when there is none that can be trusted. */
export function loadStatCache(directory: string, rootKey: string): StatCache {
  const files = readFiles(directory)
  if (files?.rootKey !== rootKey) return emptyCache(rootKey)
  const { bytes, beside, sum, identity } = files
  const base = { sum, identity, paths: [] as Raw[] }
  const dirs = new CachedDirs()
  const source = new CacheBytes(bytes, identity)
  let root = decode(bytes, source, 0, base, (path, dir) => {
    base.paths.push(path)
    dirs.add(path, dir)
  })
  if (beside)
    root = decode(
      bytes,
      source,
      beside.byteOffset - bytes.byteOffset,
      undefined,
      (path, dir, isGone) => void (isGone ? dirs.delete(path) : dirs.set(path, dir)),
    )
  return { dirs, rootKey, bytes: source, root, base }
}

/**
 * Leaves the records of a cache in the file, as far as that says the same. What is returned takes its place. For a run, which keeps it
 * for hours and needs little of it. `isSaved`: just now.
 */
export function leaveInFile(directory: string, cache: StatCache, isSaved: boolean): StatCache {
  if (!cache.base || cache.bytes.isInFile) return cache
  const isOfFile = cache.bytes.identity === cache.base.identity
  const left = isOfFile || !isSaved ? cache : loadStatCache(directory, cache.rootKey)
  const opened: number[] = []
  const file = openedFile(fileIn(directory), opened)
  // Otherwise somebody else has written another one.
  if (file && left.root === cache.root && left.bytes.identity === file.identity) {
    for (const dir of left.dirs.values()) if (dir instanceof StoredDir && dir.base !== left.base) dir.keepOwn()
    left.bytes.leaveIn(file.fd, file.size)
    return left
  }
  for (const fd of opened) closeSync(fd)
  return cache
}

/** The root tree of the cache of a timeline; '' when there is none that can be trusted. */
export function loadStatCacheRoot(directory: string): Id {
  const files = readFiles(directory)
  return files ? headerText(files.beside ?? files.whole).root : ''
}

export function removeStatCache(directory: string): void {
  rmSync(fileIn(directory), { force: true })
  rmSync(besideIn(directory), { force: true })
}

/** What can be trusted, without the checksums. In one buffer, as the scan of all directories wants the records. */
function readFiles(directory: string) {
  const opened: number[] = []
  try {
    const whole = openedFile(fileIn(directory), opened)
    if (!whole) return undefined
    const changes = openedFile(besideIn(directory), opened)
    const bytes = Buffer.allocUnsafe(whole.size + (changes?.size ?? 0))
    const base = readChecked(whole, bytes.subarray(0, whole.size))
    if (!base) return undefined
    const { rootKey } = headerText(base.body)
    const beside = changes && readChecked(changes, bytes.subarray(whole.size))?.body
    const isOfBase = beside && headerText(beside).rootKey === base.sum + rootKey
    const { body, sum } = base
    return { bytes, whole: body, sum, identity: whole.identity, rootKey, beside: isOfBase ? beside : undefined }
  } catch {
    return undefined
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}

interface OpenedFile {
  fd: number
  size: number
  identity: string
}

/** undefined when there is none. Others replace it as a whole: its size stays. */
function openedFile(file: string, opened: number[]): OpenedFile | undefined {
  try {
    const fd = openSync(file, 'r')
    opened.push(fd)
    const stat = fstatSync(fd)
    return { fd, size: stat.size, identity: identityOf(stat) }
  } catch {
    return undefined
  }
}

function readChecked({ fd }: OpenedFile, bytes: Buffer): { body: Buffer; sum: string } | undefined {
  if (bytes.length < CHECKSUM_BYTES || !readFully(fd, bytes, 0)) return undefined
  const body = bytes.subarray(0, bytes.length - CHECKSUM_BYTES)
  const sum = bytes.toString('latin1', body.length)
  return hashBytes(body) === sum && isOurs(body) ? { body, sum } : undefined
}
