/** What a process has open. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type Raw, rawFromBytes } from '../model/raw-path.ts'

/** How the system names what has no name any more. */
const GONE = ' (deleted)'

/** How often it has the file, or one that was there, open for writing. 0 where that cannot be told. */
export function writersOf(pid: number, path: Raw): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).filter(fd => isFile(pid, fd, path) && isWritable(pid, fd)).length
  } catch {
    return 0
  }
}

function isFile(pid: number, fd: string, path: Raw): boolean {
  const name = rawFromBytes(readlinkSync(`/proc/${pid}/fd/${fd}`, 'buffer'))
  return name === path || name === path + GONE
}

export function isWritable(pid: number, fd: string): boolean {
  const [, flags] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? []
  return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0
}
