/** What the verbs about traces and events answer. Plain data with raw paths; faces render it. */
import type { Raw } from '../model/raw-path.ts'
import type { Running } from '../model/running.ts'
import type { Operation, Run, Snapshot } from '../model/snapshot.ts'
import type { Execution, FileEvent, SnapshotEvents } from '../model/trace.ts'

export interface TraceSummary {
  /** none: changes were watched, commands are not known. */
  tracer: string
  commands: number
  failed: number
  /** Paths outside of the target that were changed, made and left there, or deleted; 0 where changes are not told. */
  outside: number
  /** Of these, deleted or moved away. */
  removed: number
  /** Events that were not seen. */
  lost: number
  /** Taken while it went on. */
  snapshots: number
  /** Processes of the run went on when its command ended. */
  survivors: boolean
  /** Which of them still do; not all of very many. */
  running: Running[]
}

export interface TraceResult {
  run: Run
  /** What has no end then has outlived it, or nobody was left to see its end. */
  isOver: boolean
  executions: Execution[]
}

/** What is to be known of a run to show an execution of it. */
export interface FollowedRun {
  startedAt: number
  isOver: boolean
}

export type ListedEvent =
  | { type: 'file'; event: FileEvent; execution: Execution | undefined }
  /** `snapshot`: undefined when its row is gone. */
  | { type: 'snapshot'; events: SnapshotEvents; snapshot: Snapshot | undefined }

export interface EventsResult {
  /** Of which run; undefined: of the whole timeline. */
  run: string | undefined
  /** Newest first. */
  events: ListedEvent[]
}

export interface WhyCause {
  event: FileEvent
  /** What the path was called then: it may have been renamed, or be another name of the same file. */
  name: Raw
  /** unchanged: the snapshots around it show that it had no effect; it failed, mostly. unknown: they do not show it. */
  outcome: 'changed' | 'unchanged' | 'unknown'
  /** Which command did it; undefined when that cannot be told. */
  execution: Execution | undefined
  /** Then: which commands ran at that moment, the likeliest first. */
  likely: Execution[]
  /** The snapshots of the timeline around it. */
  before: Snapshot | undefined
  after: Snapshot | undefined
}

export interface WhyResult {
  path: Raw
  causes: WhyCause[]
}

/** Of the traces: command lines of which words were hidden, events of files that were removed. */
export interface PurgedTraces {
  commands: number
  events: number
}

/** Something that happened in the timeline. */
export type TimelineEvent =
  /** What happens from now on is told. */
  | { type: 'following' }
  | { type: 'snapshot'; snapshot: Snapshot }
  | { type: 'run-started' | 'run-ended'; run: Run }
  | { type: 'operation'; operation: Operation }
  /** Of the live files; undefined: there is none any more. */
  | { type: 'head'; head: string | undefined }
  | { type: 'file'; event: FileEvent; execution: Execution | undefined }
  /** More file events at once than are told one by one: `events` has them. */
  | { type: 'lost'; count: number }

/** A process of a run. */
export interface RunProcess {
  pid: number
  /** When it began, in ticks of the kernel: with the pid, it is this process and no later one. */
  start: number
  startedAt: number
  parent: number
  run: string
  /** As the kernel names it: R, S, D, T, Z. */
  state: string
  /** Secrets in it are hidden as in traces. */
  argv: Raw[]
}
