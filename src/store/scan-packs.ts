/** Reads every pack from front to back and says which objects are intact. Of the index it needs the list of packs at most. */
import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Id } from '../model/entry.ts'
import { hashBytes, idFromHex } from '../model/id.ts'
import { decompressBlock } from './compress.ts'
import type { Location, PackRow } from './object-index.ts'
import {
  BLOCK_HEADER_BYTES,
  type BlockHeader,
  blockObjects,
  blockPayload,
  decodeBlockHeader,
  isIntactBlock,
  isPackHeader,
  OBJECT,
  PACK_HEADER_BYTES,
} from './pack-format.ts'
import { readFully } from './pack-reader.ts'
import { hashFile } from './read-windows.ts'
import type { Store } from './store.ts'

export interface PackScan {
  /** Intact objects and where they are. */
  objects: Map<Id, Location>
  /** Intact blocks, as "pack:offset". */
  places: Set<string>
  /** Packs by name with the end of what is committed; without a row, the end of the last intact block. */
  packs: Map<string, { id: number; bytes: number }>
  problems: string[]
  bytes: number
  /** Trees that were found complete; filled by whoever walks snapshots. */
  complete: Set<Id>
}

const SEARCH_STEP = 1

/** `committed`: the packs as the index has them; none when it cannot be trusted. */
export function scanPacks(
  store: Store,
  committed: readonly PackRow[],
  onProgress: (progress: { objects: number; bytes: number }) => void,
): PackScan {
  const scan: PackScan = {
    objects: new Map(),
    places: new Set(),
    packs: new Map(),
    problems: [],
    bytes: 0,
    complete: new Set(),
  }
  // Rows of objects in a pack of which nothing is committed: it is its own row that is wrong.
  const isTrue = ({ id, bytes }: PackRow) => bytes > 0 || !store.index.hasObjectsIn(id)
  const rows = new Map(committed.filter(isTrue).map(row => [row.name, row]))
  let nextId = Math.max(0, ...[...rows.values()].map(row => row.id)) + 1
  for (const name of namesIn(store.packDirectory).filter(file => file.endsWith('.pack'))) {
    const row = rows.get(name)
    const file = join(store.packDirectory, name)
    // What is not committed belongs to a writer that died: a tail, a whole pack, a file without a header. Not damage.
    if (row?.bytes === 0 || (!row && statSync(file).size < PACK_HEADER_BYTES)) continue
    scanPack(file, name, row?.id ?? nextId++, row?.bytes, scan)
    onProgress({ objects: scan.objects.size, bytes: scan.bytes })
  }
  for (const [name, row] of rows)
    if (row.bytes > 0 && !scan.packs.has(name)) scan.problems.push(`pack ${name} is missing`)
  scanClones(store, scan)
  return scan
}

function scanPack(file: string, name: string, id: number, committed: number | undefined, scan: PackScan): void {
  const fd = openSync(file, 'r')
  try {
    const size = statSync(file).size
    const end = committed ?? size
    const start = Buffer.alloc(PACK_HEADER_BYTES)
    scan.packs.set(name, { id, bytes: committed === undefined ? PACK_HEADER_BYTES : Math.min(size, committed) })
    if (!readFully(fd, start, 0) || !isPackHeader(start)) scan.problems.push(`pack ${name} has a damaged header`)
    if (size < end) scan.problems.push(`pack ${name} is cut off: ${size} of ${end} bytes are there`)
    for (let at = PACK_HEADER_BYTES; at < Math.min(size, end); ) {
      const length = scanBlock(fd, name, id, at, size, scan)
      at = length > 0 ? at + length : nextBlock(fd, at + SEARCH_STEP, size)
    }
  } finally {
    closeSync(fd)
  }
}

/**
 * Returns the length of the block, or 0 when that is not known: of a damaged one the length may be what is wrong, and one that
 * was cut off is as long as ever while others have been appended since.
 */
function scanBlock(fd: number, name: string, pack: number, at: number, size: number, scan: PackScan): number {
  const start = Buffer.alloc(BLOCK_HEADER_BYTES)
  const header = readFully(fd, start, at) ? decodeBlockHeader(start) : undefined
  const block = header && at + header.totalBytes <= size ? Buffer.allocUnsafe(header.totalBytes) : undefined
  if (!header || !block || !readFully(fd, block, at)) {
    scan.problems.push(`pack ${name} is damaged at byte ${at}`)
    return 0
  }
  if (!isIntactBlock(block)) {
    scan.problems.push(`pack ${name} has a damaged block of ${header.count} objects at byte ${at}`)
    return 0
  }
  scan.bytes += header.totalBytes
  const raw = unpack(block, header)
  if (!raw) {
    scan.problems.push(`pack ${name} has a block that cannot be unpacked at byte ${at}`)
    return header.totalBytes
  }
  scan.places.add(`${pack}:${at}`)
  const known = scan.packs.get(name)!
  known.bytes = Math.max(known.bytes, at + header.totalBytes)
  let offset = 0
  for (const { id, kind, length } of blockObjects(block, header)) {
    const isRight = kind === OBJECT.recipe || hashBytes(raw.subarray(offset, offset + length)) === id
    if (isRight) scan.objects.set(id, { pack, block: at, offset, length, kind })
    else scan.problems.push(`pack ${name} has an object with wrong content at byte ${at}`)
    offset += length
  }
  return header.totalBytes
}

/** undefined when the bytes are what was written, but what was written is not a block of ours. */
function unpack(block: Buffer, header: BlockHeader): Buffer | undefined {
  try {
    return decompressBlock(blockPayload(block, header), header.codec, header.rawBytes)
  } catch {
    return undefined
  }
}

/** After damage: the next place that looks like a block. */
function nextBlock(fd: number, from: number, size: number): number {
  const window = Buffer.alloc(1024 * 1024)
  const magic = Buffer.from('BLK1')
  for (let at = from; at < size; at += window.length - magic.length) {
    const count = readSync(fd, window, 0, window.length, at)
    const found = window.subarray(0, count).indexOf(magic)
    if (found >= 0) return at + found
    if (count < window.length) break
  }
  return size
}

function scanClones(store: Store, scan: PackScan): void {
  const directory = join(store.directory, 'clones')
  for (const name of namesIn(directory).filter(file => /^[0-9a-f]{64}$/.test(file))) {
    const fd = openSync(join(directory, name), 'r')
    try {
      const { id, size } = hashFile(fd)
      if (id === idFromHex(name))
        scan.objects.set(idFromHex(name), { pack: 0, block: 0, offset: 0, length: size, kind: OBJECT.clone })
      else scan.problems.push(`clone ${name} was changed`)
      scan.bytes += size
    } finally {
      closeSync(fd)
    }
  }
}

/** Of a directory that is gone, everything is missing. */
const namesIn = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory) : [])
