/**
 * btrfs: read-only snapshots of the subvolume that the target is. They are kept in a directory outside of the target on the
 * same filesystem, and found there by their names. Making and deleting needs no privilege where the user owns the subvolume
 * and it is mounted with `user_subvol_rm_allowed`; the list of differences does (`btrfs send`).
 */
import { chmodSync, closeSync, constants, lstatSync, openSync, rmdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { errnoOf, errnoWords, SavepointError } from '../errors/errors.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { addon } from '../native/addon.ts'
import type { NativeBackend, NativeState, Probe } from './native-backend.ts'
import {
  filesystemType,
  firstPlace,
  isPlaceAway,
  isThere,
  leftProbes,
  makePlace,
  nearest,
  no,
  OUTSIDE,
  removeIfEmpty,
  statesBelow,
  tidyIfPossible,
  whyNoText,
  whyNotMade,
} from './place.ts'
import { newProbeName } from './probe-name.ts'
import { type Finished, failed, fixFor, lendingRights, runProgram } from './run-program.ts'
import { differingIn } from './send-stream.ts'

const BTRFS_MAGIC = 0x9123683e
/** The inode of every subvolume's root. */
const SUBVOLUME_INO = 256
/** A list of differences that is longer is not worth reading: looking at everything costs no more. */
const MAX_STREAM_BYTES = 16 * 1024 * 1024
const ID_DIGITS = 32
/** What one takes of its own is counted by a look at every file: of a large one nobody waits for that. */
const USAGE_MS = 1000

const pathOf = ({ place, name }: NativeState): string => join(place, name)

export const btrfs: NativeBackend = {
  name: 'btrfs',
  wholeRollback: undefined,

  probe(target, { directories }) {
    const path = target.toString()
    const problem = whyNoText(target)
    if (problem) return problem
    if (!isSubvolume(path)) return no(whyNoSubvolume(path), `To make one of it: see docs/backends.md`)
    return firstPlace(path, directories, tryPlace)
  },

  placesFor: (target, { directories }) => (whyNoText(target) ? [] : [...directories]),

  statesIn: place =>
    statesBelow(place)
      .filter(({ path }) => isSubvolume(path))
      .map(({ name, path }) => ({ name, byHand: `btrfs subvolume delete ${quoteWord(path)}` })),

  tidy(place) {
    for (const probe of leftProbes(place)) {
      if (isSubvolume(probe)) deleteSubvolume(probe)
      removeIfEmpty(dirname(probe))
    }
  },

  capture(target, state) {
    makePlace(state.place, 'take a btrfs snapshot')
    const why = whyNotSnapshot(target.toString(), state)
    if (why !== undefined) throw failed('take a btrfs snapshot', why)
    return identify(pathOf(state))?.id
  },

  open(state) {
    if (isGone(state)) return undefined
    return { path: Buffer.from(pathOf(state)), mark: state.mark, isChanged: () => isChangedOnDisk(state), close() {} }
  },

  directoryOf: pathOf,

  isAway: (_, state) => isPlaceAway(state),

  differing(before, after) {
    // What was read of it is not what it holds now.
    if ([before, after].some(state => isAnother(state) || isChanged(state))) return undefined
    const stream = withOpened([pathOf(before), pathOf(after)], ([from, to]) =>
      addon.btrfsDifferences(from!, to!, MAX_STREAM_BYTES),
    )
    return Buffer.isBuffer(stream) ? differingIn(stream) : undefined
  },

  remove(state) {
    if (isGone(state)) return 'absent'
    deleteSubvolume(pathOf(state))
    removeIfEmpty(state.place)
    return 'removed'
  },

  find: state => (isGone(state) ? undefined : state),

  whereOf: pathOf,

  usageBytes(state) {
    const { works, stdout } = runProgram(
      'btrfs',
      ['filesystem', 'du', '-s', '--raw', '--', pathOf(state)],
      true,
      USAGE_MS,
    )
    const columns = works ? stdout.toString().trim().split('\n').at(-1)!.trim().split(/\s+/) : []
    return columns[1] !== undefined && /^\d+$/.test(columns[1]) ? Number(columns[1]) : undefined
  },
}

interface Identity {
  id: string
  /** As which it was sent to where it is now. */
  receivedAs: string
  isChanged: boolean
  isWritable: boolean
}

/** undefined: the system does not tell. */
function identify(path: string): Identity | undefined {
  const told = withOpened([path], ([subvolume]) => addon.subvolumeIdentity(subvolume!))
  if (!Buffer.isBuffer(told)) return undefined
  const hex = told.toString('hex')
  const [id, receivedAs] = [hex.slice(0, ID_DIGITS), hex.slice(ID_DIGITS, 2 * ID_DIGITS)]
  return { id, receivedAs, isChanged: told.at(-2) === 1, isWritable: told.at(-1) === 1 }
}

/** Somebody has put it in the place of the one that was kept; what was sent away and received here again is the same. */
function isAnother(state: NativeState): boolean {
  const found = state.mark === undefined ? undefined : identify(pathOf(state))
  return found !== undefined && found.id !== state.mark && found.receivedAs !== state.mark
}

/**
 * Its owner can make it writable: while it is, it may change under our eyes. One that was received was written, of course; the
 * system says if that went on.
 */
function isChanged(state: NativeState): boolean {
  const found = identify(pathOf(state))
  if (found?.isWritable) return true
  return found?.isChanged === true && (found.receivedAs !== state.mark || state.mark === undefined)
}

/** What was written in it shows only once that is on the disk, and so does it in the list of differences. */
function isChangedOnDisk(state: NativeState): boolean {
  withOpened([pathOf(state)], ([subvolume]) => addon.syncfs(subvolume!))
  return isChanged(state)
}

/**
 * Removed by somebody, when its directory is there without it. Where that is missing, too, nobody knows: its filesystem may
 * not be mounted, and what is below the mount point may be on btrfs as well.
 */
function isGone(state: NativeState): boolean {
  if (isSubvolume(pathOf(state))) return isAnother(state)
  // A copy of the filesystem has plain directories instead, and a snapshot of the directory around it empty ones.
  if (isThere(pathOf(state), typeOf))
    throw new SavepointError(
      'backend.failed',
      `Cannot find ${state.name}: ${pathOf(state)} is no subvolume (mount what it was in, or put that back; if it is gone for good, copy what you want of this directory, and remove it)`,
    )
  if (isThere(state.place)) return true
  throw new SavepointError(
    'backend.failed',
    `Cannot find ${state.name}: ${state.place} is not there (mount its filesystem; if that is gone for good, make an empty directory of this name)`,
  )
}

function isSubvolume(path: string): boolean {
  try {
    const stat = lstatSync(path)
    return stat.isDirectory() && stat.ino === SUBVOLUME_INO && typeOf(path) === BTRFS_MAGIC
  } catch {
    return false
  }
}

const typeOf = (path: string): number => filesystemType(Buffer.from(path))

/** Not by the `btrfs` command, whose start would take longer than the snapshot. undefined: it is there. */
function whyNotSnapshot(target: string, { place, name }: NativeState): string | undefined {
  const error = withOpened([target, place], ([from, into]) => addon.snapshotSubvolume(from!, into!, Buffer.from(name)))
  if (error === undefined) return undefined
  const known: Record<string, string> = {
    ENOSPC: 'no space left on the device',
    ETXTBSY: 'a swap file in it is in use (swapoff)',
  }
  return known[errnoOf(error) ?? ''] ?? errnoWords(error)
}

/** With directories opened for a call of the system. What that gives, or its error; throws what is none of the system's. */
function withOpened<T>(paths: readonly string[], call: (opened: readonly number[]) => T): T | Error {
  const opened: number[] = []
  try {
    for (const path of paths) opened.push(openSync(path, constants.O_RDONLY | constants.O_DIRECTORY))
    return call(opened)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return error as Error
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}

/** To change what is kept. */
const runBtrfs = (args: readonly string[]): Finished => lendingRights(() => runProgram('btrfs', args))

/** Without privilege, one that is read-only, or closed by its mode, cannot be deleted; but its owner can make it writable. */
function deleteSubvolume(path: string): void {
  if (runBtrfs(['subvolume', 'delete', '--', path]).works) return
  runBtrfs(['property', 'set', '-ts', path, 'ro', 'false'])
  openToOwner(path)
  const { works, why } = runBtrfs(['subvolume', 'delete', '--', path])
  if (works) return
  const isForbidden = process.geteuid?.() !== 0 && /EPERM|not permitted/.test(why)
  throw failed('delete a btrfs snapshot', isForbidden ? `this user may not. ${RM_ALLOWED}` : why)
}

function openToOwner(path: string): void {
  try {
    chmodSync(path, 0o700)
  } catch (error) {
    // Then the reason is told by who cannot delete it.
    if (!errnoOf(error)) throw error
  }
}

function whyNoSubvolume(path: string): string {
  try {
    return typeOf(path) === BTRFS_MAGIC
      ? 'the target lies in a subvolume, but is none itself: all of that would be in each snapshot'
      : 'the target is not on btrfs'
  } catch (error) {
    return (error as Error).message
  }
}

/** First whether an empty one can be deleted, which can be tidied up in any case; then one of the target. */
function tryPlace(target: string, place: string): Probe {
  // Where it cannot be, nothing is made.
  if (typeOf(nearest(place)) !== BTRFS_MAGIC) return no(`${place} is not on btrfs`, OUTSIDE)
  const problem = whyNotMade(place)
  if (problem !== undefined) {
    removeIfEmpty(place)
    return no(problem, fixFor(problem) ?? OUTSIDE)
  }
  tidyIfPossible(() => btrfs.tidy(place))
  const probe = join(place, `.${newProbeName()}`)
  try {
    const made = runBtrfs(['subvolume', 'create', '--', probe])
    if (!made.works)
      return no(`${place}: ${made.why}`, made.why.includes('not installed') ? INSTALL : (fixFor(made.why) ?? OUTSIDE))
    const deleted = runBtrfs(['subvolume', 'delete', '--', probe])
    if (!deleted.works) {
      rmdirSync(probe)
      return no(`this user may not delete snapshots (${deleted.why})`, RM_ALLOWED)
    }
    const why = whyNotSnapshot(target, { place, name: basename(probe) })
    if (why !== undefined) return no(`a snapshot into ${place} failed: ${why}`, whyNotTaken(target, why))
    deleteSubvolume(probe)
    return { works: true, place }
  } catch (error) {
    return no((error as Error).message, (error as SavepointError).hint ?? RM_ALLOWED)
  } finally {
    removeIfEmpty(place)
  }
}

const INSTALL = 'apt-get install btrfs-progs'
const RM_ALLOWED = 'Mount it with user_subvol_rm_allowed (mount -o remount,user_subvol_rm_allowed), or be root'

function whyNotTaken(target: string, why: string): string {
  if (/cross-device/i.test(why)) return OUTSIDE
  const fix = fixFor(why)
  if (fix !== undefined) return fix
  const isOwner = statSync(target).uid === process.geteuid?.()
  return isOwner ? 'See what the filesystem says (btrfs, dmesg)' : 'Only its owner, or root, can snapshot a subvolume'
}
