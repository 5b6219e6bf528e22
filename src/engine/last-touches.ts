/**
 * When a run last touched each path by a call that was told: whatever changed a file later came through a descriptor, or from
 * others. Where the run then touches such a file again, that is noted: its own time would hide the other's.
 */
import { parentOf, type Raw } from '../model/raw-path.ts'
import type { PathOp } from '../tracers/frames.ts'
import type { PathEvent } from '../tracers/trace-event.ts'
import { LetGo } from './let-go.ts'
import { NamesOverTime } from './names-over-time.ts'
import { OldTouches } from './old-touches.ts'
import { RecentMap } from './recent-map.ts'
import { VagueCalls } from './vague-calls.ts'

/** Of more paths than this, only the time is kept of those that were touched longest ago; with more of them, nothing is known of any. */
const MAX_PATHS = 100_000
const MAX_OLD = 1_000_000
const MAX_MOVED = 200_000
const MAX_ENDS = 200_000
/** What is beyond that is not named. */
const MAX_MIXED = 20_000
/** How many of the last renames can be taken back. */
const MAX_RENAMED = 100
/** How long a run may take to write what it has opened, before the change counts as perhaps another's. */
const WRITE_MS = 1000
/** Who has written a file gives it its mode, its times and its name at once: such a change was its own. */
const FINISH_MS = 500
const moves: ReadonlySet<PathOp> = new Set(['rename', 'exchange'])
const finishes: ReadonlySet<PathOp> = new Set(['rename', 'exchange', 'link', 'attributes'])

export type Touch = Pick<
  PathEvent,
  'op' | 'at' | 'pid' | 'thread' | 'path' | 'to' | 'directory' | 'existed' | 'changed' | 'replaced' | 'tree'
>

export class LastTouches {
  private readonly old = new OldTouches(MAX_OLD)
  private readonly paths = new RecentMap<number>(MAX_PATHS, (path, at) => this.age(path, at))
  private readonly moved = new Map<Raw, number>()
  /** Which process it was, and when processes ended. */
  private readonly by = new Map<Raw, number>()
  private readonly ends = new Map<number, number>()
  private readonly mixed = new Set<Raw>()
  /** Those of them that it then removed, by the last name, and that by the first: the edit went with them. */
  private readonly removed = new Map<Raw, Raw>()
  /** Where it was to take something away by itself, whatever came there later. */
  private readonly vacated = new Set<Raw>()
  private names = new NamesOverTime()
  /** The last that it was to rename: what takes that back. */
  private readonly renamed = new Map<string, () => void>()
  /** What it has touched by itself, not with a directory, by the first names. */
  private readonly touched = new Set<Raw>()
  private readonly found = new Set<Raw>()
  /** What was in no snapshot when it first took or changed it, by the first names, and from when its content was. */
  private readonly unsaved = new Map<Raw, bigint>()
  readonly letGo: LetGo = new LetGo()
  readonly vague: VagueCalls = new VagueCalls()
  private isCut = false
  /** How many descriptors a process has of a file that it can write with. */
  private readonly holds: (pid: number, path: Raw) => number
  /** Since when no change waits for us. What was told before that may have been carried out as late as this. */
  safeAt = 0

  constructor(holds: (pid: number, path: Raw) => number = () => 0) {
    this.holds = holds
  }

  /** Nothing is known of any path. */
  get isFull(): boolean {
    return this.isCut || this.vague.isFull
  }

  /** Paths relative to the target. */
  note(touch: Touch): void {
    if (this.isCut) return
    const { op, at, pid, thread, path, to, directory, changed, replaced, tree } = touch
    this.find(touch)
    const isFinish = finishes.has(op) && path !== undefined && this.by.get(path) === pid
    // By the time that it is looked at, what the call opens may be among what its process has.
    const opened = op === 'write' && path !== undefined && this.by.get(path) === pid ? 1 : 0
    // What came with another directory is the work of the run.
    const came = tree?.came ?? -Infinity
    const isLater = (ms: number | undefined) => ms === undefined || ms > came + WRITE_MS
    if (isLater(changed)) this.compare(path, changed, isFinish ? at - FINISH_MS : Infinity, opened)
    if (isLater(replaced)) this.compare(to, replaced, Infinity, 0)
    for (const each of [path, to]) if (each !== undefined) this.touched.add(this.firstName(each))
    for (const each of op === 'delete' || op === 'rename' ? [path] : op === 'exchange' ? [path, to] : [])
      if (each !== undefined) this.vacated.add(each)
    if (op === 'delete') this.remove(path)
    if (op === 'rename') this.move(path, to)
    const takeBack = this.names.note({ op, path, to, directory, at, by: '' })
    if (moves.has(op)) this.remember(path, to, takeBack)
    for (const each of [path, to]) {
      if (each === undefined) continue
      // What was opened before the command began may be written at any time.
      const until = op === 'inherited' ? Infinity : at
      this.paths.set(each, Math.max(until, this.lastOf(each) ?? 0))
      this.by.set(each, pid)
      if (op === 'delete') this.letGo.noteRemoved(each)
      else this.letGo.note(each, { at, thread })
      if (moves.has(op)) this.moved.set(each, at)
    }
    if (this.old.isFull || this.moved.size > MAX_MOVED) this.forget()
  }

  /** Most of what a build touches goes again, or is never looked at. */
  private age(path: Raw, at: number): void {
    this.old.set(path, at)
    this.by.delete(path)
    this.touched.delete(path)
    this.found.delete(path)
  }

  private lastOf(path: Raw): number | undefined {
    return this.paths.get(path) ?? this.old.get(path)
  }

  private isTouched(first: Raw): boolean {
    return this.touched.has(first) || this.old.get(first) !== undefined
  }

  /** What is there when it is first named has been made by somebody else, or was there before the run. */
  private find({ op, path, to, existed }: Touch): void {
    const hasTwo = op === 'rename' || op === 'link' || op === 'exchange'
    const isThere = op === 'delete' || op === 'attributes' || op === 'truncate' || hasTwo || (op === 'write' && existed)
    if (isThere && path !== undefined && !this.isTouched(this.firstName(path))) this.found.add(this.firstName(path))
    if (hasTwo && existed && to !== undefined && !this.isTouched(this.firstName(to))) this.found.add(this.firstName(to))
  }

  /** Somebody else's perhaps, as it was right before the run took or changed it. `came`: as of InTree. */
  noteFound(path: Raw, mtimeNs: bigint, came = -Infinity): void {
    if (this.isCut || this.unsaved.size >= MAX_MIXED) return
    const first = this.firstName(path)
    // The tracer forgets what it was told before everything was looked at, and knows nothing of places outside of the target.
    const brought = Math.max(this.names.broughtBy(path)?.at ?? -Infinity, came)
    const isOwn = this.isTouched(first) || Number(mtimeNs / 1_000_000n) <= brought + WRITE_MS
    if (!isOwn) this.unsaved.set(first, mtimeNs)
  }

  get foundUnsaved(): ReadonlyMap<Raw, bigint> {
    return this.unsaved
  }

  /** As `note`, where it is only likely that it was the run. */
  noteLikely(touch: Touch): void {
    this.note(touch)
    if (touch.op === 'delete') this.removed.set(touch.path!, touch.path!)
    else this.mixed.add(touch.path!)
  }

  /** A rename had no effect after all. */
  takeBack(path: Raw | undefined, to: Raw | undefined): void {
    this.renamed.get(`${path}\0${to}`)?.()
    this.renamed.clear()
  }

  /** Also of what something else takes the place of, or that leaves the target. */
  private remove(path: Raw | undefined): void {
    if (path !== undefined && this.mixed.has(path)) this.removed.set(path, this.firstName(path))
  }

  private move(path: Raw | undefined, to: Raw | undefined): void {
    this.remove(to)
    if (path === undefined || to === undefined) this.remove(path)
    // The edit goes with the file.
    else if (this.mixed.has(path)) this.mixed.add(to)
  }

  private remember(path: Raw | undefined, to: Raw | undefined, takeBack: () => void): void {
    if (this.renamed.size >= MAX_RENAMED) this.renamed.clear()
    const before = [path, to].map(each => (each === undefined ? undefined : this.moved.get(each)))
    this.renamed.set(`${path}\0${to}`, () => {
      takeBack()
      for (const [i, each] of [path, to].entries()) {
        if (each === undefined) continue
        if (before[i] === undefined) this.moved.delete(each)
        else this.moved.set(each, before[i])
      }
    })
  }

  private firstName(path: Raw): Raw {
    return this.names.namesOf(path).at(-1)?.name ?? path
  }

  noteEnd(pid: number, at: number): void {
    if (this.ends.size >= MAX_ENDS) this.ends.clear()
    this.ends.set(pid, at)
  }

  /** Undefined: never, or nobody knows. */
  of(path: Raw): number | undefined {
    let last = this.lastOf(path)
    // Moving a directory touches all that is in it; it only goes when nothing is.
    for (let above = parentOf(path); above !== ''; above = parentOf(above)) {
      const at = this.moved.get(above)
      if (at !== undefined && !(last !== undefined && last >= at)) last = at
    }
    return last === undefined ? undefined : Math.max(last, this.safeAt)
  }

  /** Since when no process of the run can write it; undefined where that is not known. */
  letGoAt(path: Raw): number | undefined {
    const touched: Raw[] = this.lastOf(path) === undefined ? [] : [path]
    for (let above = parentOf(path); above !== ''; above = parentOf(above))
      if (this.moved.has(above)) touched.push(above)
    const last = Math.max(...touched.map(each => this.letGo.of(each) ?? Infinity))
    return Number.isFinite(last) ? last : undefined
  }

  /** Whether somebody else has perhaps changed it after the run had touched it, and before the directory was moved that it is in. */
  wasEditedBeforeMove(path: Raw, changed: number): boolean {
    const isNamed = (name: Raw) => this.lastOf(name) !== undefined
    const touched = this.names.namesOf(path).filter(({ name }) => isNamed(name) && !this.moved.has(name))
    if (touched.length === 0 || isNamed(path)) return false
    const ownUntil = touched.map(({ name, at }) => {
      const last = Math.max(this.lastOf(name)!, this.safeAt)
      const end = this.endAfter(name, last)
      return Math.max(last + WRITE_MS, end < at ? end : 0)
    })
    return changed > Math.max(...ownUntil)
  }

  /** Whether somebody else has taken away what the run had touched: it never was to do that itself. */
  wasTakenByOthers(path: Raw): boolean {
    if (this.of(path) === undefined) return false
    for (let at = path; at !== ''; at = parentOf(at)) if (this.vacated.has(at)) return false
    return true
  }

  /** What it was to remove after somebody else had perhaps changed it: the first names by the last. */
  get removedPaths(): ReadonlyMap<Raw, Raw> {
    return this.removed
  }

  /** Whether somebody else has perhaps changed the file before the run touched it, or between two touches. */
  isMixed(path: Raw): boolean {
    return this.mixed.has(path)
  }

  /** The name that it had when the run first named it, if it was there. */
  foundAs(path: Raw): Raw | undefined {
    const first = this.firstName(path)
    return this.isFound(first) ? first : undefined
  }

  isFound(first: Raw): boolean {
    return this.found.has(first)
  }

  /** When what it is in was brought in from outside, if that is all that was done to it. */
  broughtAt(path: Raw): number | undefined {
    return this.isTouched(this.firstName(path)) ? undefined : this.names.broughtBy(path)?.at
  }

  /** The name that a file had before, if it has another one only because directories above it were moved. */
  movedOnlyWithin(path: Raw): Raw | undefined {
    const first = this.firstName(path)
    return first === path || this.isTouched(first) ? undefined : first
  }

  /** `changed`: only told when it was since the command began. `ownFrom`: later changes of what it had touched are its own. */
  private compare(path: Raw | undefined, changed: number | undefined, ownFrom: number, opened: number): void {
    if (path === undefined || changed === undefined || this.mixed.size >= MAX_MIXED) return
    const last = this.of(path)
    const isOwn =
      last !== undefined && (changed >= ownFrom || changed <= Math.max(last + WRITE_MS, this.endAfter(path, last)))
    if (!isOwn && !this.isWrittenOn(path, last, opened)) this.mixed.add(path)
  }

  /** A server writes to its log as long as it goes on. */
  private isWrittenOn(path: Raw, last: number | undefined, opened: number): boolean {
    const writer = last === undefined ? undefined : this.by.get(path)
    return writer !== undefined && this.endAfter(path, last!) === last && this.holds(writer, path) > opened
  }

  /** A command that has ended by now, a linker say, may have written what it had opened until its end; an agent goes on. */
  private endAfter(path: Raw, last: number): number {
    const end = this.ends.get(this.by.get(path) ?? 0)
    return end !== undefined && end >= last ? end : last
  }

  private forget(): void {
    this.isCut = true
    this.old.clear()
    this.paths.clear()
    this.moved.clear()
    this.by.clear()
    this.ends.clear()
    this.mixed.clear()
    this.removed.clear()
    this.vacated.clear()
    this.names = new NamesOverTime()
    this.renamed.clear()
    this.touched.clear()
    this.found.clear()
    this.unsaved.clear()
    this.letGo.clear()
  }
}
