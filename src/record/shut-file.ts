/** Files that their own owner cannot read (`chmod 000`), opened all the same, as a rollback does it. Should we be killed meanwhile, they stay open to their owner. */
import { chmodSync, closeSync, constants, fstatSync, openSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'

const O_PATH = 0o10000000
const OWNER_READ = 0o400
const PERMISSIONS = 0o7777

/** Opens with `open`; where that is not permitted, gives the owner the right for that moment. Throws what the system says. */
export function openToRead(open: (flags: number) => number): number {
  try {
    return open(constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error
    // No other file can take its place meanwhile.
    const held = open(O_PATH | constants.O_NOFOLLOW)
    try {
      const stat = fstatSync(held)
      if (!stat.isFile() || stat.uid !== process.geteuid!() || (stat.mode & OWNER_READ) !== 0) throw error
      return openHeld(`/proc/self/fd/${held}`, stat.mode & PERMISSIONS)
    } finally {
      closeSync(held)
    }
  }
}

function openHeld(path: string, mode: number): number {
  chmodSync(path, mode | OWNER_READ)
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } finally {
    chmodSync(path, mode)
  }
}
