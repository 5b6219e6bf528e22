/** Looks at one path of an open directory. */
import { errnoOf } from '../../errors/errors.ts'
import type { Raw } from '../../model/raw-path.ts'
import { addon, type Stat } from '../../native/addon.ts'

/** Undefined when nothing is there, or that cannot be seen. */
export function statOrNothing(root: number, path: Raw): Stat | undefined {
  try {
    return addon.statAt(root, path)
  } catch {
    return undefined
  }
}

/** Throws when it cannot be seen. */
export function existsAt(root: number, path: Raw): boolean {
  try {
    addon.statAt(root, path)
    return true
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw error
  }
}
