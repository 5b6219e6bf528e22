/**
 * Frees what no tree needs any more, pack by pack: a pack is rewritten without its dead objects, the index moves over in
 * one transaction, then the old pack is deleted. Interrupted at any point it leaves at most an unreferenced file, which
 * the next sweep removes. The caller holds the store's lock exclusively, has checked the index (check-index.ts), and knows
 * everything that is alive.
 */
import { existsSync, readdirSync, rmSync, statSync, truncateSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isDamage, isNoRoom, SavepointError } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { idFromBytes, idFromHex, idToBytes } from '../model/id.ts'
import { BlockBuilder } from './block-builder.ts'
import { checkOrphan } from './check-index.ts'
import { failpoint } from './failpoint.ts'
import { noting } from './known-damage.ts'
import type { Location, PackRow } from './object-index.ts'
import {
  BLOCK_TARGET_BYTES,
  type BlockObject,
  blockObjects,
  decodeBlockHeader,
  OBJECT,
  PACK_HEADER_BYTES,
  TREE_BLOCK_BYTES,
} from './pack-format.ts'
import { PackWriter } from './pack-writer.ts'
import { wrongContent } from './recipe.ts'
import type { Store } from './store.ts'

/** A pack with a smaller share of dead bytes is left as it is: rewriting it would cost more than it frees. */
const WORTH_REWRITING = 0.25

export interface SweepResult {
  removedObjects: number
  freedBytes: number
}

export interface Swept extends SweepResult {
  /** Of each pack that was left as it is, because it is damaged. */
  damaged: SavepointError[]
}

/** `everything`: rewrites every pack that has a dead object, so that its bytes are really gone (purge). */
export function sweep(store: Store, alive: ReadonlySet<Id>, everything: boolean): Swept {
  const before = directoryBytes(store)
  removeOrphans(store, alive)
  let removedObjects = sweepClones(store, alive)
  let noRoom: unknown
  const damaged: SavepointError[] = []
  for (const pack of worthRewriting(store, alive, everything)) {
    const objects = objectsOf(store, pack.id)
    try {
      rewritePack(store, pack, objects, alive)
      removedObjects += objects.filter(object => !alive.has(object.id)).length
    } catch (error) {
      // A pack that fits nowhere, or is damaged, must not keep us from freeing others; a purge is only done when all of them are.
      if (everything || !(isNoRoom(error) || isDamage(error))) throw error
      if (isDamage(error)) damaged.push(error)
      else noRoom = error
    }
  }
  if (noRoom !== undefined || damaged.length > 0) removeOrphans(store, alive)
  store.refresh()
  const freedBytes = Math.max(0, before - directoryBytes(store))
  if (noRoom !== undefined && freedBytes === 0) throw noRoom
  return { removedObjects, freedBytes, damaged }
}

/** Those of which the least is copied come first: on a full disk they make the room that the others need. */
function worthRewriting(store: Store, alive: ReadonlySet<Id>, everything: boolean): PackRow[] {
  const found: { pack: PackRow; aliveBytes: number }[] = []
  for (const pack of store.index.packs()) {
    const objects = objectsOf(store, pack.id)
    const dead = objects.filter(object => !alive.has(object.id))
    if (dead.length === 0 && objects.length > 0 && !(everything && hasUnlisted(store, pack, objects))) continue
    const [deadBytes, bytes] = [totalLength(dead), totalLength(objects)]
    if (!everything && deadBytes / Math.max(1, bytes) < WORTH_REWRITING && objects.length > 0) continue
    found.push({ pack, aliveBytes: bytes - deadBytes })
  }
  return found.sort((a, b) => a.aliveBytes - b.aliveBytes).map(({ pack }) => pack)
}

const totalLength = (objects: readonly StoredObject[]): number =>
  objects.reduce((sum, object) => sum + object.length, 0)

/** Whether the pack holds objects that the index finds elsewhere: two writers stored the same content at once. */
function hasUnlisted(store: Store, pack: PackRow, objects: readonly StoredObject[]): boolean {
  const byBlock = Map.groupBy(objects, object => object.block)
  let count = 0
  for (let at = PACK_HEADER_BYTES; at < pack.bytes; ) {
    const header = notingIn(store, pack, byBlock.get(at) ?? [], () => store.packs.blockHeader(pack.id, at))
    count += header.count
    at += header.totalBytes
  }
  return count > objects.length
}

/** Whoever meets damage in a block with these objects leaves a note of it. */
function notingIn<T>(store: Store, pack: PackRow, inside: readonly StoredObject[], work: () => T): T {
  try {
    return noting(
      store,
      inside.map(({ id }) => id),
      work,
    )
  } catch (error) {
    throw isDamage(error) ? damagedPack(pack, error) : error
  }
}

const damagedPack = ({ name }: PackRow, cause: SavepointError): SavepointError =>
  new SavepointError('store.damaged', `Cannot free all that is not needed: pack ${name} is damaged`, {
    hint: 'It is left as it is; what other packs had is freed, and nothing that is needed was deleted. `savepoint verify` tells what is damaged; `savepoint verify --repair` mends what it can',
    data: { pack: name },
    cause,
  })

type StoredObject = Location & { id: Id }

function objectsOf(store: Store, pack: number): StoredObject[] {
  const rows = store.index.database
    .prepare('SELECT id, pack, block, offset, length, kind FROM objects WHERE pack = ?')
    .all(pack)
  return rows.map(row => ({ ...(row as unknown as Location), id: idFromBytes(row.id as Uint8Array) }))
}

function rewritePack(store: Store, pack: PackRow, objects: StoredObject[], alive: ReadonlySet<Id>): void {
  const blocks = new Set(objects.filter(object => alive.has(object.id)).map(object => object.block))
  const moved: [Id, Location][] = []
  const writer = blocks.size === 0 ? undefined : PackWriter.open(store.packDirectory, store.index, false)
  try {
    if (writer) {
      copyAlive(
        store,
        pack,
        [...blocks].sort((a, b) => a - b),
        objects,
        alive,
        writer,
        moved,
      )
      writer.sync()
    }
    failpoint('gc:copied')
    store.index.transaction(() => {
      const remove = store.index.database.prepare('DELETE FROM objects WHERE id = ? AND pack = ?')
      for (const object of objects) remove.run(idToBytes(object.id), pack.id)
      for (const [id, location] of moved) store.index.add(id, location)
      if (writer) store.index.setPackBytes(writer.pack, writer.bytes)
      store.index.database.prepare('DELETE FROM packs WHERE id = ?').run(pack.id)
    })
  } finally {
    writer?.close(store.index)
  }
  failpoint('gc:indexed')
  const file = join(store.packDirectory, pack.name)
  if (existsSync(file)) unlinkSync(file)
  failpoint('gc:removed')
}

/** Blocks that are wholly alive are copied as they are; of the others the living objects are packed anew. */
function copyAlive(
  store: Store,
  pack: PackRow,
  blocks: number[],
  objects: StoredObject[],
  alive: ReadonlySet<Id>,
  writer: PackWriter,
  moved: [Id, Location][],
): void {
  const contents = new BlockBuilder()
  const trees = new BlockBuilder(TREE_BLOCK_BYTES)
  const byBlock = Map.groupBy(objects, object => object.block)
  const append = (block: Buffer | undefined) => {
    if (!block) return
    const at = writer.append(block)
    let offset = 0
    for (const { id, kind, length } of blockObjects(block, decodeBlockHeader(block)!)) {
      moved.push([id, { pack: writer.pack, block: at, offset, length, kind }])
      offset += length
    }
  }
  for (const block of blocks) {
    const inside = byBlock.get(block)!
    notingIn(store, pack, inside, () => {
      const { bytes, header } = store.packs.packedBlock(pack.id, block)
      checkRows(blockObjects(bytes, header), inside, alive)
      if (inside.length === header.count && inside.every(object => alive.has(object.id))) return append(bytes)
      // Blocks of contents are closed when they are full, so a smaller one has trees; or it was the last, which are few.
      const builder = header.rawBytes < BLOCK_TARGET_BYTES ? trees : contents
      const raw = store.packs.block(pack.id, block)
      for (const object of inside) {
        if (alive.has(object.id))
          append(builder.add(object.id, object.kind, raw.subarray(object.offset, object.offset + object.length)))
      }
    })
  }
  for (const builder of [contents, trees]) append(builder.finish())
}

/** A row that points elsewhere would give an object the bytes of another, for good: the old pack is deleted. */
function checkRows(names: readonly BlockObject[], rows: readonly StoredObject[], alive: ReadonlySet<Id>): void {
  const places = new Set<string>()
  let at = 0
  for (const { id, length } of names) {
    places.add(`${id}${at}+${length}`)
    at += length
  }
  for (const { id, offset, length } of rows)
    if (alive.has(id) && !places.has(`${id}${offset}+${length}`)) throw wrongContent()
}

function sweepClones(store: Store, alive: ReadonlySet<Id>): number {
  let removed = 0
  const directory = join(store.directory, 'clones')
  for (const name of readdirSync(directory)) {
    const isClone = /^[0-9a-f]{64}$/.test(name)
    if (isClone && alive.has(idFromHex(name)) && store.index.find(idFromHex(name))?.kind === OBJECT.clone) continue
    if (isClone)
      store.index.database
        .prepare('DELETE FROM objects WHERE id = ? AND kind = ?')
        .run(Buffer.from(name, 'hex'), OBJECT.clone)
    rmSync(join(directory, name), { recursive: true })
    removed++
  }
  return removed
}

/** Files that no row names, and bytes behind what is committed: from writers or sweeps that died. None is at work now. */
function removeOrphans(store: Store, alive: ReadonlySet<Id>): void {
  store.index.database.prepare('DELETE FROM packs WHERE bytes = 0').run()
  const committed = new Map(store.index.packs().map(pack => [pack.name, pack.bytes]))
  for (const name of readdirSync(store.packDirectory)) {
    const file = join(store.packDirectory, name)
    const bytes = committed.get(name)
    if (bytes !== undefined && statSync(file).size <= bytes) continue
    checkOrphan(store, name, bytes ?? 0, alive)
    if (bytes === undefined) unlinkSync(file)
    else truncateSync(file, bytes)
  }
}

function directoryBytes(store: Store): number {
  return readdirSync(store.packDirectory).reduce((sum, name) => sum + statSync(join(store.packDirectory, name)).size, 0)
}
