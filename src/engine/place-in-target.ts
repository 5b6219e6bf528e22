/** Where something lies in the target, also where that is mounted a second time and reached by another path. */
import type { Raw } from '../model/raw-path.ts'
import type { Stat } from '../native/addon.ts'
import { statDir } from '../targets/dir/dir-target.ts'
import { parentPath, relativeTo } from './target-registry.ts'

/** `directory` relative to the target; undefined when it is not inside. Nothing is looked at where the paths tell it. */
export function placeInTarget(target: Buffer, directory: Buffer): Raw | undefined {
  const direct = relativeTo(target, directory)
  const root = direct === undefined ? look(target) : undefined
  for (let path = root && directory; path; path = parentPath(path)) {
    const stat = look(path)
    if (stat?.dev === root!.dev && stat.ino === root!.ino) return relativeTo(path, directory)
  }
  return direct
}

/** undefined, too, where this user may not look. */
function look(path: Buffer): Stat | undefined {
  try {
    return statDir(path)
  } catch {
    return undefined
  }
}
