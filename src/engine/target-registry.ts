/**
 * Which directories have timelines. A timeline lives in timelines/<id>/, where the id comes from the target's path when
 * it was made; target.json says which directory it is, so that a target that was moved is found by its identity.
 */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { errnoOf, isUnwritable, SavepointError } from '../errors/errors.ts'
import { hashBytes, idToHex } from '../model/id.ts'
import { type Raw, rawFromBytes, rawToBytes, showPath } from '../model/raw-path.ts'
import { quoteWord } from '../model/shell-quote.ts'
import type { Stat } from '../native/addon.ts'
import { writeDurably } from '../store/durable.ts'
import { makeDirs } from '../store/make-dirs.ts'
import {
  type DirIdentity,
  identityOf,
  isInCopy,
  isOnAnotherDataset,
  lastingIdentity,
  lookAtDir,
  sameIdentity,
  statDir,
} from '../targets/dir/dir-target.ts'
import { makeTimeline } from '../timeline/timeline-schema.ts'
import { homeOfAccount, unusableHome } from './home.ts'

const ID_LENGTH = 16
const FORMAT = 1

export interface RegisteredTarget {
  id: string
  directory: string
  path: Buffer
  identity: DirIdentity
  /** Where it was before it was moved, or gave way to one that was adopted. */
  former?: Buffer
  /** Taken by --force in the place of another directory, and not yet recorded: a look at it shall change nothing. */
  isUnrecorded?: boolean
}

/** The timeline of the nearest directory at or above `start` on its filesystem, or undefined. */
export function findTarget(home: string, start: Buffer, notice: (text: string) => void): RegisteredTarget | undefined {
  return quickTarget(home, start) ?? searchUp(home, start, notice)
}

function quickTarget(home: string, path: Buffer): RegisteredTarget | undefined {
  const quick = readTarget(home, timelineIdFor(path)) ?? refuseDamaged(home, timelineIdFor(path))
  return quick?.path.equals(path) ? quick : undefined
}

/** The timeline of exactly this directory. */
export function targetAt(home: string, path: Buffer, notice: (text: string) => void): RegisteredTarget | undefined {
  const quick = quickTarget(home, path)
  if (quick) return quick
  const targets = allTargets(home)
  return targetHere(targets, path, notice) ?? findFormer(targets, path, notice)
}

export function allTargets(home: string): RegisteredTarget[] {
  const directory = join(home, 'timelines')
  if (!existsSync(directory)) return []
  return readdirSync(directory).flatMap(id => readTarget(home, id) ?? [])
}

/** By path, or by identity: a directory that was moved keeps its timeline, whose record is brought up to date. */
function searchUp(home: string, start: Buffer, notice: (text: string) => void): RegisteredTarget | undefined {
  const targets = allTargets(home)
  if (targets.length === 0) return undefined
  for (let path: Buffer | undefined = start; path; path = parentPath(path)) {
    const found = targetHere(targets, path, notice)
    if (found) return found
    // What is above does not hold it: it would be called protected, and is not.
    if (isOnItsOwn(path)) break
  }
  return findFormer(targets, start, notice)
}

function targetHere(targets: RegisteredTarget[], path: Buffer, notice: (text: string) => void) {
  const known = targets.find(target => target.path.equals(path))
  if (known) return known
  const stat = lookAtDir(path)
  const alike = stat ? targets.filter(target => sameIdentity(target.identity, identityOf(stat))) : []
  // The old place still being this very directory means a second path to it (a bind mount), not a move.
  const same = alike.find(target => atItsPlace(target)?.dev === stat!.dev)
  if (same) return same
  // A snapshot or clone has the identity of what it was made of, which may be where it was. Or both have been moved.
  const isOther = ({ identity }: RegisteredTarget) => isInCopy(path, identity) || isOnAnotherDataset(path, identity)
  const gone = alike.filter(target => !atItsPlace(target) && !isOther(target))
  const [moved, another] = gone.length > 1 ? gone.filter(target => nameOf(target.path) === nameOf(path)) : gone
  if (!moved || another) return undefined
  if (isTellable(path, stat!)) return followMove(moved, path, notice)
  // Whoever has moved it knows.
  if (stat!.btimeNs === 0n)
    notice(`if ${shown(moved.path)} was moved here, --adopt ${quoteWord(shown(moved.path))} takes its timeline along`)
  return undefined
}

/** undefined when it is gone, or another directory is there. */
export function atItsPlace({ path, identity }: RegisteredTarget): Stat | undefined {
  const stat = lookAtDir(path)
  return stat && isAt({ path, identity }, stat) ? stat : undefined
}

/** Whether what is at its path is the target. */
export const isAt = ({ path, identity }: Pick<RegisteredTarget, 'path' | 'identity'>, stat: Stat): boolean =>
  sameIdentity(identityOf(stat), identity) && !isOnAnotherDataset(path, identity)

/** The root of a filesystem, dataset or subvolume, or a directory of one that is mounted there: `native/addon/listing.c` does not enter it. */
function isOnItsOwn(path: Buffer): boolean {
  const [stat, above] = [path, parentPath(path) ?? path].map(each => lookAtDir(each))
  return stat !== undefined && above !== undefined && (stat.dev !== above.dev || stat.mount !== above.mount)
}

/**
 * Whether it can be told from all others. A snapshot that a filesystem keeps cannot be told from what it was taken of; nor,
 * where no time of birth is known (zfs-fuse), a directory from one that was given the same number when it was gone.
 */
function isTellable(path: Buffer, { btimeNs }: Stat): boolean {
  if (btimeNs === 0n) return false
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch (error) {
    return errnoOf(error) !== 'EROFS'
  }
}

/** Of a place where nothing is any more: the target that was moved away from it. */
function findFormer(targets: RegisteredTarget[], place: Buffer, notice: (text: string) => void) {
  const isFrom = (target: RegisteredTarget) => target.former?.equals(place) && atItsPlace(target)
  const target = lookAtDir(place) ? undefined : targets.find(isFrom)
  if (!target) return undefined
  notice(`the target was moved from ${shown(place)} to ${shown(target.path)}`)
  return target
}

function followMove(known: RegisteredTarget, path: Buffer, notice: (text: string) => void): RegisteredTarget {
  notice(`the target was moved from ${shown(known.path)} to ${shown(path)}; its timeline moves with it`)
  const identity = lastingIdentity(path, known.identity)
  const moved = { ...known, identity, path: Buffer.from(path), former: known.path }
  noteTarget(moved)
  return moved
}

/** The timeline of this directory, which has none, or got one since that was looked at: two commands at once make one. */
export function createTarget(home: string, path: Buffer, force: boolean, env: NodeJS.ProcessEnv): RegisteredTarget {
  const proposed = proposeTarget(home, path, force, env)
  if (existsSync(join(proposed.directory, 'target.json'))) return proposed
  const target = { ...proposed, identity: lastingIdentity(path, proposed.identity) }
  makeDirectory(home, target.directory)
  // Before the record: from then on, a database that is not there has been lost (see openTimeline).
  makeTimeline(join(target.directory, 'timeline.sqlite'))
  writeTarget(target)
  return target
}

/** What is to be made in it is made by its name: the message of `recursive` on a disk that is read-only would be of another thing. */
function makeDirectory(home: string, directory: string): void {
  try {
    makeDirs(directory, 0o700)
  } catch (cause) {
    throw errnoOf(cause) ? unusableHome(home, cause) : cause
  }
}

/** What would be made for this directory, or has just been; nothing is written. Throws when it cannot, or shall not, be protected. */
export function proposeTarget(home: string, path: Buffer, force: boolean, env: NodeJS.ProcessEnv): RegisteredTarget {
  refuseWholeHome(path, force, env)
  refuseOwnStore(home, path)
  const stat = statDir(path)
  if (!stat) throw missingTarget(path, 'protect', 'Make it first, or name another one with --target')
  let id = timelineIdFor(path)
  while (existsSync(join(home, 'timelines', id, 'target.json'))) {
    const made = readTarget(home, id)
    if (made?.path.equals(path)) return made
    // Of a target that was here, and was moved.
    id = idToHex(hashBytes(Buffer.from(id))).slice(0, ID_LENGTH)
  }
  return { id, directory: join(home, 'timelines', id), path, identity: identityOf(stat) }
}

/** Nothing is there, or something else. */
export function missingTarget(path: Buffer, verb: string, hint: string): SavepointError {
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined
  const what = isThere ? 'it is not a directory' : 'the directory does not exist'
  return new SavepointError('target.missing', `Cannot ${verb} ${shown(path)}: ${what}`, {
    hint: isThere ? 'Name the directory that it lies in' : hint,
  })
}

export function writeTarget(target: RegisteredTarget): void {
  const { path, identity, former } = target
  const content = {
    format: FORMAT,
    kind: 'dir',
    path: shown(path),
    path_bytes: path.toString('base64'),
    ...identity,
    former_bytes: former?.toString('base64'),
  }
  writeDurably(join(target.directory, 'target.json'), `${JSON.stringify(content, null, 2)}\n`)
}

/** The same where the record may stay as it is for now: looking at history must not need a home that can be written. */
export function noteTarget(target: RegisteredTarget): void {
  try {
    writeTarget(target)
  } catch (error) {
    if (!isUnwritable(error)) throw error
  }
}

function readTarget(home: string, id: string): RegisteredTarget | undefined {
  const directory = join(home, 'timelines', id)
  try {
    const known = JSON.parse(readFileSync(join(directory, 'target.json'), 'utf8'))
    const { path_bytes, ino, btimeNs, subvolume, dataset, former_bytes } = known
    const former = former_bytes === undefined ? undefined : Buffer.from(former_bytes, 'base64')
    const identity = { ino, btimeNs, subvolume, dataset }
    return { id, directory, path: Buffer.from(path_bytes, 'base64'), identity, former }
  } catch {
    return undefined
  }
}

/** A record that is there but cannot be read hides a history: that must be said, not a second one begun. */
function refuseDamaged(home: string, id: string): undefined {
  const file = join(home, 'timelines', id, 'target.json')
  if (!existsSync(file)) return undefined
  throw new SavepointError('store.damaged', `Cannot read ${file}: it does not say which directory it belongs to`, {
    hint: 'Bring it back from a backup; the history itself is in the files beside it',
    data: { timeline: id },
  })
}

function refuseWholeHome(path: Buffer, force: boolean, env: NodeJS.ProcessEnv): void {
  if (force) return
  const isHome = isSameDir(path, Buffer.from(env.HOME || homeOfAccount() || '/'))
  if (!isHome && !path.equals(Buffer.from('/'))) return
  throw new SavepointError(
    'target.refused',
    `Cannot protect ${shown(path)}: it is ${isHome ? 'your whole home directory' : 'the whole machine'}`,
    {
      hint: 'Go to a project directory. If you mean it: `savepoint snapshot --force`, or `savepoint run --force -- COMMAND`',
    },
  )
}

/** By identity: $HOME may be a link, or end in a slash. */
function isSameDir(a: Buffer, b: Buffer): boolean {
  const [first, second] = [a, b].map(path => statSync(path, { bigint: true, throwIfNoEntry: false }))
  return first !== undefined && second !== undefined && first.dev === second.dev && first.ino === second.ino
}

/** What we write while we capture would never hold still, and a rollback would rewind the store that it reads from. */
function refuseOwnStore(home: string, path: Buffer): void {
  if (!existsSync(home)) return
  const inside = relativeTo(realpathSync.native(home, 'buffer') as unknown as Buffer, path)
  if (inside === undefined || !/^$|^(store|timelines)(\/|$)/.test(inside)) return
  throw new SavepointError('target.refused', `Cannot protect ${shown(path)}: it belongs to Savepoint's own store`, {
    hint: 'Go to a project directory',
  })
}

const timelineIdFor = (path: Buffer): string => idToHex(hashBytes(path)).slice(0, ID_LENGTH)
const nameOf = (path: Buffer): Raw => basename(rawFromBytes(path))
const shown = (path: Buffer): string => showPath(rawFromBytes(path))

export function parentPath(path: Buffer): Buffer | undefined {
  if (path.length <= 1) return undefined
  const slash = path.lastIndexOf(0x2f)
  return slash <= 0 ? Buffer.from('/') : path.subarray(0, slash)
}

/** `path` relative to `directory`, or undefined when it is not inside. '' when they are equal. */
export function relativeTo(directory: Buffer, path: Buffer): Raw | undefined {
  const [base, inside] = [rawFromBytes(directory), rawFromBytes(path)]
  if (base === inside) return ''
  const prefix = base === '/' ? '/' : `${base}/`
  return inside.startsWith(prefix) ? inside.slice(prefix.length) : undefined
}

/** Absolute path of something inside the target. */
export const absolutePath = (target: Buffer, path: Raw): Buffer =>
  path === '' ? target : Buffer.concat([target, Buffer.from('/'), rawToBytes(path)])
