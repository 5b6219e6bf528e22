/**
 * A restore in place that is under way, noted in Savepoint's home: should it be killed, its stage lies in the directory that it restores
 * into, and everything that it replaced in the undo bundle. The next restore there finishes what it did or takes it back, as the user
 * says; then the stage goes, if all that is in it is elsewhere. If not, it is named until the user has removed it.
 */
import { createHash } from 'node:crypto'
import { closeSync, constants, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { errnoWords, SavepointError } from '../errors/errors.ts'
import { randomHex } from '../model/id.ts'
import { joinRaw, parentOf, type Raw, rawToBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { addon } from '../native/addon.ts'
import { writeDurably } from '../store/durable.ts'
import { type FileLock, isLocked, lockFile, lockHolder } from '../store/file-lock.ts'
import { makeDirs } from '../store/make-dirs.ts'
import { readWindows } from '../store/read-windows.ts'
import { withDir } from '../targets/dir/dir-target.ts'
import { removeTree } from '../targets/dir/remove-tree.ts'
import { SafeDirs } from '../targets/dir/safe-dirs.ts'
import { markOf } from '../targets/dir/stage-mark.ts'
import { Bundle, type BundleFile } from './bundle.ts'
import { namesIn } from './edited-since.ts'
import { OpenedDirs } from './opened-dirs.ts'
import type { BundleRestoreResult } from './results.ts'
import { openToRead } from './shut-file.ts'
import { Looks, toState } from './states.ts'

export interface RestoreUnderWay {
  /** Absolute. */
  directory: Raw
  stage: Raw
  /** Bundles. */
  bundle: string
  undo: string
  anywhere: boolean
  pid: number
  /**
   * `staging`: nothing was changed yet, and the stage has only copies of ours, perhaps half written. `kept`: it was finished or taken
   * back since, but its stage holds something that is nowhere else.
   */
  phase: 'staging' | 'switching' | 'kept'
}

export type Killed = RestoreUnderWay & { file: string }

export interface Note {
  /** Before the first thing is switched, in whichever directory. */
  switches(): void
  /** Nothing is left of it. */
  ends(): void
}

const LOCK_WAIT_MS = 10_000
const placeIn = (home: string) => join(home, 'restores')
const lockIn = (home: string) => join(home, 'restores.lock')

/** One at a time: waits for another one. */
export const lockRestores = (home: string, signal: AbortSignal | undefined): Promise<FileLock> =>
  lockFile(lockIn(home), 'exclusive', 'restore the bundle', { waitMs: LOCK_WAIT_MS, signal })

/** Before anything is staged. */
export function noteRestore(home: string, restore: Omit<RestoreUnderWay, 'phase'>): Note {
  makeDirs(placeIn(home), 0o700)
  const file = join(placeIn(home), `${restore.pid}-${randomHex(8)}.json`)
  const write = (phase: RestoreUnderWay['phase']) => writeDurably(file, JSON.stringify({ ...restore, phase }))
  write('staging')
  return { switches: () => write('switching'), ends: () => rmSync(file, { force: true }) }
}

/** Those whose process is dead: it would hold the lock. `isOurs`: we do. */
export function killedRestores(home: string, isOurs: boolean): Killed[] {
  if (!existsSync(placeIn(home))) return []
  const atWork = !isOurs && isLocked(lockIn(home)) ? lockHolder(lockIn(home))?.pid : undefined
  return readdirSync(placeIn(home))
    .filter(name => name.endsWith('.json'))
    .map(name => join(placeIn(home), name))
    .map(file => ({ ...(JSON.parse(readFileSync(file, 'utf8')) as RestoreUnderWay), file }))
    .filter(({ pid }) => pid !== atWork)
}

export const undoCommand = ({ anywhere, undo }: Pick<RestoreUnderWay, 'anywhere' | 'undo'>): string =>
  `savepoint bundle restore --before --in-place ${anywhere ? '--anywhere ' : ''}--force ${quoteWord(undo)}`

/** What to tell of them to whoever restores `bundle`, unless that ends it. */
export const killedWords = (home: string, bundle: string, isOurs: boolean): string[] =>
  killedRestores(home, isOurs)
    .filter(killed => !isOf(killed, bundle) && killed.phase !== 'kept')
    .map(killed => {
      const was = `a restore of ${quoteWord(killed.bundle)} in ${showPath(killed.directory)} was killed`
      return killed.phase === 'staging'
        ? `${was} before it changed anything: the same command removes what it left there (${showPath(killed.stage)})`
        : `${was}: the same command finishes it, and ${undoCommand(killed)} takes it back`
    })

const isOf = ({ bundle, undo }: RestoreUnderWay, restored: string) => restored === bundle || restored === undo

/** A restore that goes on now, and the directories that it is about. */
export interface RestoreNow {
  bundle: string
  anywhere: boolean
  directories: ReadonlySet<Raw>
}

/** Before it: of those that were killed before they changed anything, nothing is wanted. */
export async function clearUnbegun(home: string, now: RestoreNow): Promise<void> {
  for (const killed of concernedBy(now, home)) await clear(killed, () => isUntouched(killed))
}

/** After it: removes what they left. Returns what stays. */
export async function clearKilled(home: string, now: RestoreNow): Promise<BundleRestoreResult['leftAlone']> {
  const left: BundleRestoreResult['leftAlone'] = []
  for (const killed of concernedBy(now, home)) {
    const why = await clear(killed, root => isElsewhere(root, killed))
    if (why === undefined) continue
    left.push({ path: joinRaw(killed.directory, killed.stage), why })
    // What somebody else restores there ends it not.
    if (isOf(killed, now.bundle))
      writeDurably(killed.file, JSON.stringify({ ...killed, file: undefined, phase: 'kept' }))
  }
  return left
}

/** In its directories, and of the same bundle: that may be staged elsewhere by now, because there are other directories. */
const concernedBy = ({ bundle, anywhere, directories }: RestoreNow, home: string): Killed[] =>
  killedRestores(home, true).filter(
    killed => directories.has(killed.directory) || (isOf(killed, bundle) && (anywhere || !killed.anywhere)),
  )

/** Removes the stage if it has only copies, and the note when there is no stage. Returns why there still is one. */
async function clear(
  { directory, stage, file, phase }: Killed,
  hasOnlyCopies: (root: number) => boolean,
): Promise<'left-behind' | 'refused' | undefined> {
  // A filesystem that is not mounted just now may have it.
  if (!existsSync(rawToBytes(directory))) return undefined
  const work = async (root: number) => {
    if (existsAt(root, stage)) {
      if (phase !== 'staging' && !hasOnlyCopies(root)) return 'left-behind'
      const safe = new SafeDirs(root)
      const stuck = await removeTree(root, stage, safe)
      safe.close()
      if (stuck.length > 0) return 'refused'
    }
    rmSync(file, { force: true })
    return undefined
  }
  try {
    return await withDir(rawToBytes(directory), work)
  } catch (error) {
    if (errnoWords(error) === undefined && !(error instanceof SavepointError)) throw error
    return 'refused'
  }
}

function existsAt(root: number, path: Raw): boolean {
  try {
    return addon.statAt(root, path) !== undefined
  } catch {
    return false
  }
}

/** Whether all that was to be replaced is as it was. */
function isUntouched({ phase, undo }: Killed): boolean {
  if (phase === 'kept' || !existsSync(undo)) return false
  const looks = new Looks(new OpenedDirs(() => false))
  return filesOf(undo).every(({ raw, before }) => {
    const seen = looks.stateAt(raw)
    if (seen === 'unseen') return false
    const { exists, type, mode, size, mtime, target, target_bytes } = toState(seen)
    if (!exists || type === 'directory') return exists === before.exists && type === before.type && mode === before.mode
    return isDeepStrictEqual(
      [type, mode, size, mtime, target, target_bytes],
      [before.type, before.mode, before.size, before.mtime, before.target, before.target_bytes],
    )
  })
}

function filesOf(undo: string): readonly BundleFile[] {
  const bundle = new Bundle(undo)
  bundle.close()
  return bundle.files
}

/** Whether the undo bundle, or the one that was restored, has each content. */
function isElsewhere(root: number, { stage, undo }: Killed): boolean {
  if (!existsSync(undo)) return false
  const known = new Set(filesOf(undo).flatMap(({ before, after }) => [before.sha256, after.sha256]))
  // What its owner has shut is opened while it is looked at.
  const safe = new SafeDirs(root)
  const isKnown = (path: Raw): boolean => {
    const type = safe.in([parentOf(path)], () => addon.statAt(root, path)).mode & constants.S_IFMT
    if (type === constants.S_IFDIR) return namesIn(root, path, safe).every(name => isKnown(joinRaw(path, name)))
    return type !== constants.S_IFREG || path === joinRaw(stage, markOf(stage)!) || known.has(hashAt(root, path))
  }
  try {
    return isKnown(stage)
  } catch {
    // What cannot be looked at is not known to be elsewhere.
    return false
  } finally {
    safe.close()
  }
}

function hashAt(root: number, path: Raw): string {
  const fd = openToRead(flags => addon.openAt(root, path, flags, 0))
  try {
    const hash = createHash('sha256')
    for (const { bytes } of readWindows(fd)) hash.update(bytes)
    return hash.digest('hex')
  } finally {
    closeSync(fd)
  }
}
