/**
 * What became of what was there before a run, by what that moved itself: where it is, and whether what has its name now is
 * something else. Trees cannot tell that of what was not captured, and a rename names only the directory that it moves.
 */
import type { Id } from '../model/entry.ts'
import { parentOf, type Raw } from '../model/raw-path.ts'
import { entryAt } from '../store/tree-lookup.ts'
import type { NameChange } from '../timeline/event-rows.ts'
import type { Context } from './context.ts'
import { NamesOverTime } from './names-over-time.ts'
import { UncapturedEntries } from './uncaptured-entries.ts'

export class OwnMoves {
  /** Directories that it moved, by the names that they had before the run. */
  readonly directories: Set<Raw> = new Set<Raw>()
  /** Of the state before the run. */
  readonly uncaptured: UncapturedEntries
  private readonly ctx: Context
  private readonly names = new NamesOverTime()
  /** What was not captured and went by another name than its first, which all of these are. */
  private readonly deleted = new Set<Raw>()
  /** What left the target at some time. */
  private readonly left = new Set<Raw>()

  constructor(ctx: Context, run: string, before: Id) {
    this.ctx = ctx
    this.uncaptured = new UncapturedEntries(ctx.store, before)
    for (const change of ctx.db.events.nameChangesOf([run])) {
      if (change.op === 'delete') this.noteDeleted(change.path!)
      else this.noteMoved(change)
      this.names.note({ ...change, by: run })
    }
  }

  /** Where what was at `path` is to be looked for after all of them; undefined: it left, or something was put over it. */
  nowOf(path: Raw): Raw | undefined {
    return this.names.nowOf(path)
  }

  /** Where it is by another name, in a tree of the target. Of what was emptied before it was moved nothing is there. */
  placeOf(path: Raw, now: Id): Raw | undefined {
    const to = this.names.nowOf(path)
    if (to === undefined || to === path || this.deleted.has(path) || this.names.firstOf(to) !== path) return undefined
    if (this.names.emptiedBy(to) !== undefined) return undefined
    return entryAt(this.ctx.store, now, to) && to
  }

  /**
   * Whether what is at `path` came there from elsewhere, or after what was there had been moved. 'perhaps': from outside, where
   * that had gone before; names outside are not known, and most often it is moved back.
   */
  isOther(path: Raw): boolean | 'perhaps' {
    if (this.names.firstOf(path) === path) return false
    return this.names.broughtBy(path) !== undefined && this.hasLeft(path) ? 'perhaps' : true
  }

  private hasLeft(path: Raw): boolean {
    for (let at = path; at !== ''; at = parentOf(at)) if (this.left.has(at)) return true
    return false
  }

  private noteDeleted(path: Raw): void {
    const first = this.names.firstOf(path)
    if (first === undefined || first === path) return
    if (this.uncaptured.of(first)?.path === first) this.deleted.add(first)
  }

  private noteMoved({ op, path, to, directory }: NameChange): void {
    const isExchange = op === 'exchange'
    const hasLeft = path === undefined || to === undefined
    for (const each of isExchange ? [path, to] : [path]) {
      const first = each === undefined ? undefined : this.names.firstOf(each)
      if (first === undefined) continue
      if (directory || isExchange) this.directories.add(first)
      if (hasLeft) this.left.add(first)
    }
  }
}
