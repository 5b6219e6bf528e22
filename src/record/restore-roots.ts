/** Below which directories a bundle is restored in place: each is planned and carried out on its own, on one filesystem. */
import { accessSync, constants, lstatSync, type Stats, statSync } from 'node:fs'
import { isWithin, type Raw, rawToBytes } from '../model/raw-path.ts'
import type { BundleFile } from './bundle.ts'
import { isBelow } from './path-trie.ts'

export interface RestoreRoot {
  directory: Raw
  /** Whether this user can put anything there; what is the user's own is opened for it. */
  isUsable: boolean
  files: BundleFile[]
}

const above = (path: Raw): Raw => path.slice(0, Math.max(path.lastIndexOf('/'), 1))

interface Place extends Pick<RestoreRoot, 'directory' | 'isUsable'> {
  /** Tells which filesystem that is. */
  dev: number
}

function placeOf(directory: Raw, { dev, uid }: Stats): Place {
  const user = process.getuid?.()
  return { directory, dev, isUsable: user === 0 || uid === user || isWritable(directory) }
}

function isWritable(directory: Raw): boolean {
  try {
    accessSync(rawToBytes(directory), constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The nearest directory above a path that exists. */
function nearest(path: Raw): Place {
  for (let directory = above(path); ; directory = above(directory)) {
    const stat = statSync(rawToBytes(directory), { throwIfNoEntry: false })
    if (stat?.isDirectory()) return placeOf(directory, stat)
    if (directory === '/') throw new Error('there is no root directory')
  }
}

/** The same below `start`, and not by way of a link: that would lead out of it. */
function nearestBelow(start: Place): (path: Raw) => Place {
  const known = new Map([[start.directory, start]])
  const find = (directory: Raw): Place => {
    const seen = known.get(directory)
    if (seen) return seen
    const up = find(above(directory))
    const stat = up.directory === above(directory) ? look(directory) : undefined
    const place = stat?.isDirectory() ? placeOf(directory, stat) : up
    known.set(directory, place)
    return place
  }
  return path => find(above(path))
}

/** Undefined also where the user may not look. */
function look(directory: Raw): Stats | undefined {
  try {
    return lstatSync(rawToBytes(directory))
  } catch {
    return undefined
  }
}

/** As few directories as there can be; what is below none that can be used has one of its own. */
function group(
  files: readonly BundleFile[],
  placeOfFile: (path: Raw) => Place,
  first: readonly Place[] = [],
): RestoreRoot[] {
  const found = files.map(file => ({ file, place: placeOfFile(file.raw) }))
  const covers = (top: Place, { directory, dev }: Place) =>
    top.dev === dev && isWithin(directory, top.directory === '/' ? '' : top.directory)
  const chosen: (Place & RestoreRoot)[] = []
  const places = new Set([...first, ...found.map(({ place }) => place)])
  for (const place of [...places].sort((a, b) => a.directory.length - b.directory.length))
    if (place.isUsable && !chosen.some(top => covers(top, place))) chosen.push({ ...place, files: [] })
  const shut = new Map<Raw, RestoreRoot>()
  for (const { file, place } of found) {
    const top = chosen.find(each => covers(each, place)) ?? shut.get(place.directory) ?? { ...place, files: [] }
    top.files.push(file)
    if (!top.isUsable) shut.set(place.directory, top)
  }
  return [...chosen.filter(({ files: below }) => below.length > 0), ...shut.values()]
}

/**
 * `start`: where the command started; undefined where that is gone. Others only with `anywhere`: then the nearest directories
 * that exist. So it is below `start`, too, where other filesystems are mounted or the user may not write in `start` itself.
 */
export function restoreRoots(
  files: readonly BundleFile[],
  start: Raw | undefined,
  anywhere: boolean,
): { roots: RestoreRoot[]; outside: number } {
  const inside = start === undefined ? [] : files.filter(({ raw }) => isBelow(raw, start))
  const others = start === undefined ? files : files.filter(({ raw }) => !isBelow(raw, start))
  const top = start === undefined ? undefined : placeOf(start, statSync(rawToBytes(start)))
  const roots = top ? group(inside, nearestBelow(top), [top]) : []
  // Where the output of the command went is nobody's loss.
  if (!anywhere) return { roots, outside: others.filter(({ inherited }) => !inherited).length }
  return { roots: [...roots, ...group(others, nearest)], outside: 0 }
}
