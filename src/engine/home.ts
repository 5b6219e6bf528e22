/** Savepoint's own directory: where it is, its store, and whether it can be written. */
import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { errnoOf, isDamage, SavepointError } from '../errors/errors.ts'
import { formatBytes } from '../model/format.ts'
import { hasStrayBytes, rawFromText, showPath } from '../model/raw-path.ts'
import { setIndexAside } from '../store/damaged-index.ts'
import type { Unwritable } from '../store/database.ts'
import { RESERVE_BYTES } from '../store/reserve.ts'
import { Store } from '../store/store.ts'
import type { OpenOptions } from './savepoint.ts'

/** Where it is: `home`, seen from the current directory; else $SAVEPOINT_HOME, which means the same everywhere; else in $HOME. */
export function homeOf(options: OpenOptions, env: NodeJS.ProcessEnv): string {
  const given = env.SAVEPOINT_HOME || undefined
  if (options.home === undefined && given !== undefined && !isAbsolute(given)) {
    throw new SavepointError(
      'usage',
      `Cannot use SAVEPOINT_HOME=${given}: it is relative, so each directory would have another store`,
      { hint: `Make it absolute: export SAVEPOINT_HOME="$PWD/${given}". Only --home may be relative` },
    )
  }
  if (options.home === '') throw new SavepointError('usage', 'Cannot use an empty --home: it names no directory')
  const home = resolve(options.home ?? given ?? join(env.HOME || homedir(), '.savepoint'))
  // SQLite and we ourselves name files in it as text. U+FFFD is what node has made of other bytes.
  if (hasStrayBytes(home) || home.includes('\ufffd')) {
    throw new SavepointError(
      'usage',
      `Cannot use ${showPath(rawFromText(home))} for the store: its path is not UTF-8`,
      {
        hint: 'Set SAVEPOINT_HOME, or --home, to a directory whose path is',
      },
    )
  }
  return home
}

/** Whoever runs this is Savepoint: the tracer of a run that we are part of then lets us write to the home. Fails always. */
const writerWord = '/proc/self/savepoint-writes-its-home'

export function makeHome(home: string): void {
  try {
    mkdirSync(writerWord)
  } catch {
    // No tracer needs to hear it where there is no /proc.
  }
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
