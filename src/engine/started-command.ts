/** A command that was started, and all processes that come of it: they can be held still, and ended as a whole. */
import type { TracedEnd } from '../tracers/command-process.ts'
import type { StartedCommand } from './follow-stops.ts'
import { UnwatchedTree } from './process-tree.ts'

export interface Started extends StartedCommand {
  readonly ended: Promise<TracedEnd>
  /** Of the command itself; undefined until it is there. */
  readonly pid: number | undefined
  /** The process that all others descend from. */
  readonly root: number | undefined
  freeze(): Promise<void>
  /** Returns when they go on. */
  thaw(): Promise<void>
  /** Returns when none of them is left. */
  stop(graceMs: number): Promise<void>
}

interface Unwatched extends StartedCommand {
  readonly ended: Promise<TracedEnd>
  readonly pid: number | undefined
}

/** For a command that no helper stands above: its processes are looked for, by descent and by the mark of `run`. */
export function withTree(command: Unwatched, run: string | undefined): Started {
  const tree = () => (command.pid === undefined || run === undefined ? undefined : new UnwatchedTree(command.pid, run))
  let held: UnwatchedTree | undefined
  let stopping: Promise<void> | undefined
  // While it is stopped as a whole, its end is the end of all.
  const ended = command.ended.then(async end => {
    await stopping
    return end
  })
  const started = {
    ended,
    isFrozen: false,
    get isStopped() {
      return command.isStopped
    },
    get pid() {
      return command.pid
    },
    get root() {
      return command.pid
    },
    kill: (signal: NodeJS.Signals) => command.kill(signal),
    async freeze() {
      started.isFrozen = true
      held = tree()
      await held?.freeze()
    },
    async thaw() {
      held?.thaw()
      started.isFrozen = false
    },
    async stop(graceMs: number) {
      started.isFrozen = true
      stopping ??= tree()?.stop(graceMs)
      await ended.catch(() => {})
    },
  }
  return started
}
