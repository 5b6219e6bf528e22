/**
 * A restore in place that is under way, noted in Savepoint's home: should it be killed, its stage lies in the directory that it restores
 * into, and everything that it replaced in the undo bundle. The next restore there finishes what it did or takes it back, as the user
 * says; then the stage goes, if all that is in it is elsewhere.
 */
import { createHash } from 'node:crypto'
import { closeSync, constants, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isAlive } from '../engine/run-state.ts'
import { joinRaw, type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { addon } from '../native/addon.ts'
import { writeDurably } from '../store/durable.ts'
import { makeDirs } from '../store/make-dirs.ts'
import { readWindows } from '../store/read-windows.ts'
import { removeTree } from '../targets/dir/remove-tree.ts'
import { SafeDirs } from '../targets/dir/safe-dirs.ts'
import { markOf } from '../targets/dir/stage-mark.ts'
import { Bundle, type BundleFile } from './bundle.ts'
import { OpenedDirs } from './opened-dirs.ts'
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
}

const placeIn = (home: string) => join(home, 'restores')

/** Before anything is changed. Returns what to call when all is done. */
export function noteRestore(home: string, restore: RestoreUnderWay): () => void {
  makeDirs(placeIn(home), 0o700)
  const file = join(
    placeIn(home),
    `${restore.pid}-${Buffer.from(restore.directory, 'latin1').toString('hex').slice(-100)}.json`,
  )
  writeDurably(file, JSON.stringify(restore))
  return () => rmSync(file, { force: true })
}

/** Those whose process is dead. */
export const killedRestores = (home: string): (RestoreUnderWay & { file: string })[] =>
  !existsSync(placeIn(home))
    ? []
    : readdirSync(placeIn(home))
        .filter(name => name.endsWith('.json'))
        .map(name => join(placeIn(home), name))
        .map(file => ({ ...(JSON.parse(readFileSync(file, 'utf8')) as RestoreUnderWay), file }))
        .filter(({ pid }) => !isAlive(pid))

/** What to tell of them to whoever restores `bundle`, unless that ends it. */
export const killedWords = (home: string, bundle: string): string[] =>
  killedRestores(home)
    .filter(killed => bundle !== killed.bundle && bundle !== killed.undo)
    .map(
      killed =>
        `a restore of ${quoteWord(killed.bundle)} in ${showPath(killed.directory)} was killed: the same command finishes it, and ` +
        `savepoint bundle restore --before --in-place ${killed.anywhere ? '--anywhere ' : ''}--force ${quoteWord(killed.undo)} takes it back`,
    )

/** Before another restore into `directory` (open): of those that were killed before they changed anything, nothing is wanted. */
export const clearUnbegun = (home: string, directory: Raw, root: number): Promise<Raw[]> =>
  clear(home, directory, root, ({ undo }) => isUntouched(undo))

/** After another restore into `directory` (open): removes what they left there. Returns what holds something that is nowhere else. */
export async function clearKilled(home: string, directory: Raw, root: number): Promise<Raw[]> {
  const kept = await clear(home, directory, root, ({ stage, undo }) => isElsewhere(root, stage, undo))
  for (const killed of killedRestores(home)) if (killed.directory === directory) rmSync(killed.file, { force: true })
  return kept
}

async function clear(
  home: string,
  directory: Raw,
  root: number,
  isDone: (killed: RestoreUnderWay) => boolean,
): Promise<Raw[]> {
  const kept: Raw[] = []
  for (const killed of killedRestores(home)) {
    if (killed.directory !== directory) continue
    const isThere = existsAt(root, killed.stage)
    if (isThere && !isDone(killed)) {
      kept.push(killed.stage)
      continue
    }
    if (isThere) await removeTree(root, killed.stage, new SafeDirs(root))
    rmSync(killed.file, { force: true })
  }
  return kept
}

function existsAt(root: number, path: Raw): boolean {
  try {
    return addon.statAt(root, path) !== undefined
  } catch {
    return false
  }
}

/** Whether all that was to be replaced is as it was. */
function isUntouched(undo: string): boolean {
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
function isElsewhere(root: number, stage: Raw, undo: string): boolean {
  if (!existsSync(undo)) return false
  const known = new Set(filesOf(undo).flatMap(({ before, after }) => [before.sha256, after.sha256]))
  const isKnown = (path: Raw): boolean => {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    const type = addon.statAt(root, path).mode & TYPE_BITS
    if (type !== DIRECTORY && type !== FILE) return true
    const fd = addon.openAt(root, path, flags, 0)
    try {
      if (type === FILE) return path === joinRaw(stage, markOf(stage)!) || known.has(hashOf(fd))
      return readdirSync(`/proc/self/fd/${fd}`, 'buffer').every(name => isKnown(joinRaw(path, rawFromBytes(name))))
    } finally {
      closeSync(fd)
    }
  }
  try {
    return isKnown(stage)
  } catch {
    // What cannot be looked at is not known to be elsewhere.
    return false
  }
}

function hashOf(fd: number): string {
  const hash = createHash('sha256')
  for (const { bytes } of readWindows(fd)) hash.update(bytes)
  return hash.digest('hex')
}

const TYPE_BITS = 0o170000
const DIRECTORY = 0o040000
const FILE = 0o100000
