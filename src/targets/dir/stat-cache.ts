/**
 * What the last capture saw, directory by directory: the raw walk records and the tree they became. A directory whose
 * records are the same bytes again is unchanged, so an unchanged tree costs one walk and a comparison. Losing the cache
 * costs time, never correctness: it is checksummed and ignored when anything is odd.
 */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { blake3 } from '@napi-rs/blake-hash'
import type { Id } from '../../model/entry.ts'
import { ID_BYTES } from '../../model/id.ts'
import type { Raw } from '../../model/raw-path.ts'
import { ByteReader } from '../../store/byte-reader.ts'
import { ByteWriter } from '../../store/byte-writer.ts'
import { temporaryName } from '../../store/durable.ts'

const MAGIC = 'SVPTSTAT'
const VERSION = 2
const CHECKSUM_BYTES = 32
/** What a directory takes besides its path and its records: tree, rules, counts. An estimate, so that nothing is copied. */
const DIR_OVERHEAD_BYTES = 160

export interface CachedDir {
  records: Buffer
  /** Digest of the rules that came from above, and of those in force inside. */
  rulesIn: string
  rulesOut: string
  tree: Id
  /** Names of the subdirectories that were entered. */
  childDirs: Raw[]
  /** See noteworthy-names. */
  noteworthy: number
  /** Something was captured against the rules, for a rollback. */
  overridden: boolean
  /** Entries of this directory that are `unknown`. */
  unknown: number
  /** Of those, what makes a snapshot PARTIAL. Such a directory is always looked at again. */
  skipped: number
  files: number
  bytes: number
}

export interface StatCache {
  dirs: Map<Raw, CachedDir>
  /** Identity of the target's root when it was captured, so that another directory's cache is never used. */
  rootKey: string
  /** The tree of the whole: collection deletes a cache whose tree it does not keep. '' when nothing was captured. */
  root: Id
}

export const emptyCache = (rootKey = ''): StatCache => ({ dirs: new Map(), rootKey, root: '' })

export function saveStatCache(file: string, cache: StatCache): void {
  let size = 1 << 16
  for (const [path, dir] of cache.dirs) size += dir.records.length + path.length + DIR_OVERHEAD_BYTES
  const out = new ByteWriter(size)
  out.raw(MAGIC)
  out.u32(VERSION)
  out.varint(cache.rootKey.length)
  out.raw(cache.rootKey)
  out.varint(cache.root.length)
  out.raw(cache.root)
  out.varint(cache.dirs.size)
  for (const [path, dir] of cache.dirs) {
    out.varint(path.length)
    out.raw(path)
    for (const key of [dir.rulesIn, dir.rulesOut]) {
      out.varint(key.length)
      out.raw(key)
    }
    out.raw(dir.tree)
    out.u8(dir.noteworthy)
    out.varint(dir.childDirs.length)
    for (const name of dir.childDirs) {
      out.varint(name.length)
      out.raw(name)
    }
    out.u8(dir.overridden ? 1 : 0)
    for (const count of [dir.unknown, dir.skipped, dir.files, dir.bytes, dir.records.length]) out.varint(count)
    out.bytes(dir.records)
  }
  const body = out.finish()
  // Not fsynced: after a power cut the checksum tells a torn cache, and the next capture reads everything once.
  const temporary = temporaryName(file)
  writeFileSync(temporary, body, { mode: 0o600 })
  appendFileSync(temporary, blake3(body) as Buffer)
  renameSync(temporary, file)
}

/** The cache in `file`, or an empty one when there is none that can be trusted. */
export function loadStatCache(file: string, rootKey: string): StatCache {
  try {
    const bytes = readFileSync(file)
    const body = bytes.subarray(0, bytes.length - CHECKSUM_BYTES)
    if (!(blake3(body) as Buffer).equals(bytes.subarray(body.length))) return emptyCache(rootKey)
    const cache = decode(body)
    return cache.rootKey === rootKey ? cache : emptyCache(rootKey)
  } catch {
    return emptyCache(rootKey)
  }
}

/** The root tree that the cache in `file` belongs to; '' when there is no cache that can be trusted. */
export function loadStatCacheRoot(file: string): Id {
  try {
    const input = new ByteReader(readFileSync(file), 'the stat cache')
    if (input.raw(MAGIC.length) !== MAGIC || input.u32() !== VERSION) return ''
    input.raw(input.varint())
    return input.raw(input.varint())
  } catch {
    return ''
  }
}

function decode(body: Buffer): StatCache {
  const input = new ByteReader(body, 'the stat cache')
  if (input.raw(MAGIC.length) !== MAGIC || input.u32() !== VERSION) return emptyCache()
  const text = () => input.raw(input.varint())
  const rootKey = text()
  const root = text()
  const dirs = new Map<Raw, CachedDir>()
  for (let rest = input.varint(); rest > 0; rest--) {
    const path = text()
    const rulesIn = text()
    const rulesOut = text()
    const tree = input.raw(ID_BYTES)
    const noteworthy = input.u8()
    const childDirs: Raw[] = []
    for (let children = input.varint(); children > 0; children--) childDirs.push(text())
    const overridden = input.u8() === 1
    const unknown = input.varint()
    const skipped = input.varint()
    const files = input.varint()
    const bytes = input.varint()
    const records = input.bytes(input.varint())
    dirs.set(path, {
      records,
      rulesIn,
      rulesOut,
      tree,
      childDirs,
      noteworthy,
      overridden,
      unknown,
      skipped,
      files,
      bytes,
    })
  }
  return { dirs, rootKey, root }
}
