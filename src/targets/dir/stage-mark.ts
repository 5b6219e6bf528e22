/**
 * The working directory of a restore in the root of the target, and how it is told from one of the user's that is only
 * named alike: an empty file in it that bears its name. Without the mark it is captured like anything else.
 */
import { constants } from 'node:fs'
import { joinRaw, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import type { SafeDirs } from './safe-dirs.ts'

export const STAGE_PREFIX = '.savepoint-stage-'
/** Such a directory with this at its end holds what must not be removed. */
export const KEPT_SUFFIX = '-kept'

const named = /^\.(savepoint-stage-[0-9a-f]+)(?:-kept)?$/
const S_IFMT = 0o170000
const S_IFREG = 0o100000

/** Of a directory with this name; undefined when it cannot be a stage. */
export const markOf = (name: Raw): Raw | undefined => named.exec(name)?.[1]

/** In the root, which `safe` opens if need be. */
export function makeStage(root: number, stage: Raw, safe: SafeDirs): void {
  safe.in([''], () => addon.mkdirAt(root, stage, 0o700))
  markStage(root, stage)
  // What was just deleted slows down making it again in the same place: see native `spreadSubdirs`.
  const fd = addon.openAt(root, stage, constants.O_RDONLY | constants.O_DIRECTORY, 0)
  addon.spreadSubdirs(fd)
  addon.close(fd)
}

/** May be called again. A disk that has no room even for this must not keep a restore from making some. */
export function markStage(root: number, stage: Raw): void {
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW
    addon.close(addon.openAt(root, joinRaw(stage, markOf(stage)!), flags, 0o600))
  } catch {}
}

/** Whether the directory `name` in the root is a stage of ours. */
export function isStage(root: number, name: Raw): boolean {
  const mark = markOf(name)
  if (mark === undefined) return false
  try {
    return (addon.statAt(root, joinRaw(name, mark)).mode & S_IFMT) === S_IFREG
  } catch {
    return false
  }
}
