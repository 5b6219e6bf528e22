/**
 * SQLite files, also where nothing can be written. In WAL mode even reading writes: the index of the log lies in a shared
 * file, and with no room for that file, or no right to make it, nothing opens.
 *
 * Then, in this order:
 * - SQLite's own read-only mode. It works where the log and its index are there and can be read, and only it is sound
 *   beside a live writer.
 * - A private copy of the file and its log. `immutable=1` would save the copy, but it ignores the log, and it answers
 *   wrong when a writer comes: the place is only unwritable to us, not to its owner or through another mount.
 */
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errnoOf, isNoRoom, isUnwritable } from '../errors/errors.ts'
import { asDamage, explainDamage } from './damage.ts'
import { makePrivate, syncDirectory, syncFile, temporaryName } from './durable.ts'
import { failpoint } from './failpoint.ts'
import { asQuota, tryToWrite } from './quota.ts'
import { DatabaseSync } from './sqlite.ts'

const BUSY_TIMEOUT_MS = 30_000
/** How often a copy is begun again because somebody wrote meanwhile. */
const MAX_COPIES = 20
/** Where nothing is written to a disk: for a machine whose only disk is full. */
const MEMORY_DIRECTORY = '/dev/shm'

/** The log outlives the processes that write it (see `untilExit`), and the first to open the file reads it: kept short. */
const LOG_LIMITS = 'PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576'

/** Between them nothing waits for the disk: after a power cut, what was committed there may not have happened. */
export const LOOSE = 'PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0'
export const FIRM = `PRAGMA synchronous = FULL; ${LOG_LIMITS}`

/** Why a place cannot be written. */
export type Unwritable = 'full' | 'quota' | 'read-only'

export interface OpenedDatabase {
  database: DatabaseSync
  /** Set when it can only be read: every write throws. */
  unwritable: Unwritable | undefined
  /**
   * Whether its name still leads to it: somebody may have deleted it under us, and what is written then is lost. Of a copy:
   * whether nobody has written since to what it is a copy of.
   */
  isInPlace(): boolean
}

/**
 * Opens the database in `file`; where that can be written, it is made if need be. Throws what SQLite or the system says,
 * but for damage, also when that is met later: `store.damaged` with `damageHint`.
 */
export function openDatabase(file: string, schema: string, damageHint: string): OpenedDatabase {
  try {
    const opened = openAnyhow(file, schema)
    explainDamage(opened.database, file, damageHint)
    return opened
  } catch (error) {
    throw asDamage(error, file, damageHint)
  }
}

function openAnyhow(file: string, schema: string): OpenedDatabase {
  try {
    makeDatabase(file, schema)
    // In one piece: else a new file waits for the disk after each table.
    const tables = statSync(file).size === 0 ? `BEGIN IMMEDIATE; ${schema}; COMMIT` : schema
    const database = openWith(file, `PRAGMA journal_mode = WAL; ${FIRM}; ${tables}`)
    const place = placeOf(file)
    return { database, unwritable: undefined, isInPlace: () => placeOf(file) === place }
  } catch (thrown) {
    const error = asQuota(thrown, file)
    // Nothing in it yet: there is nothing to read.
    if (!isUnwritable(error) || fileState(file) === '') throw error
    return { ...openForReading(file), unwritable: whyUnwritable(error, file) }
  }
}

/**
 * Makes the database, unless there is a file; `fill` puts the first rows into it. Waits for the disk once, when all is there,
 * and not after each step. Where the filesystem knows no links the file is empty: whoever opens it makes the rest.
 */
export function makeDatabase(file: string, schema: string, fill: (database: DatabaseSync) => void = () => {}): void {
  if (!existsSync(file)) makeBeside(file, schema, fill)
  makePrivate(file)
}

function makeBeside(file: string, schema: string, fill: (database: DatabaseSync) => void): void {
  const temporary = temporaryName(file)
  try {
    makePrivate(temporary)
    const setUp = `PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; BEGIN; ${schema}; COMMIT`
    const database = openWith(temporary, setUp)
    try {
      fill(database)
    } finally {
      database.close()
    }
    syncFile(temporary)
    failpoint('database:made')
    linkSync(temporary, file)
    syncDirectory(dirname(file))
  } catch (error) {
    // Another process came first, for example.
    if (!NOT_LINKED.has(errnoOf(error) ?? '')) throw error
  } finally {
    rmSync(temporary, { force: true })
  }
}

const NOT_LINKED = new Set(['EEXIST', 'EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'])

const placeOf = (file: string): string | undefined => {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}

/**
 * With the right to write, what is lacking is room: SQLite does not tell that it found no inode for the log. A filesystem that became
 * read-only by an error of its disk grants the right, and refuses what is made. The file itself is not opened: closing it would drop
 * the locks that this process may have on it.
 */
function whyUnwritable(error: unknown, file: string): Unwritable {
  try {
    for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK)
    tryToWrite(dirname(file), PROBE_BYTES)
    return 'full'
  } catch (refused) {
    if (errnoOf(refused) === 'EDQUOT') return 'quota'
    return isNoRoom(error) || isNoRoom(refused) ? 'full' : 'read-only'
  }
}

/** A block: a quota counts those. */
const PROBE_BYTES = 4096

function openForReading(file: string): Omit<OpenedDatabase, 'unwritable'> {
  const url = pathToFileURL(file)
  url.searchParams.set('mode', 'ro')
  const place = placeOf(file)
  const state = stateOf(file)
  try {
    return { database: openWith(url, READ_ONLY), isInPlace: () => placeOf(file) === place }
  } catch {
    return { database: openCopy(file), isInPlace: () => stateOf(file) === state }
  }
}

/** Temporary results of a query must not need a disk either. The first query tells whether the file can be read. */
const READ_ONLY = 'PRAGMA temp_store = MEMORY; PRAGMA query_only = ON; SELECT 1 FROM sqlite_master'

/** The copy is deleted as soon as it is open, so that nothing stays behind whatever happens to this process. */
function openCopy(file: string): DatabaseSync {
  const directory = copyStable(file)
  try {
    // Without the log from here on: a file that has no name any more cannot find it.
    return openWith(join(directory, COPY), `PRAGMA journal_mode = DELETE; ${READ_ONLY}`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const COPY = 'copy.sqlite'

/** Copies the file and its log as they were at one moment: again when either changed meanwhile. Returns the directory. */
function copyStable(file: string): string {
  let failure: unknown
  for (const place of [tmpdir(), MEMORY_DIRECTORY]) {
    let directory: string | undefined
    try {
      directory = mkdtempSync(join(place, 'savepoint-reading-'))
      for (let copies = 0; copies < MAX_COPIES; copies++) {
        const before = stateOf(file)
        copyIfThere(file, join(directory, COPY))
        copyIfThere(`${file}-wal`, join(directory, `${COPY}-wal`))
        if (stateOf(file) === before) return directory
      }
      throw Object.assign(new Error(`${file} is being written all the time`), { code: 'EBUSY' })
    } catch (error) {
      failure ??= error
      if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
    }
  }
  throw failure
}

function copyIfThere(from: string, to: string): void {
  rmSync(to, { force: true })
  if (fileState(from) === '') return
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  // The mode comes with it, and may be what keeps us from writing.
  chmodSync(to, 0o600)
}

const stateOf = (file: string): string => `${fileState(file)} ${fileState(`${file}-wal`)}`

/** '' when there is no such file, or nothing in it. */
function fileState(file: string): string {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat && stat.size > 0n ? `${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}` : ''
}

function openWith(path: string | URL, setUp: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  try {
    database.exec(setUp)
    return database
  } catch (error) {
    // Its locks would be in the way of whoever tries next.
    database.close()
    throw error
  }
}
