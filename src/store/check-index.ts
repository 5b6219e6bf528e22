/**
 * What a collection must know before it deletes anything: whether the index finds all that the packs hold. A row that is
 * wrong or missing would make it take a living object, or the chunks of a recipe that it did not find, for dead, and what
 * `verify --repair` could have found again would be gone with its pack.
 */
import { closeSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { hashBytes } from '../model/id.ts'
import { knownDamage } from './known-damage.ts'
import type { Location, PackRow } from './object-index.ts'
import {
  BLOCK_HEADER_BYTES,
  type BlockObject,
  blockObjects,
  decodeBlockHeader,
  NAME_BYTES,
  OBJECT,
  PACK_HEADER_BYTES,
} from './pack-format.ts'
import { readFully } from './pack-reader.ts'
import type { Store } from './store.ts'

interface NamedBlock {
  at: number
  end: number
  objects: BlockObject[]
}

/** Throws `store.damaged` when the index is not true. What cannot be read any more is not its fault, and passed over. */
export function checkIndex(store: Store): void {
  const outside = store.index.database
    .prepare(
      `SELECT 1 FROM objects LEFT JOIN packs ON packs.id = objects.pack
       WHERE kind <> ${OBJECT.clone} AND (packs.id IS NULL OR block >= packs.bytes) LIMIT 1`,
    )
    .get()
  if (outside) throw wrongIndex()
  const damaged = knownDamage(store.index)
  for (const pack of store.index.packs()) checkPack(store, pack, damaged)
}

/** The same for bytes that no row speaks of, before they are deleted: nothing that is alive may be found only there. */
export function checkOrphan(store: Store, name: string, from: number, alive: ReadonlySet<Id>): void {
  for (const { objects } of namedBlocks(join(store.packDirectory, name), from, Number.POSITIVE_INFINITY, []))
    if (objects.some(({ id }) => alive.has(id) && !store.index.find(id))) throw wrongIndex()
}

function checkPack(store: Store, pack: PackRow, damaged: ReadonlySet<Id>): void {
  const rows = store.index.database
    .prepare('SELECT id, pack, block, offset, length, kind FROM objects WHERE pack = ?')
    .all(pack.id) as unknown as (Location & { id: Uint8Array })[]
  const places = new Set(rows.map(({ id, ...row }) => placeOf(Buffer.from(id).toString('latin1'), row)))
  const known = [...new Set(rows.map(row => row.block))].sort((a, b) => a - b)
  for (const { at, end, objects } of namedBlocks(join(store.packDirectory, pack.name), 0, pack.bytes, known)) {
    if (end > pack.bytes) throw wrongIndex()
    let offset = 0
    for (const { id, kind, length } of objects) {
      const here = { pack: pack.id, block: at, offset, length, kind }
      if (!places.has(placeOf(id, here)) && !isElsewhere(store, id, damaged) && isThere(store, id, here))
        throw wrongIndex()
      offset += length
    }
  }
}

const placeOf = (id: Id, { block, offset, length, kind }: Omit<Location, 'pack'>): string =>
  `${id}${block} ${offset} ${length} ${kind}`

/** Two writers may have stored the same content at once: the index has one of the places, which must not be the damaged one. */
function isElsewhere(store: Store, id: Id, damaged: ReadonlySet<Id>): boolean {
  const row = store.index.find(id)
  if (!row || damaged.has(id)) return false
  if (row.kind === OBJECT.clone) return statSync(store.cloneFile(id), { throwIfNoEntry: false }) !== undefined
  const pack = store.index.pack(row.pack)!
  const [block] = namedBlocks(join(store.packDirectory, pack.name), row.block, row.block + 1, [])
  let offset = 0
  for (const { id: name, kind, length } of block?.objects ?? []) {
    if (placeOf(name, { block: block!.at, offset, length, kind }) === placeOf(id, row)) return true
    offset += length
  }
  return false
}

/** Whether it can really be read there: a repair leaves what is damaged out of the index. */
function isThere(store: Store, id: Id, here: Location): boolean {
  try {
    const bytes = store.readAt(here)
    return here.kind === OBJECT.recipe || hashBytes(bytes) === id
  } catch {
    return false
  }
}

/** The blocks that begin between `from` and `to`, without their content. Behind a damaged one it goes on at the next `known` place. */
function* namedBlocks(file: string, from: number, to: number, known: readonly number[]): Generator<NamedBlock> {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size === 0) return
  const fd = openSync(file, 'r')
  try {
    let at = Math.max(from, PACK_HEADER_BYTES)
    while (at < Math.min(size, to)) {
      const block = namesAt(fd, at)
      if (block) yield block
      const next = block?.end ?? known.find(place => place > at)
      if (next === undefined) return
      at = next
    }
  } finally {
    closeSync(fd)
  }
}

function namesAt(fd: number, at: number): NamedBlock | undefined {
  const start = Buffer.allocUnsafe(BLOCK_HEADER_BYTES)
  const header = readFully(fd, start, at) ? decodeBlockHeader(start) : undefined
  if (!header) return undefined
  const names = Buffer.allocUnsafe(BLOCK_HEADER_BYTES + header.count * NAME_BYTES)
  return readFully(fd, names, at)
    ? { at, end: at + header.totalBytes, objects: blockObjects(names, header) }
    : undefined
}

const wrongIndex = (): SavepointError =>
  new SavepointError('store.damaged', 'Cannot trust the index of the store: the packs hold what it does not find', {
    hint: 'No content was deleted. Run `savepoint verify --repair`: it makes the index anew from the packs',
  })
