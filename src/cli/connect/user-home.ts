/** Where agents keep the settings of a user: in $HOME. */
import { isAbsolute } from 'node:path'
import { SavepointError } from '../../errors/errors.ts'
import { homeOfAccount } from '../../index.ts'

/** An empty or relative one would be the current directory, in which no agent would look. */
export function userHome({ HOME }: NodeJS.ProcessEnv): string {
  const home = HOME === undefined ? homeOfAccount() : HOME
  if (home !== undefined && isAbsolute(home)) return home
  const why =
    HOME === undefined ? 'not set, and this user has no home' : HOME === '' ? 'empty' : `${HOME}, which is relative`
  throw new SavepointError('usage', `Cannot tell where your settings are: HOME is ${why}`, {
    hint: 'Set HOME to your home directory, or say --scope project',
  })
}
