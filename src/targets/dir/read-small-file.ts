import { constants, readSync } from 'node:fs'
import type { Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'

/** A file that is read at once; throws EFBIG when it is too large to be what it is taken for. */
export function readSmallFile(root: number, path: Raw, maxBytes: number): Buffer {
  const fd = addon.openAt(root, path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW, 0)
  try {
    const { size } = addon.statFd(fd)
    if (size > maxBytes) throw Object.assign(new Error(`EFBIG: ${size} bytes`), { code: 'EFBIG' })
    const buffer = Buffer.alloc(size)
    let filled = 0
    for (let count = 1; count > 0 && filled < size; filled += count)
      count = readSync(fd, buffer, filled, size - filled, filled)
    return buffer.subarray(0, filled)
  } finally {
    addon.close(fd)
  }
}
