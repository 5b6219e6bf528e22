/**
 * Where the target of a run is while it goes on. It may be moved, by the run or by others: what the run then does in it is
 * told under its new path, and is no less a change of the target.
 */
import { isWithin, type Raw, rawFromBytes } from '../model/raw-path.ts'
import { followDir } from '../targets/dir/dir-target.ts'
import type { PathOp } from '../tracers/frames.ts'
import type { PathEvent, UnmovedEvent } from '../tracers/trace-event.ts'

const displacing: ReadonlySet<PathOp> = new Set(['rename', 'exchange', 'delete'])

/** Whether the target goes with what is moved: an exchange moves both. */
export function movesTarget({ op, path, to }: PathEvent, target: Raw): boolean {
  const moved = op === 'exchange' ? [path, to] : op === 'rename' ? [path] : []
  return moved.some(each => each !== undefined && isWithin(target, each))
}

/** Who took the target from its place; undefined when nobody can tell. */
export type Displacer = 'run' | 'others' | undefined

export class TargetPlace {
  private readonly target: Raw
  private readonly directory: ReturnType<typeof followDir>
  /** Undefined: not looked since `settle`. */
  private seen: { elsewhere: Raw | undefined } | undefined
  /** Where the run has moved it to, by what it tells; undefined: it has not, or has removed it there. */
  private told: Raw | undefined
  /** A process of the run moved or removed it, or what it lies in. */
  isDisplacedByRun = false

  constructor(path: Buffer) {
    this.target = rawFromBytes(path)
    this.directory = followDir(path)
  }

  /** Where it has been moved to; undefined when it is gone, or where it was. */
  movedTo(): Buffer | undefined {
    return this.directory.now()
  }

  /** The event as it would be were the target still where it was. */
  asBefore(event: PathEvent): PathEvent {
    const before = this.mapped(event)
    this.follow(event)
    return before
  }

  /** A move that was told has failed. */
  unmove({ path, to }: UnmovedEvent): void {
    if (this.told === undefined || !isWithin(this.told, to)) return
    this.told = path + this.told.slice(to.length)
  }

  /** What was told until now is through: the next time, it may be somewhere else. */
  settle(): void {
    this.seen = undefined
  }

  close(): void {
    this.directory.close()
  }

  private mapped(event: PathEvent): PathEvent {
    const { op, path, to } = event
    if (movesTarget(event, this.target) || (op === 'delete' && this.isAbove(path))) {
      this.isDisplacedByRun = true
      return event
    }
    const elsewhere = this.isOutside(path) || this.isOutside(to) ? this.elsewhere() : undefined
    if (elsewhere === undefined) return event
    const there = (each: Raw | undefined): Raw | undefined =>
      each !== undefined && isWithin(each, elsewhere) ? this.target + each.slice(elsewhere.length) : each
    return { ...event, path: there(path), to: there(to) }
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
    if (this.seen.elsewhere !== undefined || this.told === undefined) return this.seen.elsewhere
    return this.directory.isGone() ? this.told : undefined
  }

  private follow({ op, path, to }: PathEvent): void {
    if (path === undefined || !displacing.has(op)) return
    const at = this.told ?? this.target
    if (op === 'delete') {
      if (path === at) this.told = undefined
      return
    }
    const [from, there] = op === 'exchange' && to !== undefined && isWithin(at, to) ? [to, path] : [path, to]
    if (there === undefined || !isWithin(at, from)) return
    this.told = there + at.slice(from.length)
  }
}
