/** The target that a driver is asked about, and directories that states are kept in, for the drivers that keep them in some. */
import { existsSync, lstatSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { errnoOf, errnoWords, SavepointError } from '../errors/errors.ts'
import { addon } from '../native/addon.ts'
import type { NativeState, Place, Probe } from './native-backend.ts'
import { isLeftProbe } from './probe-name.ts'
import { failed } from './run-program.ts'

export const no = (reason: string, fix: string): Probe => ({ works: false, reason, fix })

/** The programs are told paths as text. */
export const whyNoText = (target: Buffer): Probe | undefined =>
  Buffer.from(target.toString()).equals(target) ? undefined : no('the path of the target is not UTF-8', 'Rename it')

/** The magic number that statfs has. */
export function filesystemType(path: Buffer): number {
  const fd = addon.openRoot(path)
  try {
    return addon.statfs(fd).type
  } finally {
    addon.close(fd)
  }
}

const WRITABLE_BY_OTHERS = 0o022

/** In what all timelines share, which may lie in a work tree: `git add -A` would stage what is kept there, with all secrets. */
const IGNORE_FILE = '.gitignore'
const IGNORE_ALL = '*\n'

/**
 * Makes the directory of a timeline, and the one above it that all timelines share. undefined: they are there, and ours
 * alone. Who else can write there, or leads us elsewhere by a link, could put a state of his in the place of one of ours.
 */
export function whyNotMade(place: string): string | undefined {
  for (const directory of [dirname(place), place]) {
    try {
      mkdirSync(directory, { mode: 0o700 })
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') return `${directory} cannot be made: ${errnoWords(error) ?? error}`
    }
    const why = whyNotOurs(directory)
    if (why !== undefined) return why
  }
  return whyNotHidden(dirname(place))
}

/** After the directory of the timeline is made: from then on nobody takes the file away for good (`removeShared`). */
function whyNotHidden(shared: string): string | undefined {
  try {
    hideFromGit(shared)
    return undefined
  } catch (error) {
    return `${join(shared, IGNORE_FILE)} cannot be written: ${errnoWords(error) ?? error}`
  }
}

/** May be called again: who was killed has left none, or an empty one. */
function hideFromGit(shared: string): void {
  const file = join(shared, IGNORE_FILE)
  if ((lstatSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0) return
  writeFileSync(file, IGNORE_ALL, { mode: 0o600 })
}

/** Where a `git clean -x` around them has taken away what hides them. What cannot be written there stays as it is. */
export function hideAgain(places: readonly Place[]): void {
  for (const shared of new Set(places.filter(place => place.startsWith('/')).map(place => dirname(place)))) {
    try {
      if (existsSync(shared) && whyNotOurs(shared) === undefined) hideFromGit(shared)
    } catch (error) {
      if (!errnoOf(error)) throw error
    }
  }
}

function whyNotOurs(directory: string): string | undefined {
  const stat = lstatSync(directory)
  if (!stat.isDirectory()) return `${directory} is ${stat.isSymbolicLink() ? 'a symbolic link' : 'no directory'}`
  if (stat.uid !== process.geteuid?.()) return `${directory} belongs to another user`
  return (stat.mode & WRITABLE_BY_OTHERS) !== 0 ? `other users may write in ${directory}` : undefined
}

/**
 * Where a state is now whose place was moved as a whole: in the first of those directories that has the place, and is ours
 * alone. undefined: it is where it was, or nobody knows where.
 */
export function movedPlace({ place, name }: NativeState, directories: readonly string[]): Place | undefined {
  if (!place.startsWith('/') || existsSync(place)) return undefined
  const candidates = directories.map(directory => join(dirname(directory), basename(place)))
  return candidates.find(
    candidate =>
      existsSync(join(candidate, name)) &&
      [dirname(candidate), candidate].every(each => whyNotOurs(each) === undefined),
  )
}

/** Where it is tried what works in a home that is not made yet: above that. Gone afterwards. */
export const PROBED_ABOVE = '.savepoint-probe'

/** What probes that were killed have left: in the places beside this one, in it, and above the home that it is in. */
export function leftProbes(place: Place): string[] {
  const above = join(dirname(dirname(dirname(place))), PROBED_ABOVE)
  const places = [dirname(place), above].flatMap(shared => namesIn(shared).map(name => join(shared, name)))
  return places.flatMap(each =>
    namesIn(each)
      .filter(isLeftProbe)
      .map(name => join(each, name)),
  )
}

/** What is kept in a place, without what probes and half-made ones are called. */
export const statesBelow = (place: Place): { name: string; path: string }[] =>
  namesIn(place).flatMap(name => (name.startsWith('.') ? [] : { name, path: join(place, name) }))

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** For who looks only at what comes next: what stays will be met by the next one. */
export function tidyIfPossible(tidy: () => void): void {
  try {
    tidy()
  } catch (error) {
    if (!(error instanceof SavepointError) && !errnoOf(error)) throw error
  }
}

/** A place that a probe has found may have changed since. */
export function makePlace(place: string, what: string): void {
  const why = whyNotMade(place)
  if (why !== undefined) throw failed(what, why)
}

/** The first directory that works; when none does, the reason of each, and what helps with the last. */
export function firstPlace(
  target: string,
  directories: readonly string[],
  tryPlace: (target: string, place: string) => Probe,
): Probe {
  const reasons = new Set<string>()
  let fix = OUTSIDE
  for (const directory of directories) {
    const probe = isInside(nearest(directory), target)
      ? no(`${directory} would be in the target itself`, OUTSIDE)
      : tryPlace(target, directory)
    if (probe.works) return probe
    reasons.add(probe.reason)
    fix = probe.fix
  }
  return no([...reasons].join('; '), fix)
}

export const OUTSIDE =
  'Make the directory above the target, or SAVEPOINT_HOME, one on the same filesystem that you can write to'

const isInside = (path: string, target: string): boolean => path === target || path.startsWith(`${target}/`)

/** Whether something is there. That it cannot be looked at, because it is another user's, or the disk fails, is no answer. */
export function isThere(path: string, look: (path: string) => unknown = lstatSync): boolean {
  try {
    look(path)
    return true
  } catch (error) {
    if (ABSENT.has(errnoOf(error) ?? '')) return false
    throw failed(`find ${path}`, errnoWords(error) ?? String(error))
  }
}

/** Without it, the filesystem that it is on may not be mounted; nor can that be told where it cannot be looked at. */
export function isPlaceAway({ place }: NativeState): boolean {
  try {
    return !isThere(place)
  } catch {
    return true
  }
}

const ABSENT = new Set(['ENOENT', 'ENOTDIR'])

/** Of what exists. */
export function nearest(path: string): string {
  return existsSync(path) ? path : nearest(dirname(path))
}

/** The directory of the timeline, and the one above it that all timelines share. */
export function removeIfEmpty(place: string): void {
  try {
    if (readdirSync(place).length === 0) rmdirSync(place)
    if (readdirSync(dirname(place)).every(name => name === IGNORE_FILE)) removeShared(dirname(place))
  } catch {}
}

/** Another timeline may make its directory in there meanwhile: then that stays, hidden as before. */
function removeShared(shared: string): void {
  rmSync(join(shared, IGNORE_FILE), { force: true })
  try {
    rmdirSync(shared)
  } catch {
    if (existsSync(shared)) hideFromGit(shared)
  }
}
