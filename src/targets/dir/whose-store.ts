/**
 * What belongs to Savepoint itself and is never captured: its home, the stage of a restore, where snapshots of a target inside
 * of this one are kept, and any other store.
 */
import { joinRaw, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { readSmallFile } from './read-small-file.ts'
import { isStage } from './stage-mark.ts'

const S_IFMT = 0o170000
const S_IFDIR = 0o040000
const PERMISSIONS = 0o777
/** Where a filesystem keeps snapshots beside their target; it may end in the number of a user. */
export const SNAPSHOTS_BESIDE = '.savepoint-snapshots'
const besideNamed = new RegExp(`^\\${SNAPSHOTS_BESIDE}(-\\d+)?$`)
export const isBeside = (path: Raw): boolean => path.split('/').some(name => besideNamed.test(name))
/** {"format":1}, with room for what later formats may say. */
const MAX_FORMAT_BYTES = 4096

export interface OurPlaces {
  root: number
  /** Inode of our own home. */
  homeIno: bigint | undefined
  /** The stage that a recovery captures, because it may hold what was displaced. */
  stage: Raw | undefined
}

/** Says it of the directory `name` in `directory`. */
export function whoseStore(
  { root, homeIno, stage }: OurPlaces,
  directory: Raw,
  name: Raw,
  ino: bigint,
): 'store' | 'other-store' | undefined {
  if (ino === homeIno) return 'store'
  if (directory === '' && name !== stage && isStage(root, name)) return 'store'
  if (besideNamed.test(name) && isClosed(root, joinRaw(directory, name))) return 'store'
  return ofHome.has(name) && isHome(root, directory) ? 'other-store' : undefined
}

const ofHome: ReadonlySet<Raw> = new Set(['store', 'timelines', 'native'])

/** As `backends/place.ts` makes it. A directory of the user's that is only named alike is hardly ever so. */
function isClosed(root: number, path: Raw): boolean {
  try {
    return (addon.statAt(root, path).mode & PERMISSIONS) === 0o700
  } catch {
    return false
  }
}

/**
 * Whether the directory is a home of Savepoint (another user's, a test's). What else lies in it is captured; its store,
 * timelines and snapshots are not: they would be stored again with each capture, and a restore would set back the one without the
 * other. A name alone makes no home: all parts must be there, and the format be said.
 */
function isHome(root: number, directory: Raw): boolean {
  const at = (path: string) => joinRaw(directory, path)
  try {
    const parts = ['store/packs', 'store/clones', 'timelines']
    if (!parts.every(part => (addon.statAt(root, at(part)).mode & S_IFMT) === S_IFDIR)) return false
    const { format } = JSON.parse(readSmallFile(root, at('store/format.json'), MAX_FORMAT_BYTES).toString())
    return Number.isInteger(format)
  } catch {
    return false
  }
}
