import { isUnwritable } from '../errors/errors.ts'

/** Without room for it, nothing that is destroyed can be kept; the run goes on. */
export function ifWritable<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!isUnwritable(error)) throw error
    return undefined
  }
}
