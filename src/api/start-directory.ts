/** Where the command of `exec` or `spawn` starts: said before anything is captured or recorded for it. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { errnoWords, SavepointError } from '../errors/errors.ts'

/** `given` is relative to the target, and need not lie in it. */
export function startDirectory(target: string, given: string): string {
  const directory = resolve(target, given)
  const why = whyNot(directory)
  if (why === undefined) return directory
  throw new SavepointError('command.failed-to-start', `Cannot start a command in ${given}: ${why}`, {
    hint: `"cwd" is a directory, relative to ${target}`,
  })
}

function whyNot(directory: string): string | undefined {
  try {
    return statSync(directory).isDirectory() ? undefined : 'it is no directory'
  } catch (error) {
    return errnoWords(error) ?? String(error)
  }
}
