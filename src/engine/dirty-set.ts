/**
 * The directories that a run may have changed since the last capture, from what its tracer tells. A call is told before it
 * is carried out, so what a thread touched last stays in the set until the thread is seen again, or gone: a capture in
 * between may have come too early for it.
 */
import { isWithin, parentOf, type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { Dirty, HeldFiles } from '../targets/dir/dirty-dirs.ts'
import type { Held, PathEvent } from '../tracers/trace-event.ts'

/** With more directories than this, looking at all of them costs no more than telling them apart. */
const MAX_DIRS = 20_000

interface Touched {
  dirs: Raw[]
  /** Directories that are others than before, with all that is in them. */
  replaced: Raw[]
  /** It is not known which others. */
  isLost: boolean
}

export class DirtySet {
  private readonly target: Raw
  private dirs = new Set<Raw>()
  private replaced = new Set<Raw>()
  private again = new Set<Raw>()
  /** By thread: what it touched last. */
  private readonly lastOf = new Map<number, Touched>()
  private isLost = false
  /** Of files with several names that were held at the last look. */
  private inodes = new Set<bigint>()

  constructor(targetPath: Buffer) {
    this.target = rawFromBytes(targetPath)
  }

  /** Whether anything may have changed that is not captured. */
  get isEmpty(): boolean {
    return this.dirs.size === 0 && this.replaced.size === 0 && this.again.size === 0 && !this.isLost
  }

  /** Whether a capture would look at something in the directory, or right beside the file. */
  concerns(path: Raw, isDirectory: boolean): boolean {
    if (this.isLost) return true
    const above = parentOf(path)
    return [this.dirs, this.replaced, this.again].some(set =>
      [...set].some(dir => isWithin(dir, path) || (!isDirectory && dir === above)),
    )
  }

  /** Something was not seen: only a look at everything tells what changed. */
  lose(): void {
    this.isLost = true
  }

  add(event: PathEvent): void {
    const touched = this.touchedBy(event)
    if (touched) {
      this.note(touched)
      // What has happened already is found by a capture that begins now.
      if (!event.past) this.lastOf.set(event.thread, touched)
    } else this.lastOf.delete(event.thread)
  }

  /** What was touched until now; from here on a new set grows. Undefined when everything must be looked at. */
  take(): Dirty | undefined {
    const { dirs, replaced, again } = this
    const taken = this.isLost ? undefined : { dirs, replaced, again }
    this.dirs = new Set()
    this.replaced = new Set()
    this.again = new Set()
    this.isLost = false
    for (const [thread, touched] of this.lastOf) {
      if (!isAlive(thread)) {
        this.lastOf.delete(thread)
        continue
      }
      this.isLost ||= touched.isLost
      for (const dir of touched.dirs) this.dirs.add(dir)
      for (const dir of touched.replaced) this.again.add(dir)
    }
    return taken
  }

  /** What processes hold open may change until the capture and after it. Returns what must be looked at for that. */
  hold(taken: Dirty | undefined, { files, unseen }: Held): HeldFiles {
    const held: HeldFiles = { inodes: this.inodes, mapped: [], mappedInodes: new Set() }
    // Once more in the next capture: it may be written between this one and its end.
    this.inodes = new Set()
    for (const { path, mapped, inode } of files) {
      const relative = this.relative(path)
      if (relative !== undefined) {
        taken?.dirs.add(parentOf(relative))
        this.dirs.add(parentOf(relative))
        if (mapped) held.mapped.push(relative)
      }
      // One of its names may lie in the target.
      if (inode === undefined) continue
      held.inodes.add(inode)
      this.inodes.add(inode)
      if (mapped) held.mappedInodes.add(inode)
    }
    // What cannot be looked at may hold anything that was touched.
    if (unseen > 0) for (const dir of taken?.dirs ?? []) this.dirs.add(dir)
    return held
  }

  /** A capture that failed: what it was to capture is still to be. */
  giveBack(taken: Dirty | undefined): void {
    if (!taken) {
      this.isLost = true
      return
    }
    for (const dir of taken.dirs) this.dirs.add(dir)
    for (const dir of [...taken.replaced, ...taken.again]) this.replaced.add(dir)
  }

  /** Directories that were touched since `taken` was, and that it has not; undefined when it takes more than a look at them. */
  since(taken: Dirty): Raw[] | undefined {
    if (this.isLost || this.replaced.size > 0) return undefined
    return [...this.dirs].filter(dir => !taken.dirs.has(dir))
  }

  private note({ dirs, replaced, isLost }: Touched): void {
    this.isLost ||= isLost
    if (this.isLost) return
    for (const dir of dirs) this.dirs.add(dir)
    for (const dir of replaced) this.replaced.add(dir)
    if (this.dirs.size > MAX_DIRS) this.isLost = true
  }

  private touchedBy({ op, path, to, existed, directory, linked, isUnknown }: PathEvent): Touched | undefined {
    // Other names of the same file may lie anywhere in the target.
    if (isUnknown || linked) return { dirs: [], replaced: [], isLost: true }
    const touched: Touched = { dirs: [], replaced: [], isLost: false }
    const isMove = op === 'rename' || op === 'exchange'
    for (const each of [path, to]) {
      if (each === undefined) continue
      // The target itself went with a directory around it.
      if (isMove && isWithin(this.target, each)) touched.isLost = true
      const relative = this.relative(each)
      if (relative === undefined) continue
      if (op === 'create' && existed) continue
      touched.dirs.push(parentOf(relative))
      if (directory || op === 'create') touched.dirs.push(relative)
      if (isMove && directory && (each === to || op === 'exchange')) touched.replaced.push(relative)
    }
    return touched.dirs.length > 0 || touched.isLost ? touched : undefined
  }

  /** undefined: not in the target. */
  private relative(path: Raw): Raw | undefined {
    return isWithin(path, this.target) ? path.slice(this.target.length + 1) : undefined
  }
}

function isAlive(thread: number): boolean {
  try {
    return process.kill(thread, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
