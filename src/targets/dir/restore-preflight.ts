/** Before a restore writes anything: can the store produce every byte, and does the disk have room? */
import { closeSync, constants, fstatSync, openSync, type PathLike, statSync } from 'node:fs'
import { errnoOf, SavepointError } from '../../errors/errors.ts'
import { descend } from '../../model/deep-walk.ts'
import type { Entry, Id } from '../../model/entry.ts'
import { formatBytes } from '../../model/format.ts'
import { type Raw, showPath } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { noteDamage } from '../../store/known-damage.ts'
import { hashFile } from '../../store/read-windows.ts'
import type { Store } from '../../store/store.ts'
import { childrenOf } from '../../store/tree-lookup.ts'
import { WHOLE_FILE_BYTES } from './ingest-read.ts'
import type { PlanAction } from './restore-plan.ts'

const LISTED = 5
const LISTED_DELETIONS = 3
/** For directories, and, where the store is on the same disk, for the record of it. A restore that runs out is reversed. */
const SPARE_BYTES = 256 * 1024

/** What else takes room on a filesystem that keeps snapshots, and what helps: a sentence, without its end. */
export type WhatHolds = () => string

export interface Needs {
  files: number
  bytes: number
}

/**
 * Throws `store.damaged` with the paths that cannot be produced, or `disk.full`, unless `freed` bytes more are enough.
 * Reads and checks every needed block.
 */
export function preflight(
  store: Store,
  root: number,
  actions: readonly PlanAction[],
  { freed = 0, whatHolds }: { freed?: number; whatHolds?: WhatHolds | undefined } = {},
): Needs {
  const needs: Needs = { files: 0, bytes: 0 }
  const damaged: { path: Raw; error: Error }[] = []
  const lost = new Set<Id>()
  const checked = new Map<string, Error | undefined>()
  const { dev } = fstatSync(root)
  let room = 0
  for (const action of actions) {
    if (action.action !== 'create' && action.action !== 'replace') continue
    for (const { path, entry } of filesOf(store, action.path, action.entry, damaged)) {
      needs.files++
      needs.bytes += entry.size
      room += roomFor(store, dev, entry)
      const error = checkContent(store, entry.content, checked)
      if (!error) continue
      damaged.push({ path, error })
      if (!errnoOf(error)) lost.add(entry.content)
    }
  }
  noteDamage(store, lost)
  if (damaged.length > 0) throw cannotProduce(damaged)
  // What only takes away must not fail for want of room.
  const makes = actions.some(({ action }) => action === 'create' || action === 'replace')
  if (makes && !hasRoom(root, room - freed)) throw noRoom(root, room, deletionsOf(store, root, actions), whatHolds)
  return needs
}

export const hasRoom = (root: number, bytes: number): boolean => addon.statfs(root).free >= bytes + SPARE_BYTES

/** What the files that a plan makes take at most. What the store has lost counts nothing. */
export function neededBytes(store: Store, root: number, actions: readonly PlanAction[]): number {
  const { dev } = fstatSync(root)
  let bytes = 0
  for (const action of actions) {
    if (action.action !== 'create' && action.action !== 'replace') continue
    for (const { entry } of filesOf(store, action.path, action.entry, [])) bytes += roomFor(store, dev, entry)
  }
  return bytes
}

/** Nothing for what is cloned from the store, on the same filesystem, and for holes. Small files are neither. */
function roomFor(store: Store, dev: number, { size, content }: Entry): number {
  if (size < WHOLE_FILE_BYTES) return size
  try {
    const source = store.contentSource(content)
    if (source.kind === 'clone') return statSync(source.file).dev === dev ? 0 : size
    if (source.kind === 'object') return size
    return source.items.reduce((rest, item) => ('hole' in item ? rest - item.hole : rest), size)
  } catch {
    return size
  }
}

export interface Deletion {
  path: Raw
  /** What becomes free for sure: nothing of what has other names, holes, or lies in a snapshot of the filesystem, too. */
  bytes: number
}

/** What a plan deletes, the largest first. */
export function deletionsOf(store: Store, root: number, actions: readonly PlanAction[]): Deletion[] {
  const deletions = actions.flatMap((action): Deletion[] => {
    if (action.action !== 'delete') return []
    let bytes = 0
    for (const { path, entry } of filesOf(store, action.path, action.live, []))
      if (entry.linkGroup === 0n && !entry.sparse && hasOwnBlocks(root, path)) bytes += entry.size
    return [{ path: action.path, bytes }]
  })
  return deletions.sort((a, b) => b.bytes - a.bytes)
}

/** ZFS, and what may be it: they do not tell. */
const MAY_SHARE_UNSEEN = new Set([0x2fc12fc1, 0x65735546])
const BTRFS = 0x9123683e

function hasOwnBlocks(root: number, path: Raw): boolean {
  if (MAY_SHARE_UNSEEN.has(addon.statfs(root).type)) return false
  let fd: number
  try {
    fd = addon.openAt(root, path, constants.O_RDONLY | constants.O_NONBLOCK, 0)
  } catch {
    return false
  }
  try {
    return addon.sharesBlocks(fd) === 0
  } catch {
    // Filesystems that cannot share have nothing to tell.
    return true
  } finally {
    addon.close(fd)
  }
}

export function noRoom(root: number, bytes: number, deletions: Deletion[], whatHolds?: WhatHolds): SavepointError {
  const { free, type } = addon.statfs(root)
  const largest = deletions
    .slice(0, LISTED_DELETIONS)
    .filter(deletion => deletion.bytes > 0)
    .map(deletion => `${showPath(deletion.path)} (${formatBytes(deletion.bytes)})`)
  const goes = largest.length === 0 ? '' : `. It would delete ${largest.join(', ')} anyway`
  const held = whatHolds && (type === BTRFS || MAY_SHARE_UNSEEN.has(type)) ? `. ${whatHolds()}` : ''
  return new SavepointError('disk.full', `Cannot restore ${whyNoRoom(bytes, free)}`, {
    hint: `Free some space and try again; nothing was changed${goes}${held}`,
  })
}

/** A filesystem that has no room for one more directory (btrfs) may well say that some is free. */
function whyNoRoom(bytes: number, free: number): string {
  if (bytes > free) return `${formatBytes(bytes)}: the disk has ${formatBytes(free)} left`
  const left = formatBytes(free)
  return free < bytes + SPARE_BYTES
    ? `anything: the disk has ${left} left, too little for directories and records`
    : `anything: the disk takes nothing new, although it says that ${left} are left`
}

/** The regular files of an entry, those below a directory included. */
function* filesOf(
  store: Store,
  path: Raw,
  entry: Entry,
  damaged: { path: Raw; error: Error }[],
): Generator<{ path: Raw; entry: Entry }> {
  const all = descend([{ path, entry }], dir => {
    if (dir.entry.kind !== 'dir') return undefined
    const error = attempt(() => store.tree(dir.entry.content))
    if (error) damaged.push({ path: dir.path, error })
    return error ? undefined : childrenOf(store, dir.path, dir.entry.content)
  })
  for (const found of all) if (found.entry.kind === 'file') yield found
}

function checkContent(store: Store, id: Id, checked: Map<string, Error | undefined>): Error | undefined {
  try {
    const source = store.contentSource(id)
    if (source.kind === 'clone') return checkClone(source.file, id)
    const locations =
      source.kind === 'object'
        ? [source.location]
        : source.items.flatMap(item => ('chunk' in item ? [store.locate(item.chunk)] : []))
    for (const { pack, block } of locations) {
      const key = `${pack}:${block}`
      if (!checked.has(key))
        checked.set(
          key,
          attempt(() => store.packs.packedBlock(pack, block)),
        )
      const error = checked.get(key)
      if (error) return error
    }
    return undefined
  } catch (error) {
    return error as Error
  }
}

function attempt(work: () => unknown): Error | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error as Error
  }
}

function checkClone(file: PathLike, id: Id): Error | undefined {
  const fd = openSync(file, 'r')
  try {
    return hashFile(fd).id === id ? undefined : new Error('a cloned file in the store was changed')
  } finally {
    closeSync(fd)
  }
}

function cannotProduce(damaged: { path: Raw; error: Error }[]): SavepointError {
  const paths = damaged.slice(0, LISTED).map(({ path }) => showPath(path))
  const more = damaged.length > LISTED ? ` and ${damaged.length - LISTED} more` : ''
  return new SavepointError(
    'store.damaged',
    `Cannot restore: the store has lost the content of ${paths.join(', ')}${more} (${damaged[0]!.error.message})`,
    {
      hint: 'Nothing was changed. `savepoint verify` shows what is affected; `savepoint rollback SNAP -- PATH` restores what is intact',
      data: { paths: damaged.map(({ path }) => showPath(path)) },
    },
  )
}
