/**
 * Which objects are known to be damaged: noted in the index by whoever meets one, so that nobody takes it for whole who only
 * looks at what is there. A note is about the place that an object had: once it lies elsewhere the note is void, and one
 * that was wrong costs no more than storing it again. `verify`, which sees everything, makes all notes anew.
 */
import { closeSync, existsSync, openSync } from 'node:fs'
import { isDamage, isUnwritable } from '../errors/errors.ts'
import type { Id } from '../model/entry.ts'
import { hashBytes, idFromBytes, idToBytes } from '../model/id.ts'
import type { Location, ObjectIndex } from './object-index.ts'
import { OBJECT } from './pack-format.ts'
import { hashFile } from './read-windows.ts'
import type { Store } from './store.ts'

/** Of a home that cannot be written, none: nothing is stored or destroyed there. */
export function knownDamage({ database, unwritable }: ObjectIndex): ReadonlySet<Id> {
  if (unwritable) return new Set()
  // CROSS: the few notes are gone through, and not all objects.
  const rows = database.prepare('SELECT damaged.id FROM damaged CROSS JOIN objects USING (id, pack, block)').all()
  return new Set(rows.map(row => idFromBytes(row.id as Uint8Array)))
}

/** After everything was looked at: these, and no others. */
export const renewKnownDamage = (index: ObjectIndex, ids: Iterable<Id>): void =>
  ifWritable(index, () =>
    index.transaction(() => {
      index.database.exec('DELETE FROM damaged')
      addNotes(index, ids)
    }),
  )

/** A clone has the same place again: only who has made it anew can tell. */
export function forgetDamage({ database }: ObjectIndex, id: Id): void {
  database.prepare('DELETE FROM damaged WHERE id = ?').run(idToBytes(id))
}

/**
 * When contents, or trees, could not be given back. Notes what of them is damaged, and all that lies in the same blocks. Many are
 * best told at once: each block is read once, and the index, which is not sorted by blocks, gone through once.
 */
export function noteDamage(store: Store, ids: Iterable<Id>): void {
  const { index } = store
  ifWritable(index, () => {
    const found = findDamage(store, ids)
    if (found.ids.size > 0 || found.blocks.length > 0)
      index.transaction(() => {
        addNotes(index, found.ids)
        addBlockNotes(index, found.blocks)
      })
  })
}

/** Whoever meets damage in `work` leaves a note of it. */
export function noting<T>(store: Store, ids: Iterable<Id>, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (isDamage(error)) noteDamage(store, ids)
    throw error
  }
}

/** Whether the file is there, with the content that its name says. */
export function isSoundClone(store: Store, id: Id): boolean {
  const file = store.cloneFile(id)
  if (!existsSync(file)) return false
  const fd = openSync(file, 'r')
  try {
    return hashFile(fd).id === id
  } finally {
    closeSync(fd)
  }
}

function addNotes({ database }: ObjectIndex, ids: Iterable<Id>): void {
  const note = database.prepare('INSERT OR REPLACE INTO damaged SELECT id, pack, block FROM objects WHERE id = ?')
  for (const id of ids) note.run(idToBytes(id))
}

type Place = Pick<Location, 'pack' | 'block'>

/** Of parts that are not noted yet, where they lie now. */
function findDamage(store: Store, ids: Iterable<Id>): { ids: Set<Id>; blocks: Place[] } {
  const found = new Set<Id>()
  const damaged = new Map<string, Place | undefined>()
  const noted = store.index.database.prepare('SELECT 1 FROM damaged JOIN objects USING (id, pack, block) WHERE id = ?')
  for (const id of ids)
    for (const part of [id, ...chunksOf(store, id)]) {
      const location = store.index.find(part)
      if (!location || noted.get(idToBytes(part))) continue
      const { pack, block, kind } = location
      const key = `${pack}:${block}`
      if (kind !== OBJECT.clone && !damaged.has(key))
        damaged.set(key, store.packs.isIntact(pack, block) ? undefined : { pack, block })
      if (!damaged.get(key) && !isSound(store, part, location)) found.add(part)
    }
  return { ids: found, blocks: [...damaged.values()].filter(place => place !== undefined) }
}

function addBlockNotes({ database }: ObjectIndex, blocks: readonly Place[]): void {
  if (blocks.length === 0) return
  database
    .prepare(
      `INSERT OR REPLACE INTO damaged SELECT id, pack, block FROM objects WHERE kind <> ${OBJECT.clone} AND (pack, block) IN
       (SELECT value ->> 'pack', value ->> 'block' FROM json_each(?))`,
    )
    .run(JSON.stringify(blocks))
}

function chunksOf(store: Store, id: Id): Id[] {
  if (store.index.find(id)?.kind !== OBJECT.recipe) return []
  try {
    const source = store.contentSource(id)
    return source.kind === 'recipe' ? source.items.flatMap(item => ('chunk' in item ? [item.chunk] : [])) : []
  } catch (error) {
    if (isDamage(error)) return []
    throw error
  }
}

/** Of an object whose block, if it lies in one, is intact. */
function isSound(store: Store, id: Id, location: Location): boolean {
  if (location.kind === OBJECT.clone) return isSoundClone(store, id)
  try {
    return location.kind === OBJECT.recipe || hashBytes(store.readAt(location)) === id
  } catch (error) {
    if (isDamage(error)) return false
    throw error
  }
}

/** What is told besides must not be hidden by a disk that has no room for the note. */
function ifWritable(index: ObjectIndex, work: () => void): void {
  if (index.unwritable) return
  try {
    work()
  } catch (error) {
    if (!isUnwritable(error)) throw error
  }
}
