/** Whether a command may destroy something before there is a snapshot of it, because it is kept all the same. */
import { tryStat } from '../files/git-dir.ts'
import type { Destructive } from '../model/command-kind.ts'
import { isGitInternal, isWithin, joinRaw, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import type { Context } from './context.ts'
import type { DirtySet } from './dirty-set.ts'
import { endangered } from './endangers.ts'

/**
 * While the state before the run is being captured. `target`: where it is now. `made`: what the run has touched since it began.
 */
export function isKeptAnyway(
  ctx: Context,
  target: Buffer,
  cwd: Raw,
  destructive: Destructive,
  made: DirtySet,
): boolean {
  const { keptAnyway } = destructive
  if (keptAnyway === 'all' || keptAnyway === 'nothing') return keptAnyway === 'all'
  const isDirectory = (path: Raw) => tryStat(rawToBytes(joinRaw(rawFromBytes(target), path)))?.isDirectory() === true
  for (const place of endangered(ctx, target, cwd, destructive)) {
    const path = keptAnyway === 'files' ? gitsIn(place) : place
    if (path !== undefined && made.concerns(path, isDirectory(path))) return false
  }
  return true
}

/**
 * What the run has stored in the repository of the target is not kept. Its index comes and goes with each question. In those further
 * down a run changes nothing before the capture is over (preserved.ts).
 */
function gitsIn(place: Raw): Raw | undefined {
  if (isGitInternal(place) && place !== '.git') return place
  return isWithin('.git', place) ? '.git/objects' : undefined
}
