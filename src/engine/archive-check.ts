/** Whether the archive of a snapshot is what was written: its size by a look, its bytes by reading them. */
import { closeSync, openSync, readSync } from 'node:fs'
import { type ArchiveState, archiveBytes, archiveFile } from '../backends/archive.ts'
import { errnoOf, errnoWords } from '../errors/errors.ts'
import { formatBytes } from '../model/format.ts'
import { Hasher, idToHex } from '../model/id.ts'
import type { Snapshot } from '../model/snapshot.ts'

const READ_BYTES = 1024 * 1024

type Archived = Pick<Snapshot, 'backend' | 'nativeRef'>

/** undefined: it has none. */
export const archiveOf = ({ backend, nativeRef }: Archived): ArchiveState | undefined =>
  backend === 'archive' && nativeRef !== undefined ? (JSON.parse(nativeRef) as ArchiveState) : undefined

/** What a look shows; undefined: nothing is wrong. Completes "its archive …". */
export function archiveDamage(directory: string, snapshot: Archived): string | undefined {
  const state = archiveOf(snapshot)
  if (!state) return undefined
  return unlessUnreadable(() => {
    const bytes = archiveBytes(archiveFile(directory, state))
    if (bytes === undefined) return 'is missing'
    if (bytes === state.bytes) return undefined
    return bytes < state.bytes
      ? `is cut off (${partOf(bytes, state.bytes)})`
      : `is longer than what was written (${partOf(bytes, state.bytes)})`
  })
}

/** A few bytes less must not read as "3 MB of 3 MB". */
function partOf(bytes: number, whole: number): string {
  const [is, was] = [bytes, whole].map(formatBytes)
  return is === was ? `${bytes} of ${whole} bytes` : `${is} of ${was}`
}

/** One bad file, on a disk that fails or of another user, must not stop whoever looks at all the others. */
function unlessUnreadable(look: () => string | undefined): string | undefined {
  try {
    return look()
  } catch (error) {
    if (!errnoOf(error)) throw error
    return `cannot be read (${errnoWords(error)})`
  }
}

/** With all of its bytes read. */
export function archiveDamageInFull(directory: string, snapshot: Archived): string | undefined {
  const seen = archiveDamage(directory, snapshot)
  const state = archiveOf(snapshot)
  if (seen !== undefined || !state) return seen
  return unlessUnreadable(() =>
    hashOf(archiveFile(directory, state)) === state.hash ? undefined : 'is damaged (its checksum is another one)',
  )
}

function hashOf(file: string): string {
  const hasher = new Hasher()
  const window = Buffer.alloc(READ_BYTES)
  const fd = openSync(file, 'r')
  try {
    for (let count = readSync(fd, window); count > 0; count = readSync(fd, window))
      hasher.update(window.subarray(0, count))
  } finally {
    closeSync(fd)
  }
  return idToHex(hasher.digest())
}
