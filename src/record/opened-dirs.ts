/**
 * Directories that are shut to their own owner, opened for as long as they are looked at. Close it: they are as they were then. Should we
 * be killed before, they stay open to their owner.
 */
import { chmodSync, lstatSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import { parentOf, type Raw, rawToBytes } from '../model/raw-path.ts'

const OWNER_ALL = 0o700
const PERMISSIONS = 0o7777

export class OpenedDirs {
  private readonly mayOpen: (directory: Raw) => boolean
  private readonly modes = new Map<Raw, number>()

  constructor(mayOpen: (directory: Raw) => boolean) {
    this.mayOpen = mayOpen
  }

  /** Opens the directories above a path, from the top on. Returns whether any was shut. */
  openAbove(path: Raw): boolean {
    const chain: Raw[] = []
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) chain.unshift(above)
    return chain.map(directory => this.mayOpen(directory) && this.open(directory)).some(Boolean)
  }

  /** The permissions that something had before it was opened. */
  modeOf(path: Raw): number | undefined {
    return this.modes.get(path)
  }

  close(): void {
    // From below: one that is shut cannot be entered.
    for (const [directory, mode] of [...this.modes].reverse()) attempt(() => chmodSync(rawToBytes(directory), mode))
    this.modes.clear()
  }

  private open(directory: Raw): boolean {
    return attempt(() => {
      const stat = lstatSync(rawToBytes(directory))
      if (!stat.isDirectory() || (stat.mode & OWNER_ALL) === OWNER_ALL) return false
      chmodSync(rawToBytes(directory), (stat.mode & PERMISSIONS) | OWNER_ALL)
      this.modes.set(directory, stat.mode & PERMISSIONS)
      return true
    })
  }
}

/** What others own, and what is gone, stays as it is. */
function attempt(work: () => unknown): boolean {
  try {
    return work() === true
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}
