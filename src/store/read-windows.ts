/** Reads an open file from front to back through one buffer, so that memory does not depend on its size. */
import { fstatSync, readSync } from 'node:fs'
import type { Id } from '../model/entry.ts'
import { Hasher } from '../model/id.ts'

const WINDOW_BYTES = 4 * 1024 * 1024
const MARGIN_BYTES = 4096

/** The bytes are valid until the next step. */
export function* readWindows(fd: number): Generator<{ at: number; bytes: Buffer }> {
  // Of thousands of small files each would touch megabytes otherwise. One that grows meanwhile is read in smaller steps.
  const window = Buffer.allocUnsafeSlow(Math.min(fstatSync(fd).size + MARGIN_BYTES, WINDOW_BYTES))
  for (let at = 0; ; ) {
    const count = readSync(fd, window, 0, window.length, at)
    if (count === 0) return
    yield { at, bytes: window.subarray(0, count) }
    at += count
  }
}

/** The id and the size of a file's content. */
export function hashFile(fd: number): { id: Id; size: number } {
  const hasher = new Hasher()
  let size = 0
  for (const { bytes } of readWindows(fd)) {
    hasher.update(bytes)
    size += bytes.length
  }
  return { id: hasher.digest(), size }
}
