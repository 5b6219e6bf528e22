/** Durable writes: what is visible under its name is whole and on disk. */
import { closeSync, fsyncSync, openSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Writes temp file, fsync, rename, fsync directory. After a crash the old or the new content is there, never a part. */
export function writeDurably(file: string, content: string | Uint8Array, mode = 0o600): void {
  const temporary = `${file}.tmp-${process.pid}`
  try {
    const fd = openSync(temporary, 'w', mode)
    try {
      writeFileSync(fd, content)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, file)
  } catch (error) {
    try {
      unlinkSync(temporary)
    } catch {}
    throw error
  }
  syncDirectory(dirname(file))
}

export function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
