/**
 * The working directory of a restore in the root of the target, and how it is told from one of the user's that is only
 * named alike: an empty file in it that bears its name. Without the mark it is captured like anything else.
 */
import { constants } from 'node:fs'
import { joinRaw, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'

export const STAGE_PREFIX = '.savepoint-stage-'
/** Such a directory with this at its end holds what must not be removed. */
export const KEPT_SUFFIX = '-kept'

const named = /^\.(savepoint-stage-[0-9a-f]+)(?:-kept)?$/
const S_IFMT = 0o170000
const S_IFREG = 0o100000

/** Of a directory with this name; undefined when it cannot be a stage. */
export const markOf = (name: Raw): Raw | undefined => named.exec(name)?.[1]

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
