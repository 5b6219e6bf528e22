/**
 * What a run last touched, in each directory that was its target: where it puts another one in its place, the same name is another file in each of
 * them (target-place.ts).
 */
import type { Raw } from '../model/raw-path.ts'
import type { InTree } from '../tracers/trace-event.ts'
import { LastTouches } from './last-touches.ts'

export class TreeTouches {
  private readonly trees: LastTouches[] = []
  private readonly holds: (pid: number, path: Raw) => number
  private present = 0

  /** `holds`: how many descriptors a process has of a file that it can write with. */
  constructor(holds: (pid: number, path: Raw) => number) {
    this.holds = holds
  }

  /** Of what is the target by now. */
  get now(): LastTouches {
    return this.at(this.present)
  }

  at(index: number): LastTouches {
    let touches = this.trees[index]
    if (!touches) {
      touches = new LastTouches(this.holds)
      if (index > 0) touches.safeAt = this.at(0).safeAt
      this.trees[index] = touches
    }
    return touches
  }

  of(tree: InTree | undefined): LastTouches {
    if (tree?.isPresent) this.present = tree.index
    return this.at(tree?.index ?? this.present)
  }

  get isFull(): boolean {
    return this.trees.some(touches => touches.isFull)
  }

  get hasVague(): boolean {
    return this.trees.some(touches => touches.vague.count > 0)
  }

  noteEnd(pid: number, at: number): void {
    for (const touches of this.trees) touches?.noteEnd(pid, at)
  }

  takeBack(path: Raw | undefined, to: Raw | undefined, present = this.present): void {
    this.present = present
    for (const touches of this.trees) touches?.takeBack(path, to)
  }
}
