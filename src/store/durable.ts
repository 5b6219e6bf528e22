/** Durable writes: what is visible under its name is whole and on disk. */
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import { failpoint } from './failpoint.ts'

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
  return `${file}.tmp-${process.pid}`
}

/** Removes the temporary files that processes left in a directory when they were killed, so that they do not add up. */
export function removeAbandoned(directory: string): void {
  for (const name of readdirSync(directory)) {
    const pid = /\.tmp-(\d+)(?:-(?:wal|shm))?$/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(directory, name), { force: true })
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errnoOf(error) === 'EPERM'
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
