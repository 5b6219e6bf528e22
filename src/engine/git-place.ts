/** Where a command of git works, and whether that has to do with the target. */
import { realpathSync } from 'node:fs'
import { findGitDir } from '../files/git-dir.ts'
import type { GitCall } from '../model/git-call.ts'
import { isWithin, parentOf, type Raw, rawFromBytes, rawFromText, rawToBytes } from '../model/raw-path.ts'

export const absolute = (cwd: Raw, path: Raw): Raw => (path.startsWith('/') ? path : `${cwd}/${path}`)

/** Without symbolic links; undefined when nothing is there. */
export function real(path: Raw): Raw | undefined {
  try {
    return rawFromBytes(realpathSync(rawToBytes(path), 'buffer'))
  } catch {
    return undefined
  }
}

/** The work tree around it; a command that acts on a repository reaches all of it. */
export function workTreeOf(place: Raw): Raw | undefined {
  for (let at = place; ; at = parentOf(at) || '/') {
    if (findGitDir(rawToBytes(at))) return at
    if (at === '/') return undefined
  }
}

/**
 * Whether the repository of a call lies in the target, or has the target in its work tree, or shares its objects with one
 * that does. `cwd`: where git was started. What cannot be found out counts as such: variables may say where it works.
 */
export function isOfTarget(target: Raw, cwd: Raw, { directory, gitDirectory }: GitCall): boolean {
  const place = real(absolute(cwd, rawFromText(directory)))
  const tree = place === undefined ? undefined : workTreeOf(place)
  if (tree === undefined) return true
  const git = findGitDir(rawToBytes(tree))
  const named = gitDirectory === undefined ? undefined : real(absolute(cwd, rawFromText(gitDirectory)))
  const directories = [git?.dir, git?.common].map(found => found && real(rawFromBytes(found)))
  const places = [tree, named, ...directories].filter(each => each !== undefined)
  return places.some(each => isWithin(each, target) || isWithin(target, each))
}
