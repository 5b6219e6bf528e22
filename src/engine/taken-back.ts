/**
 * What of a run has been taken back since it ended, and has not come again by a `redo` or the like. Whatever lies there now is
 * somebody else's, also where it is just as the run had left it.
 */
import { isDamage, SavepointError } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { isGitInternal, isWithin, type Raw } from '../model/raw-path.ts'
import type { Operation, Run } from '../model/snapshot.ts'
import type { Store } from '../store/store.ts'
import { differingEntries, type EntryPair } from '../store/tree-diff.ts'
import { rootTreeOf } from '../targets/dir/capture.ts'
import type { Span } from '../targets/dir/others-paths.ts'
import { sameAside } from '../targets/dir/plan-entries.ts'
import type { Context } from './context.ts'
import { operationsInOrder, reachableOperations, recordedRoot } from './operations.ts'

/** What a `rollback` of a run records that was not about all of it. */
export const partly = { partly: true }

/** Root trees around the run. */
interface States {
  before: Id
  after: Id
}

export interface TakenBack {
  paths: Raw[]
  /** The last that took back some of it. */
  by: Operation
}

/** What the run had made of a path. */
interface Work {
  wanted: Entry | undefined
  base: Entry | undefined
}

export function takenBackOf(
  ctx: Context,
  run: string,
  states: States,
  scope: readonly Raw[] | undefined,
): TakenBack | undefined {
  const operations = operationsInOrder(ctx.db)
  const at = operations.findLastIndex(({ kind, detail }) => kind === 'run' && detail.run === run)
  const restores = at < 0 ? [] : operations.slice(at + 1).filter(isRestore)
  if (restores.length === 0) return undefined
  const going = new Going(ctx.store, states)
  for (const operation of restores) going.follow(operation, isAbout(operation, operations[at]!))
  const taken = [...going.taken].filter(([path]) => !scope || scope.some(part => isWithin(path, part)))
  const by = taken.map(([, operation]) => operation).reduce<Operation | undefined>(newer, undefined)
  return by && { paths: taken.map(([path]) => path), by }
}

const newer = (a: Operation | undefined, b: Operation): Operation => (a && a.seq > b.seq ? a : b)

const isRestore = ({ kind }: Operation): boolean =>
  kind === 'rollback' || kind === 'revert' || kind === 'undo' || kind === 'redo'

const isAbout = ({ kind, detail }: Operation, run: Operation): boolean =>
  kind === 'rollback' ? detail.run === run.detail.run : detail.step_of === run.id

/** The work of a run, and what became of it from one restore to the next. */
class Going {
  readonly taken = new Map<Raw, Operation>()
  private readonly store: Store
  private readonly work: ReadonlyMap<Raw, Work>
  private readonly before: Id

  constructor(store: Store, { before, after }: States) {
    this.store = store
    this.before = before
    const changed = pairs(store, before, after)
    this.work = new Map(Array.from(changed, ({ path, before: wanted, after: base }) => [path, { wanted, base }]))
  }

  /** `isOwn`: it was about this run, and not only by what the states around it show. */
  follow(operation: Operation, isOwn: boolean): void {
    const isWhole = isOwn && operation.kind !== 'redo' && operation.detail.partly !== true
    if (this.isSeen(operation, isWhole)) return
    if (isWhole) for (const path of this.work.keys()) this.taken.set(path, operation)
    else if (isOwn && operation.kind === 'redo') this.taken.clear()
  }

  /** False: nothing had to change, or the states are gone, which `gc` keeps only as long as they can be gone to. */
  private isSeen(operation: Operation, isWhole: boolean): boolean {
    const [before, after] = (['before_root', 'after_root'] as const).map(key => recordedRoot(operation.detail, key))
    if (before === undefined || after === undefined) return false
    try {
      this.followChanges(operation, before, after)
      if (isWhole) this.addUnchanged(operation, after)
      return true
    } catch (error) {
      if (!isDamage(error)) throw error
      return false
    }
  }

  private followChanges(operation: Operation, before: Id, after: Id): void {
    for (const { path, after: now } of pairs(this.store, before, after)) {
      const work = this.work.get(path)
      if (work && isAsLeft(now, work)) this.taken.delete(path)
      else if (work) this.taken.set(path, operation)
    }
  }

  /** What was as before the run already. A repository is one thing, of which parts are always equal. */
  private addUnchanged(operation: Operation, after: Id): void {
    const other = new Set(Array.from(pairs(this.store, this.before, after), ({ path }) => path))
    for (const path of this.work.keys())
      if (!other.has(path) && !this.taken.has(path) && !isGitInternal(path)) this.taken.set(path, operation)
  }
}

/** But for what is unknown on one side: of that nobody can tell whether it was taken back. */
function* pairs(store: Store, before: Id, after: Id): Generator<EntryPair> {
  for (const pair of differingEntries(store, rootTreeOf(store, before), rootTreeOf(store, after)))
    if (pair.before?.kind !== 'unknown' && pair.after?.kind !== 'unknown') yield pair
}

/** A directory that the run made is there as long as there is one: who works in it has not taken it back. */
const isAsLeft = (now: Entry | undefined, { wanted, base }: Work): boolean =>
  base?.kind === 'dir' && wanted?.kind !== 'dir' ? now?.kind === 'dir' : sameAside(now, base)

/** For the plan: it stays, and there is nothing to say about it. */
export const asForeign = ({ paths }: TakenBack, { after }: States): Span => ({
  before: after,
  after,
  paths,
  foreign: paths,
})

export function takenBackAlready(ctx: Context, { id }: Run, { by }: TakenBack, before: string): SavepointError {
  const again = wayToHaveItAgain(ctx, by)
  const back = `\`savepoint rollback ${before}\` goes back to the state before it, whoever has changed what since`
  return new SavepointError(
    'operation.none',
    `Cannot take back ${id}: ${by.id} (${by.summary}) has done that already`,
    {
      hint: again === undefined ? back : `${again}; ${back}`,
      data: { run: id, operation: by.id },
    },
  )
}

/** Only what can be said right now. */
function wayToHaveItAgain(ctx: Context, by: Operation): string | undefined {
  const operations = reachableOperations(ctx.db)
  const isNextRedo = operations.find(({ state }) => state === 'undone')?.id === by.detail.step_of
  if (by.kind === 'undo' && isNextRedo) return '`savepoint redo` does it again'
  const isNextUndo = operations.findLast(({ state }) => state === 'done')?.id === by.id
  return isNextUndo ? '`savepoint undo` brings it again' : undefined
}
