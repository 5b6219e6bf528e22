/** The mode of the target directory itself, also when it is closed to its owner and cannot be resolved through itself. */
import { chmodSync } from 'node:fs'
import { errnoOf } from '../../errors/errors.ts'
import { addon } from '../../native/addon.ts'

export function chmodRoot(root: number, mode: number): void {
  try {
    addon.chmodAt(root, '', mode)
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error
    chmodSync(`/proc/self/fd/${root}`, mode)
  }
}
