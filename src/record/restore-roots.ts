/** Below which directories a bundle is restored in place: each is planned and carried out on its own, in one mount of one filesystem. */
import { accessSync, constants, lstatSync, type Stats, statSync } from 'node:fs'
import { mountsBelow } from '../backends/mounts-below.ts'
import { isWithin, type Raw, rawToBytes } from '../model/raw-path.ts'
import type { BundleFile } from './bundle.ts'
import { isBelow } from './path-trie.ts'
import type { Side } from './restore-trees.ts'

export interface RestoreRoot {
  directory: Raw
  /** Whether this user can put anything there; what is the user's own is opened for it. */
  isUsable: boolean
  files: BundleFile[]
}

const above = (path: Raw): Raw => path.slice(0, Math.max(path.lastIndexOf('/'), 1))

interface Place extends Pick<RestoreRoot, 'directory' | 'isUsable'> {
  /** What nothing can be renamed out of: a filesystem, and of one that is mounted (bound) in several places, that place. */
  mount: string
}

/** Where things are mounted: files, too. */
const mountPoints = (): ReadonlySet<Raw> => new Set(mountsBelow(Buffer.from('/')).map(point => `/${point}`))

function placeOf(directory: Raw, { dev, uid }: Stats, mounted: ReadonlySet<Raw>): Place {
  const user = process.getuid?.()
  let point = directory
  while (point !== '/' && !mounted.has(point)) point = above(point)
  return { directory, mount: `${dev} ${point}`, isUsable: user === 0 || uid === user || isWritable(directory) }
}

function isWritable(directory: Raw): boolean {
  try {
    accessSync(rawToBytes(directory), constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The nearest directory above a path that exists, from `start` down, and not by way of a link: that would lead elsewhere. */
function nearestBelow(start: Place, mounted: ReadonlySet<Raw>): (path: Raw) => Place {
  const known = new Map([[start.directory, start]])
  const find = (directory: Raw): Place => {
    const seen = known.get(directory)
    if (seen) return seen
    const up = find(above(directory))
    const stat = up.directory === above(directory) ? look(directory) : undefined
    const place = stat?.isDirectory() ? placeOf(directory, stat, mounted) : up
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
  const covers = (top: Place, { directory, mount }: Place) =>
    top.mount === mount && isWithin(directory, top.directory === '/' ? '' : top.directory)
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
 * that exist. So it is below `start`, too, where something else is mounted or the user may not write in `start` itself.
 * `busy`: at which something is mounted, so that nothing else can take their place.
 */
export function restoreRoots(
  all: readonly BundleFile[],
  start: Raw | undefined,
  anywhere: boolean,
  side: Side,
): { roots: RestoreRoot[]; outside: number; busy: BundleFile[] } {
  const mounted = mountPoints()
  const isBusy = (file: BundleFile) => mounted.has(file.raw) && file[side].type !== 'directory'
  const files = all.filter(file => !isBusy(file))
  const inside = start === undefined ? [] : files.filter(({ raw }) => isBelow(raw, start))
  const others = start === undefined ? files : files.filter(({ raw }) => !isBelow(raw, start))
  const top = start === undefined ? undefined : placeOf(start, statSync(rawToBytes(start)), mounted)
  const roots = top ? group(inside, nearestBelow(top, mounted), [top]) : []
  const busy = all.filter(file => isBusy(file) && (anywhere || (start !== undefined && isBelow(file.raw, start))))
  // Where the output of the command went is nobody's loss.
  if (!anywhere) return { roots, outside: others.filter(({ inherited }) => !inherited).length, busy }
  const whole = placeOf('/', statSync('/'), mounted)
  return { roots: [...roots, ...group(others, nearestBelow(whole, mounted))], outside: 0, busy }
}
