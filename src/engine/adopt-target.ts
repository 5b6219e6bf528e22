/** `--adopt`: somebody says which directory a timeline goes on with. */
import { SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { type DirIdentity, identityOf, lastingIdentity, statDir } from '../targets/dir/dir-target.ts'
import { runsOf } from './neighbouring-runs.ts'
import { allTargets, atItsPlace, type RegisteredTarget, writeTarget } from './target-registry.ts'

/** No directory is that. */
const nobody: DirIdentity = { ino: '', btimeNs: '' }

/**
 * The timeline `known` (an id, or the path that its target had) belongs to the directory at `path` from now on. One that this
 * had before takes its place: two of one directory could not be told from each other. That one is adopted by its id only, so that
 * the same words twice are not undone by the second.
 */
export function adoptTarget(
  home: string,
  path: Buffer,
  known: string,
  knownPath: Buffer,
  notice: (text: string) => void,
): RegisteredTarget {
  const targets = allTargets(home)
  const target = targets.find(({ id, path: old }) => id === known || old.equals(knownPath))
  const stat = statDir(path)
  if (!target || !stat) {
    throw new SavepointError(
      'timeline.none',
      `Cannot adopt "${known}": ${target ? `${shown(path)} does not exist` : 'no timeline has this id or path'}`,
      {
        hint: 'Give the path that the directory had before, or the id of its timeline from `savepoint status --json`',
      },
    )
  }
  if (atItsPlace(target) && !target.path.equals(path)) {
    throw new SavepointError(
      'usage',
      `Cannot adopt "${known}": ${shown(target.path)} is still there, and the timeline is its`,
      {
        hint: 'Only the timeline of a directory that is gone or was replaced can be adopted',
      },
    )
  }
  const given = targets.find(other => other.id !== target.id && other.path.equals(path))
  const wasHere = target.identity.ino === nobody.ino && target.former?.equals(path)
  if (given && target.id !== known && wasHere) {
    notice(`${shown(path)} goes on with this timeline already; the one that it had before is ${target.id}`)
    return given
  }
  if (given) {
    const [run] = runsOf(given)
    if (run)
      throw new SavepointError('busy', `Cannot adopt "${known}": ${run.id} goes on in ${shown(path)}`, {
        hint: 'Its history would become that of another directory: wait until it has ended',
      })
    writeTarget({ ...given, path: target.path, identity: nobody, former: path })
    notice(`the timeline that ${shown(path)} had (${given.id}) is that of ${shown(target.path)} from now on`)
  }
  const adopted = { ...target, path, identity: lastingIdentity(path, identityOf(stat)), former: undefined }
  writeTarget(adopted)
  return adopted
}

const shown = (path: Buffer): string => showPath(rawFromBytes(path))
