/** A directory as a target: where it is, which one it is, and the descriptor that everything works beneath. */
import {
  chownSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { datasetAt } from '../../backends/mounts-below.ts'
import { guidOf } from '../../backends/zfs-locate.ts'
import { errnoOf, isDiskGone, SavepointError, wordsOf } from '../../errors/errors.ts'
import { rawFromBytes, rawToText, showPath } from '../../model/raw-path.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import { addon, type Stat } from '../../native/addon.ts'

/** Tells a directory from another one that took its place. Device numbers may change when a disk is mounted again. */
export interface DirIdentity {
  ino: string
  btimeNs: string
  /** The id of the btrfs subvolume that it is (in), when it was recorded: a snapshot of that has all else in common with it. */
  subvolume?: string | undefined
  /** The guid of the ZFS dataset that it is on: zfs-fuse gives the roots of all the same inode, and no time of birth. */
  dataset?: string | undefined
}

/** Of every subvolume's root. */
const SUBVOLUME_INO = '256'
const OWNER_LOOKS = 0o500
const OVERLAYFS = 0x794c7630
const SUBVOLUME_ID_BYTES = 16

export const identityOf = (stat: Stat): DirIdentity => ({ ino: String(stat.ino), btimeNs: String(stat.btimeNs) })
export const sameIdentity = (a: DirIdentity, b: DirIdentity): boolean => a.ino === b.ino && a.btimeNs === b.btimeNs

/**
 * Opens a directory by its absolute path without symlinks. When a link has taken the place of it, or of one above it, what
 * lies behind the link is somebody else's, and the directory counts as missing.
 */
export function openDir(path: Buffer): number {
  const fd = addon.openRoot(path)
  const isReal = realPathOf(fd)?.equals(path) ?? true
  if (isReal) return fd
  addon.close(fd)
  throw Object.assign(new Error('ENOTDIR: a symlink has taken its place'), { code: 'ENOTDIR' })
}

/** undefined where /proc is not mounted. */
export function realPathOf(fd: number): Buffer | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`, 'buffer') as unknown as Buffer
  } catch {
    return undefined
  }
}

export interface FollowedDir {
  /** Where it is; undefined when it is gone. */
  place(): Buffer | undefined
  isGone(): boolean
  close(): void
}

/** Keeps an eye on the directory that is there now. */
export function followDir(path: Buffer): FollowedDir {
  const fd = statDir(path) ? openDir(path) : undefined
  return {
    isGone: () => fd !== undefined && /(?: \(|\/\/)deleted\)?$/.test(realPathOf(fd)?.toString('latin1') ?? ''),
    place: () => {
      const place = fd === undefined ? undefined : realPathOf(fd)
      return place && existsSync(place) && isShownAt(place, fd!) ? place : undefined
    },
    close: () => {
      if (fd !== undefined) addon.close(fd)
    },
  }
}

/** In a mount that was taken away lazily, a path starts at its root: `/` may have the same inode number, on another device. */
function isShownAt(place: Buffer, fd: number): boolean {
  const [there, here] = [statSync(place), fstatSync(fd)]
  return there.ino === here.ino && there.dev === here.dev
}

/** What is at the path when it is no directory: a word for people; undefined when there is nothing. */
export function obstacleAt(path: Buffer): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat || stat.isDirectory()) return undefined
  return stat.isSymbolicLink() ? 'a symlink' : 'a file'
}

/** Stat of a directory by its absolute path, or undefined when there is none. */
export function statDir(path: Buffer): Stat | undefined {
  let fd: number
  try {
    fd = openDir(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined
    throw cannotOpen(path, error)
  }
  try {
    return addon.statFd(fd)
  } catch (error) {
    throw cannotOpen(path, error)
  } finally {
    addon.close(fd)
  }
}

/** The same for who only looks which target is meant: its snapshots can be read, also where its disk has failed. */
export function lookAtDir(path: Buffer): Stat | undefined {
  try {
    return statDir(path)
  } catch (error) {
    if (error instanceof SavepointError && isDiskGone(error.cause)) return undefined
    throw error
  }
}

/**
 * The identity that is to be recorded of a directory that is there. On overlayfs one of a lower layer gets another time of birth
 * with the first change in it: a change that changes nothing brings that about now.
 */
export function lastingIdentity(path: Buffer, seen: DirIdentity): DirIdentity {
  try {
    if (statfsSync(path).type === OVERLAYFS) chownSync(path, -1, -1)
  } catch {
    // Read-only: then nothing else changes it either.
  }
  const stat = statDir(path)
  const identity = stat && String(stat.ino) === seen.ino ? identityOf(stat) : seen
  return { ...identity, subvolume: subvolumeOf(path), dataset: datasetOf(path) }
}

/** undefined: on another filesystem, or it does not tell. */
export function datasetOf(path: Buffer): string | undefined {
  const name = datasetAt(path)
  return name ? guidOf(rawToText(name)) : undefined
}

/** Whether it is on another ZFS dataset than the one that was recorded, or on none. `zfs` is asked; where that does not tell, it is not. */
export function isOnAnotherDataset(path: Buffer, { dataset }: DirIdentity): boolean {
  if (dataset === undefined) return false
  const name = datasetAt(path)
  if (name === undefined) return true
  const here = name === '' ? undefined : guidOf(rawToText(name))
  return here !== undefined && here !== dataset
}

/** As it was recorded. */
export const isSubvolumeRoot = ({ ino, subvolume }: DirIdentity): boolean =>
  subvolume !== undefined && ino === SUBVOLUME_INO

/** Whether it is in a copy of the subvolume: with the same inode and time of birth, which any other directory does not have. */
export function isInCopy(path: Buffer, identity: DirIdentity): boolean {
  const here = identity.subvolume === undefined ? undefined : subvolumeOf(path)
  if (here === undefined || here === identity.subvolume) return false
  const stat = statDir(path)
  return stat !== undefined && sameIdentity(identityOf(stat), identity)
}

/** undefined: on another filesystem, or it does not tell. */
function subvolumeOf(path: Buffer): string | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
    return addon.subvolumeIdentity(fd).toString('hex', 0, SUBVOLUME_ID_BYTES)
  } catch {
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Whether its owner, who we are, has closed it to himself: a chmod opens it again. */
export function isClosedByMode(path: Buffer): boolean {
  const stat = statDir(path)
  return stat !== undefined && (stat.mode & OWNER_LOOKS) !== OWNER_LOOKS && stat.uid === process.geteuid?.()
}

/** Runs `work` with a descriptor of the directory; throws `target.missing` when it does not exist. */
export async function withDir<T>(path: Buffer, work: (root: number) => Promise<T> | T): Promise<T> {
  let root: number
  try {
    root = openDir(path)
  } catch (error) {
    throw cannotOpen(path, error)
  }
  try {
    return await work(root)
  } finally {
    addon.close(root)
  }
}

function cannotOpen(path: Buffer, error: unknown): SavepointError {
  const shown = showPath(rawFromBytes(path))
  const code = errnoOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new SavepointError('target.missing', `Cannot open ${shown}: the directory does not exist`, {
      hint: `If it was deleted: \`savepoint rollback SNAP -t ${quoteWord(shown)}\` makes it again (\`savepoint log -t ${quoteWord(shown)}\` lists the snapshots)`,
      cause: error,
    })
  }
  const hint = isDiskGone(error)
    ? `See what \`dmesg\` and \`findmnt -T ${quoteWord(shown)}\` say, and mount it again. Snapshots are in the store: \`savepoint rollback SNAP --to DIR -t ${quoteWord(shown)}\` writes one elsewhere`
    : undefined
  return new SavepointError('io.failed', `Cannot open ${shown}: ${wordsOf(error)}`, { hint, cause: error })
}
