/** The file that the output of `spawn` is added to: opened by the process that serves, which must not wait for anything. */
import { closeSync, constants, fstatSync, openSync, realpathSync } from 'node:fs'
import { resolve, sep } from 'node:path'
import { errnoWords, SavepointError } from '../errors/errors.ts'

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY } = constants

/** `given` is relative to the target, and need not lie in it; but the store is not written to in this way. */
export function openOutput(target: string, home: string, given: string): number {
  try {
    // A pipe that nobody reads would be waited for.
    const looked = openSync(resolve(target, given), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0o666)
    const opened = `/proc/self/fd/${looked}`
    try {
      if (!fstatSync(looked).isFile()) throw cannot(given, 'it is no file')
      if (isIn(realpathSync(opened), realpathSync(home))) throw cannot(given, 'it lies in the store')
      // The same one again, as a command expects it.
      return openSync(opened, 'a')
    } finally {
      closeSync(looked)
    }
  } catch (error) {
    const why = errnoWords(error)
    throw why === undefined ? error : cannot(given, isNoFile(error) ? 'it is no file' : why)
  }
}

/** A pipe that nobody reads, a socket, a device that is not there. */
const isNoFile = (error: unknown): boolean => /^(ENXIO|ENODEV)$/.test((error as NodeJS.ErrnoException).code ?? '')

const isIn = (path: string, directory: string): boolean => path === directory || path.startsWith(directory + sep)

const cannot = (given: string, why: string): SavepointError =>
  new SavepointError('command.failed-to-start', `Cannot write what the command says to ${given}: ${why}`, {
    hint: '"output" is a file, relative to the target, to which it is added',
  })
