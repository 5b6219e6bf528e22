/** What a run changed or destroyed outside of the target: it is only counted. */
import { lstatSync } from 'node:fs'
import { errnoOf } from '../errors/errors.ts'
import { isWithin, parentOf, type Raw, rawToBytes } from '../model/raw-path.ts'
import type { PathEvent } from '../tracers/trace-event.ts'

/** They are counted up to here. */
const MAX_OUTSIDE = 100_000
/** A file of a filesystem with another clock, or a coarse one, may look changed so much before it was. */
const CLOCK_MS = 2000
/** Not files that anybody would want back. */
const nowhere = ['/dev', '/proc', '/sys', '/run']

/** What the calls of a run would mean for a path, beside what it was before: a call is told before it is carried out. */
interface Told {
  /** ours: the target, or what it lies in, was moved there. */
  fate: 'made' | 'changed' | 'replaced' | 'gone' | 'ours'
  /** When the first of them was made. */
  at: number
}

export interface OutsideCounts {
  /** Changed, made or deleted. */
  outside: number
  /** Of these, what was there before and is gone. */
  removed: number
}

export class OutsidePaths {
  private readonly inside: readonly Raw[]
  private readonly paths = new Map<Raw, Told>()

  /** `inside`: directories that are none of its business. */
  constructor(inside: readonly Raw[]) {
    this.inside = [...inside, ...nowhere]
  }

  /** `isOurs`: the target, or what it lies in, is what the call is about. */
  note({ op, at, path, to, existed }: Pick<PathEvent, 'op' | 'at' | 'path' | 'to' | 'existed'>, isOurs = false): void {
    const goesOn = op === 'rename' && path !== undefined && this.paths.get(path)?.fate === 'ours'
    if (goesOn) this.paths.delete(path)
    if (isOurs && op === 'exchange') for (const each of [path, to]) this.giveUp(each, at)
    if (isOurs || goesOn) {
      if (op === 'rename' && this.concerns(to) && !this.paths.has(to)) this.add(to, { fate: 'ours', at })
      return
    }
    if (op === 'delete' || op === 'rename') this.leave(path, at)
    else if (op !== 'link') this.change(path, at, existed || op === 'exchange' ? 'changed' : 'made')
    const over = op === 'rename' ? 'replaced' : 'changed'
    this.change(to, at, existed || op === 'exchange' ? over : 'made')
  }

  /** What is there now was the target: what was there went where that was. */
  private giveUp(place: Raw | undefined, at: number): void {
    if (!this.concerns(place)) return
    for (const path of this.paths.keys()) if (isWithin(path, place)) this.paths.delete(path)
    this.add(place, { fate: 'ours', at })
  }

  private change(path: Raw | undefined, at: number, fate: Told['fate']): void {
    if (!this.concerns(path)) return
    const told = this.paths.get(path)
    if (!told) this.add(path, { fate: this.isInMade(path) ? 'made' : fate, at })
    else if (told.fate !== 'made' && (fate === 'changed' || told.fate === 'gone')) told.fate = 'changed'
  }

  private leave(path: Raw | undefined, at: number): void {
    if (!this.concerns(path)) return
    const told = this.paths.get(path)
    if (!told && !this.isInMade(path)) this.add(path, { fate: 'gone', at })
    // What it made itself is nobody's loss; of the target is said where it is.
    else if (told && told.fate !== 'made' && told.fate !== 'ours') told.fate = 'gone'
  }

  /** As all that is in a snapshot of a subvolume, which comes with one call. */
  private isInMade(path: Raw): boolean {
    for (let above = parentOf(path); above !== '' && above !== '/'; above = parentOf(above))
      if (this.paths.get(above)?.fate === 'made') return true
    return false
  }

  private add(path: Raw, told: Told): void {
    if (this.paths.size < MAX_OUTSIDE) this.paths.set(path, told)
  }

  private concerns(path: Raw | undefined): path is Raw {
    return path !== undefined && !this.inside.some(directory => isWithin(path, directory))
  }

  /** By what is there now: many a call fails, or opens for writing what it only reads. */
  count(): OutsideCounts {
    let [outside, removed] = [0, 0]
    for (const [path, told] of this.paths) {
      const became = whatBecame(path, told)
      if (became === 'removed') removed++
      if (became !== 'nothing') outside++
    }
    return { outside, removed }
  }
}

function whatBecame(path: Raw, { fate, at }: Told): 'changed' | 'removed' | 'nothing' {
  if (fate === 'ours') return 'nothing'
  try {
    const now = lstatSync(rawToBytes(path))
    // `mv` first tries to put a file in the place of the directory that it is then moved into.
    const isMovedInto = fate === 'replaced' && now.isDirectory()
    return isMovedInto || now.ctimeMs < at - CLOCK_MS ? 'nothing' : 'changed'
  } catch (error) {
    const errno = errnoOf(error) ?? ''
    // Who may not even look there has not changed it.
    if (errno === 'EACCES') return 'nothing'
    if (!['ENOENT', 'ENOTDIR'].includes(errno)) return 'changed'
    return fate === 'made' ? 'nothing' : 'removed'
  }
}
