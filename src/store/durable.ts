/** Durable writes: what is visible under its name is whole and on disk. */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { failpoint } from './failpoint.ts'
import { isAbandoned, PROCESS_MARK, processMark } from './process-mark.ts'

const TEMPORARY = new RegExp(`\\.tmp-${PROCESS_MARK}(?:-(?:wal|shm))?$`)

/** Writes temp file, fsync, rename, fsync directory. After a crash the old or the new content is there, never a part. */
export function writeDurably(file: string, content: string | Uint8Array): void {
  replaceFile(file, [content], fsyncSync)
  syncDirectory(dirname(file))
}

/** The same without waiting for the disk: after a power cut the file may be torn, which its reader must be able to tell. */
export function writeByRename(file: string, parts: readonly Uint8Array[]): void {
  replaceFile(file, parts, () => {})
}

function replaceFile(file: string, parts: readonly (string | Uint8Array)[], sync: (fd: number) => void): void {
  const temporary = temporaryName(file)
  try {
    const fd = openSync(temporary, 'w', 0o600)
    try {
      for (const part of parts) writeFileSync(fd, part)
      sync(fd)
    } finally {
      closeSync(fd)
    }
    failpoint('durable:written')
    renameSync(temporary, file)
  } catch (error) {
    try {
      unlinkSync(temporary)
    } catch {}
    throw error
  }
}

/** A name of this process beside `file`, to write to and to rename from: two processes must not share one. */
export function temporaryName(file: string): string {
  removeAbandoned(dirname(file))
  return `${file}.tmp-${processMark()}`
}

/** Removes the temporary files that processes left in a directory when they were killed, so that they do not add up. */
export function removeAbandoned(directory: string): void {
  for (const name of readdirSync(directory)) {
    const mark = TEMPORARY.exec(name)
    if (mark && isAbandoned(join(directory, name), mark)) rmSync(join(directory, name), { force: true })
  }
}

/** Makes an empty file that only its owner may read, unless it exists. SQLite gives its other files the same mode. */
export function makePrivate(file: string): void {
  closeSync(openSync(file, 'a', 0o600))
}

/** A file or a directory that was written by others. */
export function syncFile(path: string | Buffer): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

export const syncDirectory: (directory: string | Buffer) => void = syncFile
