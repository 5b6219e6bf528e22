/**
 * What lies in a state that a filesystem keeps, whatever was captured of it: all that was in the directory is, also what rules
 * exclude. Only the path is looked for: whether the same content lies there under another one, nobody tells.
 */
import { errnoOf, SavepointError, wordsOf } from '../errors/errors.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { addon, type Stat } from '../native/addon.ts'
import { openDir } from '../targets/dir/dir-target.ts'
import { keptOf } from './native-ref.ts'

/** Nothing of that name is there. A link that leads on leads out of what was kept. */
const ABSENT: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** Whether one of them has it. Throws when none has, as far as is known, and one cannot be looked into. */
export function isInKept(snapshots: readonly Snapshot[], path: Raw): boolean {
  const looked = new Map<string | undefined, boolean | Error>()
  // The newest first: what somebody wants to be rid of is seldom only in an old one.
  for (const snapshot of snapshots.toReversed())
    if (!looked.has(snapshot.nativeRef)) {
      const found = lookInto(snapshot, path)
      if (found === true) return true
      looked.set(snapshot.nativeRef, found)
    }
  const unknown = [...looked.values()].find(found => found instanceof Error)
  if (unknown === undefined) return false
  throw new SavepointError(
    'backend.failed',
    `Cannot tell whether what a filesystem keeps has ${showPath(path)}: ${wordsOf(unknown)}`,
    { hint: 'Mend that, and say it again' },
  )
}

/** An error: that cannot be told now. */
export function lookInto(snapshot: Snapshot, path: Raw): boolean | Error {
  const kept = keptOf(snapshot)
  try {
    const state = kept?.backend.open(kept.ref)
    if (!state) return false
    try {
      return statInKept(state.path, path) !== undefined
    } finally {
      state.close()
    }
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
    return error as Error
  }
}

/** `directory`: of the state. undefined: nothing of that name is in it. */
export function statInKept(directory: Buffer, path: Raw): Stat | undefined {
  const root = openDir(directory)
  try {
    return addon.statAt(root, path)
  } catch (error) {
    if (ABSENT.has(errnoOf(error))) return undefined
    throw error
  } finally {
    addon.close(root)
  }
}
