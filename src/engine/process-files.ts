/** What a process has open. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'

/** How the system names what has no name any more. */
const GONE = ' (deleted)'

/** Whether it has the file, or one that was there, open for writing. False where that cannot be told. */
export function isWrittenBy(pid: number, path: Raw): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some(fd => isFile(pid, fd, path) && isWritable(pid, fd))
  } catch {
    return false
  }
}

function isFile(pid: number, fd: string, path: Raw): boolean {
  const name = rawFromBytes(readlinkSync(`/proc/${pid}/fd/${fd}`, 'buffer'))
  return name === path || name === path + GONE
}

function isWritable(pid: number, fd: string): boolean {
  const [, flags] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? []
  return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0
}
