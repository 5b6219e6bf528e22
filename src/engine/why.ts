/**
 * Why a path is as it is: the commands that changed it, under the names that it had. A call is told before it is carried out, so
 * that some of them failed: the snapshots around show which had no effect.
 */
import { isDamage } from '../errors/errors.ts'
import type { Entry } from '../model/entry.ts'
import type { Raw } from '../model/raw-path.ts'
import { type Run, type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import type { Execution, FileEvent } from '../model/trace.ts'
import { sameEntry } from '../store/tree-diff.ts'
import { allEntries, entryAt } from '../store/tree-lookup.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { Context } from './context.ts'
import { eventsOf, type NamedEvent } from './earlier-names.ts'
import { Executions, namingFirst } from './executions.ts'
import { resolvePath } from './resolve-path.ts'
import type { WhyCause, WhyResult } from './results.ts'
import { unseenChanges } from './unseen-changes.ts'

const WHY_LIMIT = 50
/** A snapshot that was finished so much later had not begun when the call was made. */
const CAPTURE_MS = 30_000
const MAX_LIKELY = 3

export function why(ctx: Context, path: string, { limit = WHY_LIMIT }: { limit?: number } = {}): WhyResult {
  const raw = resolvePath(ctx, path)
  const around = new Around(ctx)
  const happened = (event: FileEvent) => around.outcome(event) !== 'unchanged'
  const events = eventsOf(ctx.db.events, raw, limit, happened, around.otherNames(raw))
  const executions = new Executions(ctx)
  const told = events.map(each => causeOf(each, around, executions, namingFirst(ctx, each.name)))
  const causes = [...told, ...unseenChanges(ctx, raw, limit, MAX_LIKELY)]
  return { path: raw, causes: causes.sort((a, b) => b.event.id - a.event.id).slice(0, limit) }
}

function causeOf(
  { event, name }: NamedEvent,
  around: Around,
  executions: Executions,
  byName: ReturnType<typeof namingFirst>,
): WhyCause {
  const cause = { event, name, outcome: around.outcome(event), ...around.snapshotsOf(event) }
  const execution = executions.of(event)
  if (execution || event.exec !== 0) return { ...cause, execution, likely: [] }
  // Those that had not ended, and of them the innermost: what started them waits for them, mostly.
  const hasEnded = ({ endedAt }: Execution) => Number(endedAt !== undefined && endedAt < event.at)
  const likely = executions
    .around(event)
    .toSorted((a, b) => byName(a, b) || hasEnded(a) - hasEnded(b) || b.depth - a.depth || b.at - a.at)
    .slice(0, MAX_LIKELY)
  return { ...cause, execution: undefined, likely }
}

/** The snapshots around events, and what they show. */
class Around {
  private readonly ctx: Context
  private readonly snapshots: Snapshot[]
  private readonly runs: Map<string, Run>

  constructor(ctx: Context) {
    this.ctx = ctx
    // What was kept beside the others is no state that ever was; what could not be read yet tells nothing.
    this.snapshots = ctx.db.snapshots().filter(({ type, root }) => type !== 'kept' && root !== UNREAD_ROOT)
    this.runs = new Map(ctx.db.runs().map(run => [run.id, run]))
  }

  snapshotsOf({ at }: FileEvent): Pick<WhyCause, 'before' | 'after'> {
    return {
      before: this.snapshots.findLast(({ createdAt }) => createdAt <= at),
      after: this.snapshots.find(({ createdAt }) => createdAt > at),
    }
  }

  /** Of a file with several names, the others, as the newest snapshot that has it knows them. */
  otherNames(path: Raw): Raw[] {
    try {
      const newest = this.snapshots.findLast(snapshot => this.entry(snapshot, path))
      const group = newest && this.entry(newest, path)!.linkGroup
      if (!newest || !group) return []
      const all = allEntries(this.ctx.store, rootTreeOf(this.ctx.store, newest.root))
      return [...all].filter(each => each.entry.linkGroup === group && each.path !== path).map(each => each.path)
    } catch (error) {
      if (!isDamage(error)) throw error
      return []
    }
  }

  /** Of what nobody can tell, because no snapshot has it or none follows, it is not said that it was without effect. */
  outcome(event: FileEvent): WhyCause['outcome'] {
    const { before } = this.snapshotsOf(event)
    const after = this.surelyAfter(event)
    if (!before || !after) return 'unknown'
    const names = [event.path, event.to].filter(name => name !== undefined)
    try {
      const pairs = names.map(name => [this.entry(before, name), this.entry(after, name)] as const)
      if (pairs.flat().some(entry => entry?.kind === 'unknown')) return 'unknown'
      if (pairs.some(([a, b]) => !isSame(a, b)) || this.wasOther(names, before, after)) return 'changed'
      const isThere = pairs.some(([a]) => a !== undefined)
      // What came and went in between leaves no trace in the snapshots, but more than one event.
      return isThere || names.every(name => this.isAlone(event, name, after)) ? 'unchanged' : 'changed'
    } catch (error) {
      if (!isDamage(error)) throw error
      return 'unknown'
    }
  }

  /** A snapshot whose capture began after the call was over: the end of its run, or one that another one came before. */
  private surelyAfter({ at, run }: FileEvent): Snapshot | undefined {
    const later = this.snapshots.filter(({ createdAt }) => createdAt > at)
    const found = later.find(
      ({ type, run: of, createdAt }, i) =>
        i > 0 || type === 'pre-run' || (type === 'final' && of === run) || createdAt > at + CAPTURE_MS,
    )
    // A run that changed nothing at all has no snapshot of its own at its end.
    const end = this.runs.get(run)?.after
    return found ?? (end === undefined ? undefined : this.snapshots.find(({ id }) => id === end))
  }

  /** A rollback may have taken the change back, which it captured first. */
  private wasOther(names: Raw[], before: Snapshot, after: Snapshot): boolean {
    const between = this.snapshots.slice(this.snapshots.indexOf(before) + 1, this.snapshots.indexOf(after))
    return between.some(each =>
      names.some(name => {
        const entry = this.entry(each, name)
        return entry?.kind !== 'unknown' && !isSame(this.entry(before, name), entry)
      }),
    )
  }

  private entry(snapshot: Snapshot, path: Raw): Entry | undefined {
    return entryAt(this.ctx.store, rootTreeOf(this.ctx.store, snapshot.root), path)
  }

  private isAlone(event: FileEvent, name: Raw, after: Snapshot): boolean {
    const { before } = this.snapshotsOf(event)
    const end = Math.max(after.createdAt, event.at)
    return !this.ctx.db.events
      .ofPath(name, WHY_LIMIT)
      .some(({ id, at }) => id !== event.id && at > (before?.createdAt ?? 0) && at <= end)
  }
}

function isSame(a: Entry | undefined, b: Entry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return sameEntry(a, b) && a.content === b.content
}
