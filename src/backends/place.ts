/** Directories that states are kept in, for the drivers that keep them in some. */
import { existsSync, readdirSync, rmdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Probe } from './native-backend.ts'

export const no = (reason: string, fix: string): Probe => ({ works: false, reason, fix })

/** The programs are told paths as text. */
export const whyNoText = (target: Buffer): Probe | undefined =>
  Buffer.from(target.toString()).equals(target) ? undefined : no('the path of the target is not UTF-8', 'Rename it')

/** The first directory that works; the last reason, when none does. */
export function firstPlace(
  target: string,
  directories: readonly string[],
  tryPlace: (target: string, place: string) => Probe,
): Probe {
  let last = no('no directory outside of the target is on the same filesystem', OUTSIDE)
  for (const directory of directories) {
    const probe = isInside(nearest(directory), target)
      ? no(`${directory} would be in the target itself`, OUTSIDE)
      : tryPlace(target, directory)
    if (probe.works) return probe
    last = probe
  }
  return last
}

export const OUTSIDE =
  'Make the directory above the target, or SAVEPOINT_HOME, one on the same filesystem that you can write to'

const isInside = (path: string, target: string): boolean => path === target || path.startsWith(`${target}/`)

/** Of what exists. */
export function nearest(path: string): string {
  return existsSync(path) ? path : nearest(dirname(path))
}

/** The directory of the timeline, and the one above it that all timelines share. */
export function removeIfEmpty(place: string): void {
  for (const directory of [place, dirname(place)]) {
    try {
      if (readdirSync(directory).length === 0) rmdirSync(directory)
    } catch {
      return
    }
  }
}
