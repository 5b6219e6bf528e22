/** Savepoint's own directory: where it is, its store, and whether it can be written. */
import { existsSync, mkdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { fullWords, isDamage, isNoRoom, SavepointError, wordsOf } from '../errors/errors.ts'
import { formatBytes } from '../model/format.ts'
import { hasStrayBytes, rawFromText, showPath } from '../model/raw-path.ts'
import { setIndexAside } from '../store/damaged-index.ts'
import type { Unwritable } from '../store/database.ts'
import { makeDirs } from '../store/make-dirs.ts'
import { RESERVE_BYTES } from '../store/reserve.ts'
import { Store } from '../store/store.ts'
import type { OpenOptions } from './savepoint.ts'

/** Where it is: `home`, seen from the current directory; else $SAVEPOINT_HOME, which means the same everywhere; else in $HOME. */
export function homeOf(options: OpenOptions, env: NodeJS.ProcessEnv): string {
  if (options.home === '') throw new SavepointError('usage', 'Cannot use an empty --home: it names no directory')
  const home = options.home === undefined ? homeByEnvironment(env) : resolve(options.home)
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

function homeByEnvironment(env: NodeJS.ProcessEnv): string {
  for (const name of ['SAVEPOINT_HOME', 'HOME']) {
    const given = env[name]
    if (!given) continue
    if (isAbsolute(given)) return resolve(given, name === 'HOME' ? '.savepoint' : '')
    throw new SavepointError(
      'usage',
      `Cannot use ${name}=${given}: it is relative, so each directory would have another store`,
      { hint: `Make it absolute: export ${name}="$PWD/${given}". Only --home may be relative` },
    )
  }
  const account = homeOfAccount()
  if (account !== undefined) return join(account, '.savepoint')
  throw new SavepointError('usage', 'Cannot tell where to keep snapshots: HOME is not set, and this user has no home', {
    hint: 'Set SAVEPOINT_HOME to a directory that you can write to',
  })
}

/** Not os.homedir(), which takes an empty $HOME for the current directory. */
export function homeOfAccount(): string | undefined {
  try {
    const { homedir } = userInfo()
    return isAbsolute(homedir) ? homedir : undefined
  } catch {
    return undefined
  }
}

/** Whoever runs this is Savepoint: the tracer of a run that we are part of then lets us write to the home. Fails always. */
const writerWord = '/proc/self/savepoint-writes-its-home'

export function sayWeWrite(): void {
  try {
    mkdirSync(writerWord)
  } catch {
    // No tracer needs to hear it where there is no /proc.
  }
}

/** Where there is none, `create` makes it: to look at nothing, nothing is made. */
export function makeHome(home: string, create: boolean): void {
  if (!create && !existsSync(home)) return
  sayWeWrite()
  try {
    makeDirs(join(home, 'timelines'), 0o700)
  } catch (cause) {
    throw unusableHome(home, cause)
  }
}

/** Something could not be made in it. */
export const unusableHome = (home: string, cause: unknown): SavepointError =>
  new SavepointError(
    isNoRoom(cause) ? 'disk.full' : 'io.failed',
    `Cannot use ${home}: ${isNoRoom(cause) ? fullWords(cause) : wordsOf(cause)}`,
    { hint: 'Set SAVEPOINT_HOME to a directory that you can write to', cause },
  )

export function openStore(directory: string, repair: boolean, notice: (text: string) => void): Store {
  // First: what lies beside a format that cannot be read is not for us to mend.
  Store.prepare(directory)
  if (repair) Store.makeParts(directory)
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
  const room = `Free ${formatBytes(RESERVE_BYTES)} or more`
  const [code, state, mend] = {
    full: ['disk.full', 'its disk is full', room] as const,
    quota: [
      'disk.full',
      'your quota on its disk is used up',
      `${room} of what counts against it, or have it raised`,
    ] as const,
    'read-only': ['io.failed', 'it is read-only for this user', 'Make it writable'] as const,
  }[why]
  return new SavepointError(code, `Cannot write to ${home}: ${state}`, {
    hint: `${mend}, then say it again. Until then history can be read, and \`savepoint rollback SNAP --to DIR\` writes a state elsewhere`,
  })
}
