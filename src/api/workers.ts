/** The processes that carry out what takes longer: some are kept for the next request, commands get one of their own. */
import { closeSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { cancelled, SavepointError } from '../errors/errors.ts'
import type { WorkRequest } from './api-worker.ts'
import type { Operation } from './operation.ts'
import { openOutput } from './output-file.ts'
import type { Caller, Out } from './service.ts'
import { Turns } from './turns.ts'
import { WorkerProcess } from './worker-process.ts'

/**
 * At work at the same time; others wait. What changes something may wait for its lock as long as another one has it, so it is
 * counted apart from what looks: nobody who looks waits behind it. So are commands, which may go on for hours, and are refused
 * beyond.
 */
const MAX_LOOKING = 6
const MAX_CHANGING = 4
const MAX_COMMANDS = 64
/** What only looks is soon over, mostly: more processes than processors help only where all of them are at something long. */
const FEW_LOOKING = Math.min(MAX_LOOKING, Math.max(2, availableParallelism()))
/** Kept for the next request: two for long, others only through a time with much to do, since to start one takes longer than most requests. */
const KEPT_LONG = 2
const IDLE_MS = 60_000
const BUSY_IDLE_MS = 5000
/** Whatever they may have gathered by then is given back. */
const MAX_ASKED = 2000

const RUN_VARIABLE = 'SAVEPOINT_RUN'

export class Workers {
  private readonly env: NodeJS.ProcessEnv
  private readonly idle = new Map<WorkerProcess, NodeJS.Timeout>()
  private readonly looking = new Turns(FEW_LOOKING, MAX_LOOKING)
  private readonly changing = new Turns(MAX_CHANGING, MAX_CHANGING)
  private commands = 0

  constructor(env: NodeJS.ProcessEnv) {
    this.env = env
  }

  /** Returns the last frame. */
  async carryOut(operation: Operation, request: WorkRequest, caller: Caller, out: Out): Promise<string> {
    if (operation.starts !== undefined) return this.startCommand(operation, request, caller, out)
    const turns = operation.effect === 'read' || operation.isUnlocked ? this.looking : this.changing
    const turn = await turns.take()
    try {
      // Nobody waits for it any more: it has not begun.
      if (out.signal.aborted) throw cancelled()
      // Whoever only looks needs no rights.
      const isOurs = operation.effect === 'read' || caller.run === undefined
      const worker = (isOurs && this.takeIdle()) || new WorkerProcess(isOurs ? this.env : this.envOf(caller))
      const last = await worker.ask(request, out, operation.effect === 'read')
      // One that was started for a process of a run is taken for a process of that run.
      if (isOurs) this.keep(worker)
      else worker.letGo()
      return last
    } finally {
      turns.give(turn)
    }
  }

  /** Those that are idle end; those at work when they are done. */
  close(): void {
    for (const [worker, timer] of this.idle) {
      clearTimeout(timer)
      worker.letGo()
    }
    this.idle.clear()
  }

  private async startCommand(operation: Operation, request: WorkRequest, caller: Caller, out: Out): Promise<string> {
    if (this.commands >= MAX_COMMANDS)
      throw new SavepointError('busy', `Cannot ${operation.name}: ${MAX_COMMANDS} commands are running`, {
        hint: 'Wait for one of them to end; `savepoint ctl ps` lists their processes',
      })
    const { output } = request.input as { output?: string }
    const isAttached = operation.starts === 'attached'
    const file = isAttached || output === undefined ? undefined : openOutput(request.target, request.home, output)
    this.commands++
    try {
      const worker = new WorkerProcess(this.envOf(caller), isAttached ? 'told' : (file ?? 'ignore'))
      const last = await worker.ask(request, out, false)
      worker.letGo()
      return last
    } finally {
      if (file !== undefined) closeSync(file)
      this.commands--
    }
  }

  private envOf({ run }: Caller): NodeJS.ProcessEnv {
    return run === undefined ? this.env : { ...this.env, [RUN_VARIABLE]: run }
  }

  private takeIdle(): WorkerProcess | undefined {
    for (const [worker, timer] of this.idle) {
      clearTimeout(timer)
      this.idle.delete(worker)
      if (!worker.isGone) return worker
    }
    return undefined
  }

  private keep(worker: WorkerProcess): void {
    if (worker.isGone) return
    if (worker.asked >= MAX_ASKED) {
      worker.letGo()
      return
    }
    const timer = setTimeout(
      () => {
        this.idle.delete(worker)
        worker.letGo()
      },
      this.idle.size < KEPT_LONG ? IDLE_MS : BUSY_IDLE_MS,
    )
    this.idle.set(worker, timer.unref())
  }
}
