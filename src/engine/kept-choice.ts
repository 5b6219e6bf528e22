/** Which versions of a file that a run destroys again and again are worth a place: decided before any of them is stored. */
import type { Raw } from '../model/raw-path.ts'

/** Of each path so many versions at most: a script that writes a file again and again must not fill the timeline. */
const MAX_VERSIONS = 3
/** Beside those, so many of somebody else's: none of them goes for the sake of what the run itself has written. */
const MAX_OTHERS = 20

export interface Destroyed {
  path: Raw
  /** Somebody else's work, as far as is known. */
  isOthers: boolean
}

/**
 * The newest that differ, in the order in which they were given, which is that of the destruction. Contents are asked for only
 * where there are more of a path than may stay, and no more of them than it takes. `contentOf` says undefined when there is none;
 * `knownOf` is what HEAD has at the path: that is worth nothing.
 */
export async function chooseVersions<T extends Destroyed>(
  versions: readonly T[],
  contentOf: (version: T) => Promise<string | undefined>,
  knownOf: (path: Raw) => string | undefined,
): Promise<T[]> {
  const chosen = new Set<T>()
  for (const [path, all] of Map.groupBy(versions, each => each.path)) {
    const some = all.length <= MAX_VERSIONS ? all : await newestOf(all, contentOf, knownOf(path))
    for (const version of some) chosen.add(version)
  }
  return versions.filter(version => chosen.has(version))
}

async function newestOf<T extends Destroyed>(
  all: readonly T[],
  contentOf: (version: T) => Promise<string | undefined>,
  known: string | undefined,
): Promise<T[]> {
  const chosen: T[] = []
  let newer: string | undefined
  let others = 0
  let isFull = false
  for (const version of all.toReversed()) {
    if (isFull && !(version.isOthers && others < MAX_OTHERS)) continue
    const content = await contentOf(version)
    if (content === undefined || content === known) continue
    const last = chosen.at(-1)
    if (content !== newer) {
      isFull ||= chosen.length >= MAX_VERSIONS
      if (isFull && !version.isOthers) continue
      chosen.push(version)
      if (version.isOthers) others++
    } else if (version.isOthers || !last!.isOthers) chosen[chosen.length - 1] = version
    newer = content
  }
  return chosen
}
