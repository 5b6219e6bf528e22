/** The directory a command is called in, also when an agent has deleted it under the shell's feet. */
import { existsSync, readlinkSync } from 'node:fs'

/** What Linux puts behind the name of a directory that does not exist any more. */
const REMOVED = ' (deleted)'

export interface WorkingDirectory {
  path: string
  /** The shell stands in a directory that does not exist any more; `path` is where it was. */
  gone: boolean
}

export function workingDirectory(): WorkingDirectory {
  try {
    return { path: process.cwd(), gone: false }
  } catch (error) {
    const path = lastKnown()
    if (path !== undefined) return { path, gone: true }
    throw error
  }
}

/** Linux remembers the name of a deleted directory; $PWD is what the shell remembers, unless another shell lost it. */
function lastKnown(): string | undefined {
  const place = placeNow()
  if (place === undefined) return process.env.PWD
  return place.endsWith(REMOVED) ? place.slice(0, -REMOVED.length) : place
}

/**
 * What the user has to know when another directory stands where the shell's was, or is: the shell has to enter that one.
 * undefined when it stands where it thinks.
 */
export function whereTheShellIs({ path, gone }: WorkingDirectory): string | undefined {
  if (!existsSync(path)) return undefined
  const enter = 'enter the new one with: cd "$PWD"'
  if (gone) return `this shell still stands in the directory that was removed; ${enter}`
  const place = placeNow()
  if (place === undefined || place === path) return undefined
  // Threads can only be started from somewhere else than a removed directory: then we have left it.
  const where = place.endsWith(REMOVED) || place === '/' ? 'was removed' : `is now ${place}`
  return `this shell stands in the directory that ${where}; ${enter}`
}

/** Node remembers what it was at the start. */
function placeNow(): string | undefined {
  try {
    return readlinkSync('/proc/self/cwd')
  } catch {
    return undefined
  }
}
