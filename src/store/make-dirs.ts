/** Directories, with those above. Step by step: Node's own `recursive` never ends below /proc, and no signal stops it. */
import { mkdirSync, statSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'

const SLASH = 0x2f

/** As `mkdir -p` does: what is there stays as it is, and anything but a directory in the way throws ENOTDIR. */
export function makeDirs(path: string | Buffer, mode: number): void {
  const bytes = Buffer.from(path as string)
  const stat = statSync(bytes, { throwIfNoEntry: false })
  if (stat?.isDirectory()) return
  const slash = bytes.lastIndexOf(SLASH)
  if (slash > 0 && !stat) makeDirs(bytes.subarray(0, slash), mode)
  try {
    mkdirSync(bytes, { mode })
  } catch (error) {
    // Another process may have come first.
    if (errnoOf(error) !== 'EEXIST' || !statSync(bytes, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
