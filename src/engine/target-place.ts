/**
 * Where the target of a run is while it goes on. It may be moved, by the run or by others: what the run then does in it is
 * told under its new path, and is no less a change of the target.
 */
import { lstatSync } from 'node:fs'
import { SavepointError } from '../errors/errors.ts'
import { isWithin, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { type FollowedDir, followDir } from '../targets/dir/dir-target.ts'
import type { PathOp } from '../tracers/frames.ts'
import type { PathEvent, TraceEvent, UnmovedEvent } from '../tracers/trace-event.ts'

/** So many directories are followed that were the target one after the other. */
const MAX_FOLLOWED = 4

const displacing: ReadonlySet<PathOp> = new Set(['rename', 'exchange', 'delete'])

/** Whether the target goes with what is moved: an exchange moves both. */
export function movesTarget({ op, path, to }: PathEvent, target: Raw): boolean {
  const moved = op === 'exchange' ? [path, to] : op === 'rename' ? [path] : []
  return moved.some(each => each !== undefined && isWithin(target, each))
}

/** Who took the target from its place; undefined when nobody can tell. */
export type Displacer = 'run' | 'others' | undefined

interface Told {
  /** Undefined: it has removed it. */
  at: Raw | undefined
  /** When it took the place of another one. */
  came: number | undefined
}

export class TargetPlace {
  private readonly path: Buffer
  private readonly target: Raw
  /** The directory that was the target in the beginning, and others that were it later, by where they were told to be. */
  private readonly first: FollowedDir
  private readonly followed = new Map<number, FollowedDir>()
  /** Each of them by what the run tells. */
  private readonly told: Told[]
  /** When what is in the place of them all came. */
  private came: number | undefined
  /** The same before that was told. */
  private cameBefore: number | undefined
  /** Undefined: not looked since `settle`. */
  private seen: { elsewhere: Raw | undefined } | undefined
  /** A process of the run moved or removed it, or what it lies in. */
  isDisplacedByRun = false

  constructor(path: Buffer) {
    this.path = path
    this.target = rawFromBytes(path)
    this.told = [{ at: this.target, came: undefined }]
    this.first = followDir(path)
  }

  /** Where it has been moved to; undefined when it is gone, or where it was. */
  movedTo(): Buffer | undefined {
    return this.elsewhereOf(this.first)
  }

  /** What has to be protected: the target, or what is in its place by now, then what was the target before. */
  places(): Buffer[] {
    const movedTo = this.movedTo()
    const first = movedTo && !this.isReplaced() ? [movedTo] : [this.path, ...(movedTo ? [movedTo] : [])]
    return [...first, ...this.later()]
  }

  /** Where those are that took the place of it, and were moved away themselves. */
  later(): Buffer[] {
    return this.told.flatMap(({ at }, i) => {
      if (i === 0 || at === undefined || at === this.target) return []
      const directory = this.followed.get(i) ?? followIfOpen(rawToBytes(at))
      const place = directory && this.elsewhereOf(directory)
      if (place) this.followed.set(i, directory)
      else {
        directory?.close()
        this.followed.delete(i)
      }
      return place ?? []
    })
  }

  /** The event as it would be were the target still where it was. */
  asBefore(event: TraceEvent): TraceEvent {
    if (event.type === 'kept') return { ...event, came: this.came }
    if (event.type !== 'path') return event
    const before = this.mapped(event)
    this.follow(event)
    return before
  }

  /** A move that was told has failed. */
  unmove({ path, to }: UnmovedEvent): void {
    if (to === this.target) this.came = this.cameBefore
    for (const each of this.told)
      if (each.at !== undefined && isWithin(each.at, to)) each.at = path + each.at.slice(to.length)
  }

  /** What was told until now is through: the next time, it may be somewhere else. */
  settle(): void {
    this.seen = undefined
  }

  close(): void {
    for (const each of [this.first, ...this.followed.values()]) each.close()
  }

  /** Another directory is in the place of the first one. */
  private isReplaced(): boolean {
    return lstatSync(this.path, { throwIfNoEntry: false })?.isDirectory() === true
  }

  private elsewhereOf(directory: FollowedDir): Buffer | undefined {
    const place = directory.place()
    return place?.equals(this.path) ? undefined : place
  }

  private mapped(event: PathEvent): PathEvent {
    const { op, path, to } = event
    if (movesTarget(event, this.target) || (op === 'delete' && this.isAbove(path))) {
      this.isDisplacedByRun = true
      return event
    }
    const present = this.told.find(({ at }) => at === this.target)
    const presentCame = present ? present.came : this.came
    if (!this.isOutside(path) && !this.isOutside(to))
      return presentCame === undefined ? event : { ...event, came: presentCame }
    const others = this.told.flatMap((each, i) => {
      const at = i === 0 ? this.elsewhere() : each.at
      return at === undefined || at === this.target ? [] : { at, came: each.came }
    })
    let came: number | undefined
    const there = (each: Raw | undefined): Raw | undefined => {
      if (each === undefined) return undefined
      const around = others.find(({ at }) => isWithin(each, at))
      if (around || isWithin(each, this.target)) came = latest(came, around ? around.came : presentCame)
      return around ? this.target + each.slice(around.at.length) : each
    }
    return { ...event, path: there(path), to: there(to), came }
  }

  private isOutside(path: Raw | undefined): boolean {
    return path !== undefined && !isWithin(path, this.target)
  }

  private isAbove(path: Raw | undefined): boolean {
    return path !== undefined && isWithin(this.target, path)
  }

  /** One look for all events that come at once: most runs change many files elsewhere. */
  private elsewhere(): Raw | undefined {
    if (!this.seen) {
      const place = this.movedTo()
      this.seen = { elsewhere: place && rawFromBytes(place) }
    }
    // Gone by now, but what is told now may be from before.
    const [{ at } = { at: undefined }] = this.told
    if (this.seen.elsewhere !== undefined || at === undefined) return this.seen.elsewhere
    return this.first.isGone() ? at : undefined
  }

  private follow(event: PathEvent): void {
    const { op, path, to, at: now } = event
    if (path === undefined || !displacing.has(op)) return
    const isNew = movesTarget(event, this.target) && !this.told.some(({ at }) => at === this.target)
    if (isNew && this.told.length < MAX_FOLLOWED) this.told.push({ at: this.target, came: this.came })
    if (to === this.target || (op === 'exchange' && path === this.target)) {
      this.cameBefore = this.came
      this.came = now
    }
    for (const each of this.told) {
      if (each.at === undefined) continue
      const [from, there] = op === 'exchange' && to !== undefined && isWithin(each.at, to) ? [to, path] : [path, to]
      if (op === 'delete') each.at = path === each.at ? undefined : each.at
      else if (there !== undefined && isWithin(each.at, from)) each.at = there + each.at.slice(from.length)
    }
  }
}

/** Undefined where we may not. */
function followIfOpen(path: Buffer): FollowedDir | undefined {
  try {
    return followDir(path)
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    return undefined
  }
}

const latest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || (b !== undefined && b > a) ? b : a
