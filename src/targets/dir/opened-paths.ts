/**
 * Files and directories that their owner cannot read (`chmod 000`) are opened for the time of a capture that must see
 * them: before a rollback, and at the end of a run. Their modes are put back afterwards; what is recorded is the mode
 * they had. A list of them is on disk before they are opened: if the process dies in between, the next command closes them.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { isUnwritable } from '../../errors/errors.ts'
import type { Raw } from '../../model/raw-path.ts'
import { addon, type Stat } from '../../native/addon.ts'
import { failpoint } from '../../store/failpoint.ts'
import { chmodRoot } from './root-mode.ts'

const S_IFMT = 0o170000
const S_IFDIR = 0o040000
const S_IFREG = 0o100000

/** By inode: the time of change that a file has because its mode was put back, and the one that it had before. */
export type Reclosed = Map<bigint, { own: bigint; before: bigint }>

export interface Opening {
  /** The file that names what is open. */
  list: string
  reclosed: Reclosed
}

export class OpenedPaths {
  private readonly root: number
  private readonly modes = new Map<Raw, number>()
  /** The same by inode: a hard link is opened with its twin. */
  private readonly inodes = new Map<bigint, number>()
  /** Times of change of those. */
  private readonly changed = new Map<bigint, bigint>()

  private readonly list: string
  private readonly reclosed: Reclosed

  constructor(root: number, { list, reclosed }: Opening) {
    this.root = root
    this.list = list
    this.reclosed = reclosed
  }

  /** Whether `path` was closed and is readable now. */
  open(path: Raw): boolean {
    if (this.modes.has(path)) return false
    try {
      // A closed directory cannot be resolved through itself, but its descriptor answers.
      const { mode, uid, ino, ctimeNs } = statOf(this.root, path)
      const twin = this.inodes.get(ino)
      if (twin !== undefined) {
        this.modes.set(path, twin)
        return true
      }
      const needed = neededBits(mode)
      const isOurs = uid === process.geteuid?.() && ((mode & S_IFMT) === S_IFDIR || (mode & S_IFMT) === S_IFREG)
      if (!isOurs || (mode & needed) === needed) return false
      this.note(path, mode & 0o7777, ino)
      chmod(this.root, path, (mode & 0o7777) | needed)
      failpoint('capture:opened')
      this.modes.set(path, mode & 0o7777)
      this.inodes.set(ino, mode & 0o7777)
      this.changed.set(ino, changedOf(this.reclosed, ino, ctimeNs))
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
        chmod(this.root, path, mode)
        const { ino, ctimeNs } = statOf(this.root, path)
        const before = this.changed.get(ino)
        if (before !== undefined) this.reclosed.set(ino, { own: ctimeNs, before })
      } catch {}
    }
    if (this.modes.size > 0 && existsSync(this.list)) rmSync(this.list)
    this.modes.clear()
    this.inodes.clear()
    this.changed.clear()
  }

  /** Where nothing can be written, a rollback without safety goes on without the list. Not fsynced: a line per file would take seconds. */
  private note(path: Raw, mode: number, ino: bigint): void {
    try {
      appendFileSync(this.list, `${JSON.stringify([path, mode, String(ino)])}\n`, { mode: 0o600 })
    } catch (error) {
      if (!isUnwritable(error)) throw error
    }
  }
}

/** When it was changed, but for what a capture did. */
export function changedOf(reclosed: Reclosed, ino: bigint, ctimeNs: bigint): bigint {
  const again = reclosed.get(ino)
  return again?.own === ctimeNs ? again.before : ctimeNs
}

/** Closes what a process that died had opened, unless somebody has changed it since. Returns how many they were. */
export function closeLeftOpen(root: number, list: string): number {
  let closed = 0
  for (const line of readFileSync(list, 'utf8').split('\n').reverse()) {
    try {
      const [path, mode, ino] = JSON.parse(line) as [Raw, number, string]
      const now = statOf(root, path)
      if (String(now.ino) !== ino || (now.mode & 0o7777) !== (mode | neededBits(now.mode))) continue
      chmod(root, path, mode)
      closed++
    } catch {
      // The last line may be cut off: then nothing was opened yet. What is gone needs no closing.
    }
  }
  rmSync(list)
  return closed
}

const neededBits = (mode: number): number => ((mode & S_IFMT) === S_IFDIR ? 0o500 : 0o400)

const statOf = (root: number, path: Raw): Stat => (path === '' ? addon.statFd(root) : addon.statAt(root, path))

function chmod(root: number, path: Raw, mode: number): void {
  if (path === '') chmodRoot(root, mode)
  else addon.chmodAt(root, path, mode)
}
