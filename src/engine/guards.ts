/** Guards: snapshots that a command waits for because it is about to destroy something. */
import { isBeyondTrace } from '../model/destructive-filesystems.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Snapshot } from '../model/snapshot.ts'
import type { ExecEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import type { DirtySet } from './dirty-set.ts'
import { destroyedBy, isInDanger } from './endangers.ts'
import { GuardPace } from './guard-pace.ts'
import { isKeptAnyway } from './kept-anyway.ts'
import type { RunSnapshotOptions } from './run-snapshot.ts'
import type { Place } from './target-place.ts'

/** In `log`: it may show the state after its command. */
const lateLabel = (label: string | undefined) => (label === undefined ? 'too late' : `${label}, too late`)

/** The run whose commands are guarded. */
export interface Guarded {
  release(exec: number): void
  /** What the run makes while the state before is captured is kept as it goes, whatever it is. */
  keepAll(): void
  /** Returns when all that happened until now has been told. */
  barrier(): Promise<void>
  /** Something to remember of an execution. */
  note(exec: number, text: string): void
  /** Where the target is now, and then what was the target before. */
  places(): Place[]
  isClosed(): boolean
  /** Whether anything may have changed since the last capture began. */
  isDirty(): boolean
  /** What is known of that. */
  dirty: DirtySet
  /** The capture that has begun. */
  underWay(): Promise<Snapshot | undefined> | undefined
  /** Whether that is the one of the state before the run. */
  isBeginning(): boolean
  /** Undefined when nothing had changed. `former`: of what was the target before. */
  take(
    options: Pick<RunSnapshotOptions, 'command' | 'label' | 'labelNow'>,
    former: Place | undefined,
  ): Promise<Snapshot | undefined>
}

export class Guards {
  private readonly ctx: Context
  private readonly run: Guarded
  private readonly pace = new GuardPace()
  /** Executions that were held for as long as is allowed, and went on. */
  private readonly late = new Set<number>()

  constructor(ctx: Context, run: Guarded) {
    this.ctx = ctx
    this.run = run
  }

  /** The execution waits until it is released here, or is late. */
  hold(event: ExecEvent, argv: string[]): void {
    this.guard(event, argv)
      .catch(error => {
        this.ctx.warn(`no snapshot before ${quoteCommand(argv)}: ${(error as Error).message}`)
        this.run.note(event.id, `not guarded: ${(error as Error).message}`)
      })
      .finally(() => {
        this.late.delete(event.id)
        this.run.release(event.id)
      })
  }

  wentOn(exec: number): void {
    this.late.add(exec)
    this.run.note(exec, 'went on before its snapshot was there')
  }

  private async guard(event: ExecEvent, argv: string[]): Promise<void> {
    const { ctx, run } = this
    const { id, cwd } = event
    const destructive = await destroyedBy(ctx, event, argv)
    if (!destructive || run.isClosed()) return
    if (destructive.irreversible) run.note(id, 'irreversible')
    if (!(run.isDirty() || run.underWay())) return
    const places = run.places()
    const inDanger = places.filter(({ path }) => isInDanger(ctx, path, cwd, destructive))
    if (inDanger.length === 0) return
    // Nothing is gained by waiting: a guard would come after the capture that is under way.
    const isKept = ({ path }: Place) => isKeptAnyway(ctx, path, cwd, destructive, run.dirty)
    if (run.isBeginning() && inDanger.every(isKept)) {
      run.keepAll()
      run.note(id, 'not held: the state before the run is being captured; what goes meanwhile is kept')
      return
    }
    // What is being captured is safe when that is done, not before.
    const former = run.isDirty() ? undefined : await run.underWay()?.catch(() => undefined)
    if (former) await this.noteGuard(id, former)
    if (!run.isDirty()) return
    if (!isBeyondTrace(argv) && !this.pace.isDue(event.parent, ctx.now())) {
      run.note(id, 'not guarded: too soon after the last guard')
      return
    }
    const label = destructive.irreversible ? 'irreversible' : undefined
    const labelNow = async () => ((await this.isLate(id)) ? lateLabel(label) : label)
    for (const place of inDanger) {
      const former = place === places[0] ? undefined : place
      const snapshot = await run.take({ command: quoteCommand(argv), label, labelNow }, former)
      if (snapshot) await this.noteGuard(id, snapshot)
      else this.pace.forget()
    }
  }

  /** Whether the command went on before now. */
  private async isLate(exec: number): Promise<boolean> {
    await this.run.barrier()
    return this.late.has(exec)
  }

  private async noteGuard(exec: number, { id }: Snapshot): Promise<void> {
    this.run.note(exec, (await this.isLate(exec)) ? `${id} came too late for it` : `guarded by ${id}`)
  }
}
