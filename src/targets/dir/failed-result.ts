/** The result for an entry that could not be read. */
import { constants } from 'node:os'
import type { ReadResult } from './ingest-read.ts'

/** What the file itself can be to blame for. Anything else (a full disk, a defect) fails the capture. */
const fileErrors = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'EIO', 'ENXIO', 'ESTALE']
/** ENOTDIR: what was a directory above it is something else now. */
const vanished = ['ENOENT', 'ENOTDIR']

/** Throws the error again when it is not the file's fault. */
export function failedResult(error: Error & { code?: string }): ReadResult {
  if (!fileErrors.includes(error.code ?? '')) throw error
  return {
    errno: constants.errno[error.code as keyof typeof constants.errno],
    unknown: vanished.includes(error.code!) ? 'vanished' : 'unreadable',
    mode: 0,
    nlink: 0,
    uid: 0,
    gid: 0,
    size: 0,
    mtimeNs: 0n,
    ctimeNs: 0n,
    ino: 0n,
    content: '',
    target: '',
    xattrs: undefined,
    sparse: false,
    rdevMajor: 0,
    rdevMinor: 0,
  }
}
