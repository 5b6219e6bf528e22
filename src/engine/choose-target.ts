/** Which timeline a command means: by --target, --adopt, or the nearest directory above that has one. */
import { existsSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { errnoOf, isDiskGone, SavepointError } from '../errors/errors.ts'
import { isWithin, type Raw, rawFromBytes, rawFromText, rawToBytes, showPath } from '../model/raw-path.ts'
import { resolveRaw } from '../model/resolve-raw.ts'
import { quoteWord } from '../model/shell-quote.ts'
import { identityOf, lookAtDir, sameIdentity, statDir } from '../targets/dir/dir-target.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { adoptTarget } from './adopt-target.ts'
import type { Context } from './context.ts'
import { refuseInKept } from './kept-around.ts'
import type { OpenOptions } from './savepoint.ts'
import {
  allTargets,
  createTarget,
  findTarget,
  isAt,
  missingTarget,
  parentPath,
  proposeTarget,
  type RegisteredTarget,
  targetAt,
} from './target-registry.ts'

/** Undefined: none is meant, and what is to be done concerns the whole store (`wholeStore`). */
export function chooseTarget(
  home: string,
  cwd: Buffer,
  options: OpenOptions,
  env: NodeJS.ProcessEnv,
  notice: (text: string) => void,
): RegisteredTarget | undefined {
  const path = meantDirectory(home, cwd, options.target)
  if (options.adopt !== undefined) {
    refuseInKept(home, path)
    return adoptTarget(home, path, options.adopt, realPath(resolveRaw(cwd, options.adopt)), notice)
  }
  const found = options.target === undefined ? findTarget(home, path, notice) : targetAt(home, path, notice)
  if (found) return options.force ? acceptReplaced(found) : found
  if (options.wholeStore && options.target === undefined && existsSync(join(home, 'store'))) return undefined
  refuseInKept(home, path)
  if (options.create) return createTarget(home, path, options.force ?? false, env)
  if (options.provisional) return proposeTarget(home, path, options.force ?? false, env)
  throw statDir(path)
    ? noTimeline(path, hintOfLink(home, path, resolveRaw(cwd, options.target ?? env.PWD ?? '')))
    : missingTarget(path, 'use', 'Name another one with --target; this one has no timeline, either')
}

export const noTimeline = (path: Buffer, hint?: string): SavepointError =>
  new SavepointError(
    'timeline.none',
    `Cannot find a timeline for ${showPath(rawFromBytes(path))}: it is not protected yet`,
    {
      hint: hint ?? 'Protect it with `savepoint snapshot`, or run your agent with `savepoint run -- COMMAND`',
    },
  )

/** It was reached by a link, which a run may have made lead here: what it led to before lies beside this, as a rule. */
function hintOfLink(home: string, path: Buffer, given: Raw): string | undefined {
  const parent = parentPath(path)
  const beside = isLinkTo(given, path)
    ? allTargets(home).filter(target => parent && parentPath(target.path)?.equals(parent))
    : []
  const last = beside.toSorted((a, b) => usedAt(a) - usedAt(b)).at(-1)
  if (!last) return undefined
  const [here, there] = [path, last.path].map(each => quoteWord(showPath(rawFromBytes(each))))
  return `${showPath(given)} is a link. If it led to ${there} before: savepoint -t ${there} log. To protect what it leads to now: savepoint -t ${here} snapshot`
}

function isLinkTo(given: Raw, path: Buffer): boolean {
  try {
    return linkAt(given) !== undefined && realPath(given).equals(path)
  } catch (error) {
    // Somebody's $PWD may be anything.
    if (errnoOf(error) || error instanceof SavepointError) return false
    throw error
  }
}

const usedAt = ({ directory }: RegisteredTarget): number =>
  statSync(join(directory, 'timeline.sqlite'), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Which directory a new timeline would be made for. */
export const meantDirectory = (home: string, cwd: Buffer, target: string | undefined): Buffer =>
  target === undefined ? cwd : targetPath(home, target, cwd)

/** --force: the directory that is there now is the target, from the first time on that something is stored of it. */
function acceptReplaced(target: RegisteredTarget): RegisteredTarget {
  const stat = statDir(target.path)
  if (!stat || isAt(target, stat)) return target
  return { ...target, identity: identityOf(stat), isUnrecorded: true }
}

/** Whose the timeline is. One that has nothing yet, because the first capture failed, is that of the directory which is there now. */
export function ownerOf(target: RegisteredTarget, db: TimelineDb): Pick<Context, 'identity' | 'unrecorded'> {
  const hasNone = () => db.snapshots(true).length === 0 && db.unendedRuns().length === 0
  const isEmpty = target.directory !== '' && db.head === undefined && hasNone()
  const { identity, isUnrecorded } = isEmpty ? acceptReplaced(target) : target
  return { identity, unrecorded: isUnrecorded ? { ...target, identity } : undefined }
}

function targetPath(home: string, target: string, cwd: Buffer): Buffer {
  const [, kind, name] = /^(?:(dir|env|container):)?(.*)$/s.exec(target)!
  if (kind === 'env' || kind === 'container') {
    throw new SavepointError('unsupported', `Cannot use ${target}: this version knows directories only`, {
      hint: 'Use dir:PATH',
    })
  }
  return knownPath(home, resolveRaw(cwd, name!))
}

/**
 * Targets are known by paths without links. Where one of them was, a link that is there now does not lead to it, unless it
 * leads to that very directory, which was moved.
 */
function knownPath(home: string, path: Raw): Buffer {
  const named = path === '/' ? Buffer.from(path) : inDirectory(realPath(dirname(path)), basename(path))
  const known = allTargets(home).find(target => target.path.equals(named))
  if (!known || lookAtDir(named)) return known ? named : realPath(path)
  const behind = realPath(path)
  const stat = lookAtDir(behind)
  return stat && sameIdentity(identityOf(stat), known.identity) ? behind : named
}

export function currentDirectory(home: string, cwd: string | undefined): Buffer {
  if (cwd !== undefined) return knownPath(home, rawFromText(resolve(cwd)))
  try {
    return readlinkSync('/proc/self/cwd', 'buffer') as unknown as Buffer
  } catch {
    return Buffer.from(process.cwd())
  }
}

/**
 * A directory that is gone (the run removed it) keeps its name; what is above it may still be reached through links, also
 * through one that leads to where something was. `native`, because node's own makes text of the path.
 */
export function realPath(path: Raw): Buffer {
  try {
    return realpathSync.native(rawToBytes(path), 'buffer') as unknown as Buffer
  } catch (error) {
    if (errnoOf(error) === 'ENAMETOOLONG') throw tooLong(path)
    if ((errnoOf(error) !== 'ENOENT' && !isDiskGone(error)) || path === '/') throw error
    const link = linkAt(path)
    if (link !== undefined) return realPath(resolveRaw(rawToBytes(dirname(path)), link))
    return inDirectory(realPath(dirname(path)), basename(path))
  }
}

/** Whether it lies in Savepoint's home, whatever links lead there: the home itself is often reached by one. */
export function isOurs(home: string, path: Raw): boolean {
  try {
    return isWithin(rawFromBytes(realPath(path)), rawFromBytes(realPath(rawFromText(home))))
  } catch (error) {
    // Nothing can be made there, which is said by who tries.
    if (errnoOf(error)) return false
    throw error
  }
}

const SHOWN_CHARS = 60

/** More than Linux takes in one call: the path itself would fill the screen. */
function tooLong(path: Raw): SavepointError {
  const start = showPath(path).slice(0, SHOWN_CHARS)
  return new SavepointError('unsupported', `Cannot use ${start}…: its path is too long (${path.length} bytes)`, {
    hint: 'Say it in a directory further up; what lies so deep inside of that is captured as everything else',
  })
}

/** Where a symlink leads; undefined when there is none. */
function linkAt(path: Raw): Raw | undefined {
  try {
    return rawFromBytes(readlinkSync(rawToBytes(path), 'buffer') as unknown as Buffer)
  } catch {
    return undefined
  }
}

const inDirectory = (directory: Buffer, name: Raw): Buffer =>
  Buffer.concat([directory, rawToBytes(directory.length > 1 ? `/${name}` : name)])
