/**
 * Files and directories that their owner cannot read (`chmod 000`) are opened for the time of a capture that must see
 * them: before a rollback, and at the end of a run. Their modes are put back afterwards; what is recorded is the mode
 * they had. If the process dies in between, they stay readable for their owner and nobody else.
 */
import type { Raw } from '../../model/raw-path.ts'
import { addon } from '../../native/addon.ts'
import { chmodRoot } from './root-mode.ts'

const S_IFMT = 0o170000
const S_IFDIR = 0o040000
const S_IFREG = 0o100000

export class OpenedPaths {
  private readonly root: number
  private readonly modes = new Map<Raw, number>()
  /** The same by inode: a hard link is opened with its twin. */
  private readonly inodes = new Map<bigint, number>()

  constructor(root: number) {
    this.root = root
  }

  /** Whether `path` was closed and is readable now. */
  open(path: Raw): boolean {
    if (this.modes.has(path)) return false
    try {
      // A closed directory cannot be resolved through itself, but its descriptor answers.
      const { mode, uid, ino } = path === '' ? addon.statFd(this.root) : addon.statAt(this.root, path)
      const twin = this.inodes.get(ino)
      if (twin !== undefined) {
        this.modes.set(path, twin)
        return true
      }
      const needed = (mode & S_IFMT) === S_IFDIR ? 0o500 : 0o400
      const isOurs = uid === process.geteuid?.() && ((mode & S_IFMT) === S_IFDIR || (mode & S_IFMT) === S_IFREG)
      if (!isOurs || (mode & needed) === needed) return false
      this.chmod(path, (mode & 0o7777) | needed)
      this.modes.set(path, mode & 0o7777)
      this.inodes.set(ino, mode & 0o7777)
      return true
    } catch {
      return false
    }
  }

  /** The mode that `path` had before it was opened. */
  modeOf(path: Raw, ino?: bigint): number | undefined {
    return this.modes.get(path) ?? (ino === undefined ? undefined : this.inodes.get(ino))
  }

  /** Puts the modes back, from below: a directory that closes hides what is in it. */
  close(): void {
    for (const [path, mode] of [...this.modes].reverse()) {
      try {
        this.chmod(path, mode)
      } catch {}
    }
    this.modes.clear()
    this.inodes.clear()
  }

  private chmod(path: Raw, mode: number): void {
    if (path === '') chmodRoot(this.root, mode)
    else addon.chmodAt(this.root, path, mode)
  }
}
