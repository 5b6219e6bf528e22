/** What its own owner cannot read (`chmod 000`), opened all the same, as a rollback does it. Should we be killed meanwhile, it stays open to its owner. */
import { chmodSync, closeSync, constants, fstatSync, openSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import type { Raw } from '../model/raw-path.ts'
import { addon, type Stat } from '../native/addon.ts'

const O_PATH = 0o10000000
const OWNER_READ = 0o400
const PERMISSIONS = 0o7777

/** Opens with `open`; where that is not permitted, gives the owner the right for that moment. Throws what the system says. */
export function openToRead(open: (flags: number) => number): number {
  const toRead = constants.O_RDONLY | constants.O_NONBLOCK
  try {
    return open(toRead | constants.O_NOFOLLOW)
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error
    const found = whileReadable(open, (held, isOpened) => (isOpened ? openSync(held, toRead) : undefined))
    if (found === undefined) throw error
    return found
  }
}

/** Extended attributes, as the addon gives them; those of users can be read only by who may read. undefined: they cannot be read. */
export function readXattrs(root: number, path: Raw, { mode, uid }: Pick<Stat, 'mode' | 'uid'>): Buffer | undefined {
  const read = () => addon.getXattrs(root, path)
  try {
    if ((mode & OWNER_READ) !== 0 || uid !== process.geteuid!()) return read()
    return whileReadable(flags => addon.openAt(root, path, flags, 0), read)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

/** `held`: the file or directory by a name that nothing else can take meanwhile. Only what is ours, and shut, is opened. */
function whileReadable<T>(open: (flags: number) => number, work: (held: string, isOpened: boolean) => T): T {
  const fd = open(O_PATH | constants.O_NOFOLLOW)
  const held = `/proc/self/fd/${fd}`
  try {
    const stat = fstatSync(fd)
    const mode = stat.mode & PERMISSIONS
    const isShut = (stat.isFile() || stat.isDirectory()) && (mode & OWNER_READ) === 0
    if (!isShut || stat.uid !== process.geteuid!()) return work(held, false)
    chmodSync(held, mode | OWNER_READ)
    try {
      return work(held, true)
    } finally {
      chmodSync(held, mode)
    }
  } finally {
    closeSync(fd)
  }
}
