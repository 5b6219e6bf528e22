/**
 * What `undo`, `redo` and `rollback RUN` must do to files, where each of several runs and a person change files of their own
 * while others are at work: the model that the product is compared with. A file is a path and what is in it.
 */
export type Files = Map<string, string>
type Versions = Map<string, { before: string | undefined; after: string | undefined }>

export interface Done {
  what: string
  changed: Versions
  /** `inner`: of a run inside of one that has ended, with which it goes and comes back. */
  state: 'done' | 'undone' | 'past' | 'inner'
  /** The run that started it. */
  inside?: string
  /** What the last undo of it changed. */
  undone?: Versions
}

export class RunsModel {
  readonly files: Files
  readonly done: Done[] = []

  constructor(files: Files) {
    this.files = files
  }

  set(path: string, content: string | undefined): void {
    if (content === undefined) this.files.delete(path)
    else this.files.set(path, content)
  }

  /** `own`: whether a path is the operation's. */
  end(what: string, before: Files, own: (path: string) => boolean, inside?: string): Done {
    for (const done of this.done) if (done.inside === what && done.state === 'done') done.state = 'inner'
    return this.add({ what, changed: this.changedSince(before, own), state: 'done', inside })
  }

  private changedSince(before: Files, own: (path: string) => boolean): Versions {
    const changed: Versions = new Map()
    for (const path of new Set([...before.keys(), ...this.files.keys()])) {
      const [was, is] = [before.get(path), this.files.get(path)]
      if (own(path) && was !== is) changed.set(path, { before: was, after: is })
    }
    return changed
  }

  private add(done: Done): Done {
    for (const former of this.done) if (former.state === 'undone') former.state = 'past'
    this.done.push(done)
    return done
  }

  get next(): Done | undefined {
    return this.done.findLast(({ state }) => state === 'done')
  }

  get undone(): Done | undefined {
    return this.done.find(({ state }) => state === 'undone')
  }

  /** This and the others: the paths that are left alone, because somebody has edited them since. */
  undo(): string[] {
    const done = this.next!
    const { moved, left } = this.move(done.changed)
    if (moved.size === 0 && left.length > 0) return left
    done.state = 'undone'
    done.undone = moved
    return left
  }

  redo(): string[] {
    const done = this.undone!
    const { moved, left } = this.move(done.undone!)
    if (moved.size > 0 || left.length === 0) done.state = 'done'
    return left
  }

  rollback(done: Done): string[] {
    const { moved, left } = this.move(done.changed)
    if (moved.size > 0) this.add({ what: `rollback of ${done.what}`, changed: moved, state: 'done' })
    return left
  }

  /**
   * Of a run whose supervisor was killed: what is there counts as its end, and nobody knows for certain what others did since.
   * `isNamed`: whether a path goes back although it may be somebody else's.
   */
  undoKilled(what: string, before: Files, own: (path: string) => boolean, isNamed: (path: string) => boolean): void {
    this.end(what, before, path => own(path) || isNamed(path))
    this.undo()
  }

  /** To a whole state. */
  goTo(what: string, files: Files): void {
    const before = new Map(this.files)
    this.files.clear()
    for (const [path, content] of files) this.files.set(path, content)
    const changed = this.changedSince(before, () => true)
    if (changed.size > 0) this.add({ what: `rollback to ${what}`, changed, state: 'done' })
  }

  /** Each path goes back as long as it is as it was left. */
  private move(changed: Versions): { moved: Versions; left: string[] } {
    const moved: Versions = new Map()
    const left: string[] = []
    for (const [path, { before, after }] of changed) {
      const is = this.files.get(path)
      if (is === after) {
        this.set(path, before)
        moved.set(path, { before: after, after: before })
      } else if (is !== before) left.push(path)
    }
    return { moved, left: left.sort() }
  }
}
