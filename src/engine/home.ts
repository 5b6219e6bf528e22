/** Savepoint's own directory: where it is, its store, and whether it can be written. */
import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { errnoOf, isDamage, SavepointError } from '../errors/errors.ts'
import { formatBytes } from '../model/format.ts'
import { setIndexAside } from '../store/damaged-index.ts'
import type { Unwritable } from '../store/database.ts'
import { RESERVE_BYTES } from '../store/reserve.ts'
import { Store } from '../store/store.ts'
import type { OpenOptions } from './savepoint.ts'

export const homeOf = (options: OpenOptions, env: NodeJS.ProcessEnv): string =>
  resolve(options.home ?? env.SAVEPOINT_HOME ?? join(env.HOME ?? homedir(), '.savepoint'))

export function makeHome(home: string): void {
  try {
    makeDirs(join(home, 'timelines'))
  } catch (cause) {
    throw new SavepointError('io.failed', `Cannot use ${home}: ${(cause as Error).message}`, {
      hint: 'Set SAVEPOINT_HOME to a directory that you can write to',
      cause,
    })
  }
}

/** Step by step: Node's own `recursive` never ends below /proc. */
function makeDirs(path: string): void {
  if (existsSync(path)) return
  makeDirs(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
  }
}

export function openStore(directory: string, repair: boolean, notice: (text: string) => void): Store {
  try {
    const store = Store.open(directory)
    if (!repair || store.index.unwritable || store.index.damage() === undefined) return store
    store.close()
  } catch (error) {
    if (!repair || !isDamage(error) || !existsSync(join(directory, 'index.sqlite'))) throw error
  }
  setIndexAside(directory)
  notice('the index of the store is damaged; it is made anew from the packs')
  return Store.open(directory)
}

/** What every command that must write to the home answers. */
export function unwritableHome(home: string, why: Unwritable): SavepointError {
  const [code, state, mend] =
    why === 'full'
      ? (['disk.full', 'its disk is full', `Free ${formatBytes(RESERVE_BYTES)} or more`] as const)
      : (['io.failed', 'it is read-only for this user', 'Make it writable'] as const)
  return new SavepointError(code, `Cannot write to ${home}: ${state}`, {
    hint: `${mend}, then say it again. Until then history can be read, and \`savepoint rollback SNAP --to DIR\` writes a state elsewhere`,
  })
}
