/**
 * Which files that a run has touched none of its processes can write any more, and since when: whoever changes one after that,
 * without a call that is told, is somebody else. It takes a look at all that its processes hold, so that it is found out now and then.
 */
import { lstatSync, readFileSync } from 'node:fs'
import type { Shown } from '../backends/mounts-below.ts'
import { isWithin, joinRaw, parentOf, type Raw, rawToBytes } from '../model/raw-path.ts'
import type { Held, HeldFile } from '../tracers/trace-event.ts'
import { OldTouches } from './old-touches.ts'
import { RecentMap } from './recent-map.ts'

/** A call is told before it is carried out. */
const CALL_MS = 1000
/** Of more than so many, those that were touched longest ago are never known to be let go. */
const MAX_WAITING = 100_000
const MAX_LET_GO = 1_000_000
/** How many a look is about: what is beyond that waits for the next. */
const MAX_LOOK = 20_000

interface Touch {
  at: number
  thread: number
}

export class LetGo {
  /** Touched, and perhaps still to be written. */
  private readonly waiting = new RecentMap<Touch>(MAX_WAITING)
  private readonly since = new OldTouches(MAX_LET_GO)

  private hasNews = false

  get count(): number {
    return this.waiting.size
  }

  /** Whether anything was touched since this was asked. */
  takeNews(): boolean {
    const had = this.hasNews
    this.hasNews = false
    return had
  }

  note(path: Raw, touch: Touch): void {
    this.since.delete(path)
    this.hasNews = true
    this.waiting.set(path, touch)
  }

  /** It is removed: what comes there later is another file. */
  noteRemoved(path: Raw): void {
    this.since.delete(path)
    this.waiting.delete(path)
  }

  /** Since when nobody of the run has it; undefined: perhaps somebody has. */
  of(path: Raw): number | undefined {
    return this.since.get(path)
  }

  /**
   * Before processes are looked at: those whose last call is carried out, so that who still has one is seen to hold it. `safeAt`: calls
   * before that may have waited until then.
   */
  done(now: number, safeAt: number): Map<Raw, Touch> {
    const [isOut, done] = [new Map<number, boolean>(), new Map<Raw, Touch>()]
    for (const [path, touch] of this.waiting.entries()) {
      if (done.size >= MAX_LOOK) break
      if (Math.max(touch.at, safeAt) > now - CALL_MS) continue
      if (!isOut.has(touch.thread)) isOut.set(touch.thread, isWaiting(touch.thread))
      if (isOut.get(touch.thread)) done.set(path, touch)
    }
    return done
  }

  /** After that look. Returns whether anything was let go. `shown`: by which paths the target can be reached. */
  settle(done: ReadonlyMap<Raw, Touch>, held: Held, shown: readonly Shown[], now: number): boolean {
    const isHeld = heldBelow(held.files, shown)
    const inodes = new Set(held.files.flatMap(({ inode }) => inode ?? []))
    const before = this.waiting.size
    for (const [path, touch] of done) {
      if (isHeld.has(path) || this.waiting.get(path) !== touch) continue
      // Who cannot be looked at may have inherited what was open when it was started.
      if (held.unseenSince !== undefined && touch.at <= held.unseenSince) continue
      if (inodes.size > 0 && mayBeOne(joinRaw(shown[0]!.place, path), inodes)) continue
      this.waiting.delete(path)
      if (this.since.isFull) this.since.clear()
      this.since.set(path, now)
    }
    return this.waiting.size < before
  }

  clear(): void {
    this.waiting.clear()
    this.since.clear()
  }
}

/** By their paths, with the directories that they are in: those may have been moved with them. */
function heldBelow(files: readonly HeldFile[], shown: readonly Shown[]): Set<Raw> {
  const held = new Set<Raw>()
  for (const { path } of files)
    for (const { place, below } of shown) {
      let each = isWithin(path, place) ? joinRaw(below, path.slice(place.length + 1)) : ''
      for (; each !== '' && !held.has(each); each = parentOf(each)) held.add(each)
    }
  return held
}

/** What has several names, or is held in a container, which sees other paths: whether it is this one, or may be in this directory. */
function mayBeOne(path: Raw, inodes: ReadonlySet<bigint>): boolean {
  try {
    const stat = lstatSync(rawToBytes(path), { bigint: true })
    return stat.isDirectory() || inodes.has(stat.ino)
  } catch {
    return false
  }
}

/** For something to happen, or gone: not at work in a call on files, nor about to be. */
function isWaiting(thread: number): boolean {
  try {
    return /\) [SZX] [^)]*$/.test(readFileSync(`/proc/${thread}/stat`, 'latin1'))
  } catch {
    return true
  }
}
