/** The state of a path: what is there, as the manifest tells it, and whether two of them are the same. */
import { type BigIntStats, closeSync, lstatSync, openSync, readlinkSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import { parentOf, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'
import type { SeenState } from '../tracers/record-log.ts'
import { aclGroup } from './acl-group.ts'
import { pathText } from './bundle-paths.ts'
import type { State, StateType } from './manifest.ts'
import type { OpenedDirs } from './opened-dirs.ts'
import { keptTime, timeText } from './time-text.ts'

const O_PATH = 0o10000000
const TYPE_BITS = 0o170000
const types = new Map<number, StateType>([
  [0o100000, 'file'],
  [0o040000, 'directory'],
  [0o120000, 'symlink'],
  [0o010000, 'fifo'],
  [0o140000, 'socket'],
  [0o020000, 'char-device'],
  [0o060000, 'block-device'],
])

export const typeOf = ({ mode }: Pick<SeenState, 'mode'>): StateType | undefined => types.get(mode & TYPE_BITS)
export const isFile = (state: SeenState | undefined): state is SeenState =>
  state !== undefined && typeOf(state) === 'file'

/** Doubles of today's times are this exact. */
const TIME_MS = 0.0005

/**
 * Looks at many paths, none through a link: the paths of a recording have no links on their way, so that there is nothing at one where
 * a directory has become a link. Remembers the ways: for one moment.
 */
export class Looks {
  private readonly ways = new Map<Raw, boolean>([['', true]])
  private readonly opened: OpenedDirs

  constructor(opened: OpenedDirs) {
    this.opened = opened
  }

  /** What is at a path; undefined: nothing. `unseen`: it cannot be looked at. */
  stateAt(path: Raw): SeenState | undefined | 'unseen' {
    const seen = this.look(path)
    const state = seen === 'unseen' && this.opened.openAbove(path) ? this.look(path) : seen
    const mode = this.opened.modeOf(path)
    if (mode === undefined || state === undefined || state === 'unseen') return state
    return { ...state, mode: (state.mode & TYPE_BITS) | mode }
  }

  private look(path: Raw): SeenState | undefined | 'unseen' {
    const bytes = rawToBytes(path)
    try {
      const stat = this.isWay(parentOf(path)) && lstatSync(bytes, { bigint: true, throwIfNoEntry: false })
      if (!stat) return undefined
      const target = stat.isSymbolicLink() ? rawFromBytes(readlinkSync(bytes, 'buffer')) : undefined
      return fromStat(stat, target, groupAt(path, stat))
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === undefined) throw error
      return errno === 'ENOENT' || errno === 'ENOTDIR' ? undefined : 'unseen'
    }
  }

  /**
   * Whether a path is as it was, by a look that costs half of what an exact one does. For what the recording has not changed: only its own
   * calls could set times that differ by less than a microsecond.
   */
  isStill(path: Raw, before: SeenState): boolean {
    try {
      if (!this.isWay(parentOf(path))) return false
      const stat = lstatSync(rawToBytes(path))
      const { mode, uid, gid, size } = before
      if (stat.mode !== mode || stat.uid !== uid || stat.gid !== gid || before.rdev !== 0n) return false
      const isSameTime = Math.abs(stat.mtimeMs - Number(before.mtimeNs) / 1e6) < TIME_MS
      return stat.size === size && isSameTime && `${stat.dev}:${stat.ino}` === before.identity
    } catch {
      return false
    }
  }

  /** Whether it is a directory, and all above it are. Throws what the system says of one that cannot be looked at. */
  private isWay(directory: Raw): boolean {
    const known = this.ways.get(directory)
    if (known !== undefined) return known
    const isDirectory = () => lstatSync(rawToBytes(directory), { throwIfNoEntry: false })?.isDirectory() === true
    const isWay = this.isWay(parentOf(directory)) && isDirectory()
    this.ways.set(directory, isWay)
    return isWay
  }
}

/** The rights of its group, where an access list has them. */
function groupAt(path: Raw, stat: BigIntStats): number | undefined {
  const mode = Number(stat.mode)
  if (stat.isSymbolicLink()) return undefined
  const root = openSync('/', O_PATH)
  try {
    return aclGroup(mode, addon.getXattrs(root, path.slice(1)))
  } finally {
    closeSync(root)
  }
}

const fromStat = (stat: BigIntStats, target: Raw | undefined, group: number | undefined): SeenState => ({
  mode: Number(stat.mode),
  group,
  uid: Number(stat.uid),
  gid: Number(stat.gid),
  size: Number(stat.size),
  mtimeNs: keptTime(stat.mtimeNs),
  identity: `${stat.dev}:${stat.ino}`,
  rdev: stat.isCharacterDevice() || stat.isBlockDevice() ? stat.rdev : 0n,
  target,
})

/** Whether nothing has changed, by what a directory lists: content may differ in a file that was written. */
export function sameState(a: SeenState | undefined, b: SeenState | undefined): boolean {
  if (!a || !b) return a === b
  if (a.mode !== b.mode || a.uid !== b.uid || a.gid !== b.gid || a.target !== b.target || a.rdev !== b.rdev)
    return false
  // What a directory holds is told by what is in it.
  return typeOf(a) === 'directory' || (a.size === b.size && a.mtimeNs === b.mtimeNs && a.identity === b.identity)
}

export function toState(seen: SeenState | undefined): State {
  if (!seen) return { exists: false }
  const type = typeOf(seen)
  const state: State = {
    exists: true,
    ...(type === undefined ? {} : { type }),
    mode: seen.mode & 0o7777,
    ...(seen.group === undefined ? {} : { group_mode: seen.group }),
    uid: seen.uid,
    gid: seen.gid,
    mtime: timeText(seen.mtimeNs),
  }
  if (type === 'file') state.size = seen.size
  if (seen.target !== undefined) {
    const { text, bytes } = pathText(seen.target)
    state.target = text
    if (bytes !== undefined) state.target_bytes = bytes
  }
  if (type === 'char-device' || type === 'block-device') state.device = deviceOf(seen.rdev)
  return state
}

/** As Linux packs them into 64 bits. */
const deviceOf = (rdev: bigint): [major: number, minor: number] => [
  Number(((rdev >> 8n) & 0xfffn) | ((rdev >> 32n) & ~0xfffn)),
  Number((rdev & 0xffn) | ((rdev >> 12n) & ~0xffn)),
]
