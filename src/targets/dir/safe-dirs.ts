/**
 * Makes read-only directories of ours writable for the time of a restore, and puts their modes back. After kill -9 the
 * recovery does, from the safety snapshot.
 */
import { errnoOf } from '../../errors/errors.ts'
import { parentOf, type Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { failpoint } from '../../store/failpoint.ts'
import { chmodRoot } from './root-mode.ts'

export const OWNER_ALL = 0o700

export class SafeDirs {
  private readonly root: number
  private readonly modes = new Map<Raw, number>()

  constructor(root: number) {
    this.root = root
  }

  /** Runs `work`, which changes entries in the directories of `paths`; on EACCES opens those directories and tries again. */
  in<T>(paths: readonly Raw[], work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (errnoOf(error) !== 'EACCES') throw error
      const opened = paths.map(path => this.open(path)).some(Boolean)
      if (!opened) throw error
      return work()
    }
  }

  /** Makes `path` (if a directory) and the directories above it writable for their owner. Returns whether any was not. */
  open(path: Raw): boolean {
    const chain: Raw[] = [path]
    for (let dir = path; dir !== ''; dir = parentOf(dir)) chain.unshift(parentOf(dir))
    let opened = false
    for (const dir of chain) {
      try {
        const { mode } = dir === '' ? addon.statFd(this.root) : addon.statAt(this.root, dir)
        if ((mode & 0o170000) !== 0o040000 || (mode & OWNER_ALL) === OWNER_ALL) continue
        this.chmod(dir, (mode & 0o7777) | OWNER_ALL)
        if (!this.modes.has(dir)) this.modes.set(dir, mode & 0o7777)
        opened = true
      } catch {}
      if (opened) failpoint('restore:opened')
    }
    return opened
  }

  /** A directory moved: its mode is to be put back at the new place. */
  moved(from: Raw, to: Raw): void {
    for (const [path, mode] of [...this.modes]) {
      if (path !== from && !path.startsWith(`${from}/`)) continue
      this.modes.delete(path)
      this.modes.set(to + path.slice(from.length), mode)
    }
  }

  /** A directory got its final mode: there is nothing to put back. */
  forget(path: Raw): void {
    this.modes.delete(path)
  }

  /** Puts modes back, but for directories that are gone. Deepest first, so that the way to them stays open. */
  close(): void {
    for (const [path, mode] of [...this.modes].sort(([a], [b]) => (a < b ? 1 : -1))) {
      try {
        this.chmod(path, mode)
      } catch {}
    }
    this.modes.clear()
  }

  private chmod(path: Raw, mode: number): void {
    if (path === '') chmodRoot(this.root, mode)
    else addon.chmodAt(this.root, path, mode)
  }
}
