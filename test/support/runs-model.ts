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
  /** Of a run: which paths of it some restore since has taken back. */
  taken: Set<string>
  /** There was nothing to take back when that was asked for: HEAD may have gone to the state before it, and then that counts. */
  isAsked?: boolean
  /** Of a rollback of a run: of which. */
  of?: Done
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
    return this.add({ what, changed: this.changedSince(before, own), state: 'done', inside, taken: new Set() })
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
    this.noteTaken(done)
    return left
  }

  redo(): string[] {
    const done = this.undone!
    const { moved, left } = this.move(done.undone!)
    if (moved.size > 0 || left.length === 0) done.state = 'done'
    return left
  }

  /** Or refused, as it is taken back already. */
  rollback(done: Done): string[] | 'refused' | 'refused or not' {
    const rest: Versions = new Map([...done.changed].filter(([path]) => !done.taken.has(path)))
    const { moved, left } = this.move(rest)
    const isTaken = done.taken.size > 0 || this.isWholeTaken(done)
    if (moved.size + left.length === 0) {
      const answer = isTaken ? 'refused' : done.isAsked ? 'refused or not' : []
      done.isAsked = true
      return answer
    }
    if (moved.size > 0) {
      this.add({ what: `rollback of ${done.what}`, changed: moved, state: 'done', of: done, taken: new Set() })
      this.noteTaken(done)
    }
    return left
  }

  private isWholeTaken(done: Done): boolean {
    const isUndone = done.state === 'undone' || done.state === 'past'
    return isUndone || this.done.some(({ of, state }) => of === done && state === 'done')
  }

  /** What was as before it already needed no change. */
  private noteTaken({ changed, taken }: Done): void {
    for (const [path, { before }] of changed) if (this.files.get(path) === before) taken.add(path)
  }

  /** Something was restored: which runs that took it from, and to which it gave it back. */
  private noteRestored(paths: Iterable<string>): void {
    for (const path of paths)
      for (const { changed, taken } of this.done) {
        const own = changed.get(path)
        if (own && own.after === this.files.get(path)) taken.delete(path)
        else if (own) taken.add(path)
      }
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
    this.noteRestored(changed.keys())
    if (changed.size > 0) this.add({ what: `rollback to ${what}`, changed, state: 'done', taken: new Set() })
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
    this.noteRestored(moved.keys())
    return { moved, left: left.sort() }
  }
}
