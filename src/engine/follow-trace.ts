/**
 * Follows what a run executes until it ends. A run that goes on tells it over its control socket; where it does not answer,
 * the timeline is looked at again and again.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { SavepointError } from '../errors/errors.ts'
import type { Run } from '../model/snapshot.ts'
import type { Execution } from '../model/trace.ts'
import type { Context } from './context.ts'
import { askRun, Unreachable } from './control-client.ts'
import { liveRuns } from './live-runs.ts'
import type { FollowedRun } from './results.ts'
import { requireRun } from './rollback.ts'
import { newestRun, trace } from './trace.ts'

/** The rows of what was told come a little later. */
const ROWS_MS = 100
/** How often a run that does not answer is looked at. */
const LOOK_MS = 200

/** Each execution once, when it has ended or, without an end, when the run has. */
export async function followTrace(
  ctx: Context,
  ref: string | undefined,
  onExecution: (execution: Execution, run: FollowedRun) => void,
  { signal = ctx.signal }: { signal?: AbortSignal } = {},
): Promise<void> {
  const run = ref === undefined ? newestRun(ctx) : requireRun(ctx, ref)
  const follower = new Follower({ ...ctx, signal }, run, onExecution)
  await follower.listen()
  await follower.lookUntilOver()
}

/** A line of exec.jsonl, or that from now on each is told. */
type Told = { type: 'exec'; replaces: number | null } | { type: 'exit'; id: number } | { type: 'following' }

class Follower {
  private readonly ctx: Context
  private readonly run: Run
  private readonly onExecution: (execution: Execution, run: FollowedRun) => void
  private readonly shown = new Set<number>()
  /** Have ended; their rows are not there yet. */
  private readonly ended = new Set<number>()
  private timer: NodeJS.Timeout | undefined

  constructor(ctx: Context, run: Run, onExecution: Follower['onExecution']) {
    this.ctx = ctx
    this.run = run
    this.onExecution = onExecution
  }

  /** Returns when the run is over, or cannot be heard any more. */
  async listen(): Promise<void> {
    const live = liveRuns(this.ctx).find(({ id }) => id === this.run.id)
    if (!live) return
    try {
      await askRun(live, { op: 'trace' }, { ...this.ctx, onEvent: event => this.hear(event as Told) })
    } catch (error) {
      if (!(error instanceof Unreachable || error instanceof SavepointError)) throw error
    } finally {
      clearTimeout(this.timer)
    }
  }

  /** Once also when nobody is to follow any more: the process that serves it may be ending with the run that it served. */
  async lookUntilOver(): Promise<void> {
    while (!this.look() && !this.ctx.signal?.aborted) await pause(LOOK_MS)
  }

  private hear(told: Told): void {
    if (told.type === 'following') {
      this.look()
      for (const line of this.lines()) this.note(line)
    } else this.note(told)
    if (this.ended.size > 0) this.timer ??= setTimeout(() => this.showEnded(), ROWS_MS)
  }

  private note(told: Told): void {
    const id = told.type === 'exit' ? told.id : told.type === 'exec' ? told.replaces : null
    if (id !== null && !this.shown.has(id)) this.ended.add(id)
  }

  /** What was written before it was told that we listen. */
  private lines(): Told[] {
    try {
      const text = readFileSync(join(this.ctx.timelineDir, 'runs', this.run.id, 'exec.jsonl'), 'utf8')
      // The last one may be on its way: it will be told.
      return text
        .split('\n')
        .slice(0, -1)
        .map(line => JSON.parse(line) as Told)
    } catch {
      // A purge may be writing it anew; what is missed is shown at the end.
      return []
    }
  }

  private showEnded(): void {
    this.timer = undefined
    for (const id of this.ended) {
      const execution = this.ctx.db.trace.execution(this.run.id, id)
      if (execution?.endedAt === undefined) continue
      this.ended.delete(id)
      this.show(execution, false)
    }
    if (this.ended.size > 0) this.timer = setTimeout(() => this.showEnded(), ROWS_MS)
  }

  /** Shows what is known. Whether the run is over is asked before the rows are read: what was written until then is among them. */
  private look(): boolean {
    const { isOver, executions } = trace(this.ctx, this.run.id)
    for (const execution of executions) if (isOver || execution.endedAt !== undefined) this.show(execution, isOver)
    return isOver
  }

  private show(execution: Execution, isOver: boolean): void {
    if (this.shown.has(execution.id)) return
    this.shown.add(execution.id)
    this.onExecution(execution, { startedAt: this.run.startedAt, isOver })
  }
}
